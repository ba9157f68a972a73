"""Lines that have all partitions of a consumer: whether it has any."""

from __future__ import annotations

import re
from typing import Final

from rejoin.pipeline.reading.client_logs.families import ClientMessage

_INNERMOST: Final = re.compile(r"[\[{(](?P<inside>[^\[\]{}()]*)[\]})]")
_ALL: Final = "Setting newly assigned"
"""First words of the line about a whole assignment, of Java before 2.4 and the libraries of Python."""
_ASSIGNED: Final = re.compile(r"Assigned partitions[^:\n]*:\s+\[(?P<inside>[^\]]*)\]")


def has_partitions(message: ClientMessage) -> bool | None:
    """Whether a consumer has partitions after a line; None where the line does not say."""
    kind, values = message.kind, message.values
    if kind == "given":
        if "count" in values:
            return int(values["count"]) > 0
        return "given" in values and not _is_empty(values["given"])
    if kind == "reconciling":
        found = _ASSIGNED.search(values.get("update", ""))
        return None if found is None else bool(found["inside"].strip())
    if kind == "group_synced":
        said = values.get("assigned", values.get("assignments"))
        return None if said is None else said.strip() not in ("", "[]")
    if kind == "generation_joined" and isinstance(values.get("given"), dict):
        return any(values["given"].values())
    if kind in ("partition_added", "topic_assigned", "container_assigned", "partitions_assigned"):
        # Most lines have what is new, and not all.
        named = " ".join(str(values.get(each, "")) for each in ("number", "numbers", "partitions"))
        return True if any(map(str.isdigit, named)) else False if message.text.startswith(_ALL) else None
    return None


def _is_empty(text: str) -> bool:
    found = _INNERMOST.search(text)
    return found is None or not found["inside"].strip()
