"""Acknowledgements as requests carry them: runs of consecutive offsets, with a type for all or one for each.

Source: Kafka's Acknowledgements (getAcknowledgementBatches).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch

LONGEST_MIXED_RUN: Final = 10
"""More offsets of one type than this are a batch of their own."""


def acknowledgement_batches(acknowledgements: Mapping[int, int]) -> tuple[AcknowledgementBatch, ...]:
    """The batches of one partition, ascending."""
    offsets = sorted(acknowledgements)
    consecutive = groupby(enumerate(offsets), key=lambda at: at[1] - at[0])
    return tuple(
        batch
        for _, run in consecutive
        for batch in _batches_of_run([(offset, acknowledgements[offset]) for _, offset in run])
    )


def _batches_of_run(run: list[tuple[int, int]]) -> Iterator[AcknowledgementBatch]:
    mixed: list[tuple[int, int]] = []
    for _, same in groupby(run, key=lambda each: each[1]):
        of_one_type = list(same)
        if len(of_one_type) > LONGEST_MIXED_RUN:
            yield from _batch(mixed)
            yield from _batch(of_one_type)
            mixed = []
        else:
            mixed += of_one_type
    yield from _batch(mixed)


def _batch(run: list[tuple[int, int]]) -> Iterator[AcknowledgementBatch]:
    if run:
        types = tuple(each for _, each in run)
        yield AcknowledgementBatch(
            first_offset=run[0][0],
            last_offset=run[-1][0],
            acknowledge_types=types[:1] if len(set(types)) == 1 else types,
        )
