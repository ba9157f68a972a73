"""Columns that say what a row is about: the tables share them."""

from __future__ import annotations

from rejoin.journal.events.fields import MEANINGS
from rejoin.pipeline.columns import DATE, INT, STRING, column

RUN = column("run_id", STRING, "The run; clocks of two runs have nothing to do with each other.")
DAY = column("day", DATE, "The day of at_ms in UTC (of the beginning, where a row is an interval).")
GROUP, MEMBER, INSTANCE, CLIENT, HOST, TOPIC = (
    column(name, STRING, MEANINGS[name])
    for name in ("group_id", "member_id", "group_instance_id", "client_id", "client_host", "topic")
)
PARTITION = column("partition", INT, MEANINGS["partition"])
CONFIDENCE = column("confidence", STRING, "exact | inferred | unknown.")
