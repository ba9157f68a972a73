"""Batches that compaction has left, so that those of two brokers can be compared."""

from __future__ import annotations

import re
from typing import Any, Final

from rejoin.protocol.wire.record_batch import DELETE_HORIZON_BIT
from tests.conformance.transactions.recorded_scripts import Script

_TIME: Final = re.compile(r"T([+-]\d+)")


def is_compacted(script: Script) -> bool:
    """Whether the script is about compaction, on logs of several segments."""
    return script.changes_internal_topics or any("segment.ms" in topic["configs"] for topic in script.topics.values())


def with_times(answer: Any) -> Any:
    """An answer whose records have times of their own where their batch has that of its cleaning."""
    if isinstance(answer, list):
        return [with_times(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    if answer.get("attributes", 0) & DELETE_HORIZON_BIT and "records" in answer:
        base = answer["baseTimestamp"]
        records = [each | {"timestampDelta": _time(base, each["timestampDelta"])} for each in answer["records"]]
        return answer | {"records": records, "baseTimestamp": "when it was cleaned"}
    return {name: with_times(value) for name, value in answer.items()}


def _time(base: int | str, delta: int) -> int | str:
    """The time of a record, as a number or in the words of a recording."""
    return base + delta if isinstance(base, int) else f"T{int(_TIME.fullmatch(base)[1]) + delta:+}"  # type: ignore[index]


def cut_batches(recorded: Any, ours: Any) -> Any:
    """An answer with no more batches of each partition than were recorded."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        cut = {name: cut_batches(recorded[name], value) if name in recorded else value for name, value in ours.items()}
        if "batches" in recorded and "batches" in ours:
            cut["batches"] = cut["batches"][: len(recorded["batches"])]
        return cut
    if isinstance(recorded, list) and isinstance(ours, list):
        return [cut_batches(one, other) for one, other in zip(recorded, ours, strict=False)] + ours[len(recorded) :]
    return ours
