"""Lines about errors that a client got, by the kind of line that other clients write about the error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from rejoin.journal.kafka_logs.clients.errors import OF_TOPICS, error_in
from rejoin.pipeline.reading.client_logs.families import ClientMessage
from rejoin.pipeline.vocabulary import TOPIC_UNAVAILABLE

_OF_GROUPS: Final = (
    "JoinGroup",
    "SyncGroup",
    "GroupCoordinator",
    "FindCoordinator",
    "OffsetFetch",
    "Metadata",
    "Fetch",
)
"""Requests of a consumer whose errors are its group's, or its topics'."""
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(OF_TOPICS, TOPIC_UNAVAILABLE),
    **dict.fromkeys(
        ("INCONSISTENT_GROUP_PROTOCOL", "GROUP_MAX_SIZE_REACHED", "INVALID_SESSION_TIMEOUT"), "join_failed"
    ),
    **dict.fromkeys(("GROUP_AUTHORIZATION_FAILED", "FENCED_INSTANCE_ID"), "join_failed"),
    **dict.fromkeys(("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"), "coordinator_lost"),
    **dict.fromkeys(("COORDINATOR_LOAD_IN_PROGRESS",), "coordinator_lost"),
    **dict.fromkeys(("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"), "heartbeat_failed"),
    **dict.fromkeys(("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"), "rejoin_requested"),
}
"""Kinds of lines about an error, where a client does not say in which step it got it."""
_TOPIC_ERRORS: Final = re.compile(r"(?P<topic>[\w.-]+)=(?P<error>[A-Z_]+)")
_TOPIC: Final = re.compile(r"not available: (?P<topic>[\w.-]+):|[A-Z]{4,}\{(?P<inner>[\w.-]+)")
_NAMES: Final = re.compile(r"[\w.-]+")


def restated(message: ClientMessage, *, has_joined: bool) -> Iterator[ClientMessage]:
    """A line as those of other clients say the same; a line about several topics, once for each.

    ``has_joined``: whether the log shows the consumer as a member, and with it what came before a crash.
    """
    kind, values = message.kind, message.values
    problem = values.get("problem")
    if kind == TOPIC_UNAVAILABLE:
        yield from _of_topics(message, values)
    elif kind in ("response", "session_error", "crashed"):
        error = error_in(str(problem)) if problem else None
        found = _KINDS.get(error or "")
        if kind == "crashed":
            yield message
        if kind == "crashed" and has_joined and found not in (TOPIC_UNAVAILABLE, "join_failed"):
            return
        if found is None or values.get("api", _OF_GROUPS[0]) not in _OF_GROUPS:
            if kind == "response":
                yield replace(message, kind="remark")
            return
        said = replace(message, kind=found)
        yield from _of_topics(said, values) if found == TOPIC_UNAVAILABLE else (said,)
    elif kind == "join_failed" and (error := error_in(str(problem or message.text))) is not None:
        if error in OF_TOPICS:
            yield from _of_topics(replace(message, kind=TOPIC_UNAVAILABLE), values)
        else:
            yield replace(message, values={**values, "problem": problem or message.text})
    else:
        yield message


def _of_topics(message: ClientMessage, values: Mapping[str, Any]) -> Iterator[ClientMessage]:
    """The message for each topic, with Kafka's name of the error; nothing where the error is another one."""
    found = [(each["topic"], each["error"]) for each in _TOPIC_ERRORS.finditer(values.get("topic_errors", ""))]
    if not found:
        problem = str(values.get("problem") or message.text)
        named = _TOPIC.search(problem)
        topics = _NAMES.findall(str(values.get("topics") or values.get("topic") or ""))
        topics = topics or ([named["topic"] or named["inner"]] if named is not None else [None])
        found = [(topic, error_in(problem) or "") for topic in topics]
    for topic, error in found:
        if error in OF_TOPICS:
            yield replace(message, values={"topic": topic, "problem": error})
