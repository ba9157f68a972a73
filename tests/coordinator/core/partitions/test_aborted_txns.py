"""The aborted transactions that readers ask for: the same as by looking at all of them."""

from __future__ import annotations

import random

import pytest

from rejoin.coordinator.core.partitions.log import AbortedTxn, AbortedTxns


def looked_at_one_by_one(txns: list[AbortedTxn], offset: int, upper_bound: int) -> list[AbortedTxn]:
    """As Kafka reads its index."""
    found = []
    for aborted in txns:
        if aborted.last_offset >= offset and aborted.first_offset < upper_bound:
            found.append(aborted)
        if aborted.last_offset >= offset and aborted.last_stable_offset >= upper_bound:
            break
    return found


def log_of(seed: int, count: int) -> list[AbortedTxn]:
    """Transactions that are open together, some of them for long, in the order in which they end."""
    rng = random.Random(seed)
    open_since: dict[int, int] = {}
    txns: list[AbortedTxn] = []
    offset = 0
    while len(txns) < count:
        producer_id = rng.randrange(5)
        if producer_id not in open_since:
            open_since[producer_id] = offset
        elif rng.random() < (0.002 if producer_id == 0 else 0.7):
            first = open_since.pop(producer_id)
            txns.append(AbortedTxn(producer_id, first, offset, min(open_since.values(), default=offset + 1)))
        offset += 1
    return txns


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 4_095, 4_200])
def test_a_reader_gets_those_that_overlap_with_what_it_reads(count: int) -> None:
    rng = random.Random(count)
    txns = log_of(count, count)
    kept = AbortedTxns()
    for aborted in txns:
        kept.append(aborted)
    end = txns[-1].last_offset + 2 if txns else 2
    for _ in range(60):
        offset = rng.randrange(end)
        upper_bound = offset + rng.choice((0, 1, 10, 300, end))
        assert kept.between(offset, upper_bound) == looked_at_one_by_one(txns, offset, upper_bound)


def test_what_ended_below_the_start_of_the_log_is_forgotten() -> None:
    txns = log_of(7, 300)
    kept = AbortedTxns()
    for aborted in txns:
        kept.append(aborted)
    start = txns[150].last_offset
    kept.start_at(start)
    assert list(kept) == txns[150:]
    assert kept.between(start, start + 400) == looked_at_one_by_one(txns[150:], start, start + 400)
