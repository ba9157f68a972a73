"""Members of streams groups (KIP-1071) in their own logs: their tasks, and statuses and errors of their heartbeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias

from rejoin.pipeline.vocabulary import TASK_RESTORED

_STATUS: Final = re.compile(r"\((?P<code>\d)\) (?P<detail>.*?)(?=, \(\d\) |$)")
_NOT_READY: Final = {
    "1": "MISSING_SOURCE_TOPICS",
    "2": "INCORRECTLY_PARTITIONED_TOPICS",
    "3": "MISSING_INTERNAL_TOPICS",
}
_SHUTDOWN: Final = "4"
_TASK: Final = re.compile(r"(?P<subtopology>\S+)_(?P<task>\d{1,9})")
_PROCESS: Final = re.compile(r"-(?P<process>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-StreamThread-")
_REASONS: Final = {
    "UNSUPPORTED_VERSION": "turned-off",
    "unsupported version exception": "turned-off",
    "GROUP_ID_NOT_FOUND": "other-type",
    "GROUP_MAX_SIZE_REACHED": "size",
    "STREAMS_INVALID_TOPOLOGY": "invalid-topology",
}
"""Errors that have one reason. INVALID_REQUEST and UNKNOWN_SERVER_ERROR have several; the log does not say which."""


class LoggedStreamThread(Protocol):
    """A consumer of a stream thread, as far as it is known."""

    client_id: str | None
    generation: int
    streams_status: tuple[str | None, str | None]
    """Why the group is not ready, and in words."""
    shutdown_said: bool


Said: TypeAlias = Iterator[tuple[str, dict[str, Any]]]
"""Events, each with its values."""


def streams_status(member: LoggedStreamThread, values: Mapping[str, Any]) -> Said:
    """Statuses with which the broker answered a heartbeat. They are in each answer, so only changes are events."""
    found = {each["code"]: each["detail"] for each in _STATUS.finditer(values["statuses"])}
    code = next((each for each in _NOT_READY if each in found), None)
    yield from _configured(member, None if code is None else _NOT_READY[code], None if code is None else found[code])
    if _SHUTDOWN in found and not member.shutdown_said:
        member.shutdown_said = True
        yield "streams_shutdown_requested", {"of_streams": {"reason": found[_SHUTDOWN]}}


def _configured(member: LoggedStreamThread, status: str | None, reason: str | None) -> Said:
    before, member.streams_status = member.streams_status, (status, reason)
    if before != member.streams_status:
        yield "streams_topology_configured", {"of_streams": {"status": status, "reason": reason}}


def streams_given(member: LoggedStreamThread, values: Mapping[str, Any]) -> Said:
    """All tasks that a member takes over; it has given up what it must before."""
    if values["active"]:
        # As long as there is a status, each answer brings its line, and no task.
        yield from _configured(member, None, None)
    process = _PROCESS.search(member.client_id or "")
    of_streams: dict[str, Any] = {role: _rows(values[role]) for role in ("active", "standby", "warmup")}
    of_streams |= {"process_id": None if process is None else process["process"], "member_epoch": member.generation}
    yield "streams_member_assigned", {"of_streams": of_streams}


def streams_refused(_: LoggedStreamThread, values: Mapping[str, Any]) -> Said:
    """An error that ends the thread."""
    problem = values["problem"]
    reason = next((words for error, words in _REASONS.items() if problem.startswith(error)), "unknown")
    error = "UNSUPPORTED_VERSION" if reason == "turned-off" else problem
    yield "streams_heartbeat_refused", {"of_streams": {"error": error, "reason": reason}}


def task_restored(_: LoggedStreamThread, values: Mapping[str, Any]) -> Said:
    """An active task has its state."""
    found = _TASK.fullmatch(values["task"])
    if found is not None:
        yield TASK_RESTORED, {"task": (found["subtopology"], int(found["task"]))}


def _rows(listed: str) -> list[dict[str, Any]]:
    tasks = _TASK.finditer(listed.replace(",", " "))
    return [{"topic": each["subtopology"], "partition": int(each["task"])} for each in tasks]


STREAMS_READERS: Final[dict[str, Callable[[LoggedStreamThread, Mapping[str, Any]], Said]]] = {
    "streams_status": streams_status,
    "streams_given": streams_given,
    "streams_refused": streams_refused,
    TASK_RESTORED: task_restored,
}
"""By the kind of a line what it says."""
