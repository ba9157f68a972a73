"""Kafka's request log (``kafka-request.log``): requests with their answers, one a line, as JSON since Kafka 2.8.

A line is written when the answer is sent, so a request came ``totalTimeMs`` before the time of its line. Bodies are the
messages of ``protocol``, with bytes in base64: what a member subscribes to and owns stands in JoinGroup, who gets what
in SyncGroup. Requests without an answer are not in the log.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.lines import BrokenLine, Record
from rejoin.pipeline.reading.limits import INT32, LATEST_MS
from rejoin.protocol.embedded.consumer_protocol import decode_assignment, decode_subscription
from rejoin.protocol.errors import ErrorCode

BEGINNING: Final = "Completed request:"

OF_GROUPS: Final = frozenset(
    {
        "JOIN_GROUP",
        "SYNC_GROUP",
        "HEARTBEAT",
        "LEAVE_GROUP",
        "OFFSET_COMMIT",
        "OFFSET_FETCH",
        "OFFSET_DELETE",
        "TXN_OFFSET_COMMIT",
        "FIND_COORDINATOR",
        "DESCRIBE_GROUPS",
        "DELETE_GROUPS",
        "LIST_GROUPS",
        "CONSUMER_GROUP_HEARTBEAT",
        "CONSUMER_GROUP_DESCRIBE",
        "SHARE_GROUP_HEARTBEAT",
        "SHARE_GROUP_DESCRIBE",
        "STREAMS_GROUP_HEARTBEAT",
        "STREAMS_GROUP_DESCRIBE",
    }
)
"""Requests that are about groups."""
OF_PRODUCERS: Final = frozenset({"INIT_PRODUCER_ID", "ADD_PARTITIONS_TO_TXN", "ADD_OFFSETS_TO_TXN", "END_TXN"})
"""Requests that are about producers and their transactions."""
_OF_TOPICS: Final = frozenset({"FETCH", "LIST_OFFSETS", "METADATA", "CREATE_TOPICS"})
"""Requests of which the ends of logs are read, or the names of topics."""
READ: Final = OF_GROUPS | OF_PRODUCERS | _OF_TOPICS
"""Requests that are read; all others are counted, no more."""

_HOST: Final = re.compile(r".*:\d+-(?P<host>.*):\d+-\d+")


@dataclass(frozen=True, slots=True)
class LoggedMember:
    """A member as a JoinGroup or its leader's answer has it. What cannot be decoded is None."""

    member_id: str
    group_instance_id: str | None
    topics: tuple[str, ...] | None = None
    owned: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class LoggedExchange:
    """A request and its answer. Instants are ms since 1970, lengths ms."""

    line: int
    api: str
    api_version: int
    correlation_id: int
    client_id: str | None
    client_host: str | None
    software: str | None
    arrived_at_ms: int
    answered_at_ms: int
    total_ms: float
    queue_ms: float
    local_ms: float
    parked_ms: float
    throttle_ms: float
    group_id: str | None
    error: str | None
    request: dict[str, Any] = field(default_factory=dict)
    response: dict[str, Any] = field(default_factory=dict)
    connection: str | None = None
    """Both ends of the connection, with its number: a process that restarts has another one."""
    problem: str | None = None
    """The part of the bodies that could not be read, though the line could."""

    @property
    def member_id(self) -> str | None:
        """Who asked, or who the answer says it is now."""
        return str(self.request.get("memberId") or self.response.get("memberId") or "") or None

    @property
    def generation(self) -> int | None:
        """The generation that was answered, else the one that the request names."""
        for body in (self.response, self.request):
            for name in ("generationId", "generationIdOrMemberEpoch", "memberEpoch"):
                value = body.get(name)
                if isinstance(value, int) and value >= 0:
                    return value
        return None


def is_request(record: Record) -> bool:
    """Whether this record is a line of a request log."""
    return record.message.startswith(BEGINNING)


def read_exchange(record: Record) -> LoggedExchange | BrokenLine | None:
    """The request of a line; None if it is about no group, or is no request at all."""
    if not is_request(record):
        return None
    text = record.message.removeprefix(BEGINNING).strip()
    if not text.startswith("{"):
        if "apiKey=" not in text:
            return BrokenLine(record.line, "a request that is no JSON", text[:500])
        if not any(f"apiKey={name}" in text for name in ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP")):
            return None
        reason = "a request log of before Kafka 2.8, which is no JSON; log requests with 2.8 or later"
        return BrokenLine(record.line, reason, text[:500])
    try:
        envelope = json.loads(text)
        header = envelope["requestHeader"]
        api = str(header["requestApiKeyName"])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        return BrokenLine(record.line, f"no request of a request log, or cut short: {_words(problem)}", text[:500])
    if api not in READ:
        return None
    try:
        return _exchange(record, envelope, header, api)
    except (ValueError, KeyError, TypeError, OverflowError) as problem:
        return BrokenLine(record.line, f"a {api} that cannot be read: {_words(problem)}", text[:500])


def _words(problem: Exception) -> str:
    if isinstance(problem, KeyError):
        return f"no {problem.args[0]}"
    return str(problem)[:200]


def _exchange(record: Record, envelope: dict[str, Any], header: dict[str, Any], api: str) -> LoggedExchange:
    request, response = _body(envelope.get("request")), _body(envelope.get("response"))
    for body in (request, response):
        _check(body)
    total = _length(envelope, "totalTimeMs")
    about = envelope.get("clientInformation")
    software = f"{about.get('softwareName')} {about.get('softwareVersion')}" if isinstance(about, dict) else None
    host = _HOST.fullmatch(str(envelope.get("connection", "")))
    return LoggedExchange(
        record.line,
        api,
        _int32("requestApiVersion", header["requestApiVersion"]),
        _int32("correlationId", header.get("correlationId", -1)),
        str(header["clientId"]) if header.get("clientId") is not None else None,
        f"/{host['host']}" if host is not None else None,
        software,
        record.at_ms - round(total),
        record.at_ms,
        total,
        _length(envelope, "requestQueueTimeMs", 0) + _length(envelope, "responseQueueTimeMs", 0),
        _length(envelope, "localTimeMs", 0),
        _length(envelope, "remoteTimeMs", 0),
        _length(envelope, "throttleTimeMs", 0),
        group_of(request),
        error_of(response),
        request,
        response,
        envelope.get("connection"),
    )


def _length(envelope: dict[str, Any], name: str, otherwise: object = None) -> float:
    """A duration in ms."""
    found = float(envelope.get(name, otherwise) if otherwise is not None else envelope[name])
    if not 0 <= found < LATEST_MS:
        raise ValueError(f"{name} is {str(found)[:30]}, expected a duration in ms")
    return found


def _int32(name: str, value: object) -> int:
    if type(value) is not int or value not in INT32:
        raise ValueError(f"{name} is {repr(value)[:30]}, expected a number of at most 32 bits")
    return value


def _check(body: dict[str, Any]) -> None:
    """Raise ``ValueError`` where a field that is read here has another type than Kafka's."""
    for name, value in body.items():
        if value is None:
            continue
        if name in _TEXTS:
            # The consumer protocol's assignment is an object; nothing of it is read.
            if not isinstance(value, str) and not (name == "assignment" and isinstance(value, dict)):
                raise ValueError(f"{name} is {repr(value)[:30]}, expected text")
        elif name in _NUMBERS:
            _int32(name, value)
        elif name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                raise ValueError(f"{name} is {repr(value)[:30]}, expected a list of objects")
            for each in value:
                _check(each)


_TEXTS: Final = frozenset({
    "groupId", "key", "memberId", "groupInstanceId", "reason", "protocolName", "protocolType", "leader", "metadata",
    "assignment", "name",
})  # fmt: skip
_NUMBERS: Final = frozenset({
    "generationId", "generationIdOrMemberEpoch", "memberEpoch", "errorCode", "sessionTimeoutMs", "rebalanceTimeoutMs",
})  # fmt: skip
_LISTS: Final = frozenset({"protocols", "members", "assignments"})
"""Fields of the requests and responses about groups that are read, by their types."""


def _body(value: object) -> dict[str, Any]:
    """A body; brokers leave an empty text where they did not keep one."""
    return value if isinstance(value, dict) else {}


def group_of(request: dict[str, Any]) -> str | None:
    """The group that a request is about, or the one that it names alone."""
    if request.get("keyType"):
        # FindCoordinator asks for that of a transactional id, or of a share-partition.
        return None
    for name in ("groupId", "key"):
        if isinstance(request.get(name), str) and request[name]:
            return str(request[name])
    for name in ("groups", "groupsNames", "groupIds", "coordinatorKeys"):
        several = request.get(name)
        if isinstance(several, list) and len(several) == 1:
            only = several[0]
            return str(only.get("groupId")) if isinstance(only, dict) else str(only)
    return None


def error_of(response: dict[str, Any]) -> str | None:
    """The error's name: the answer's own, or the first of its parts; None when there is none."""
    code = response.get("errorCode")
    if not isinstance(code, int) or code == 0:
        code = next(_codes(response), 0)
    return error_name(code)


def error_name(code: int) -> str | None:
    """The name of an error; none for success."""
    if not code:
        return None
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"ERROR_{code}"


def _codes(body: object) -> Iterator[int]:
    """Error codes inside an answer that are none of success, in their order."""
    left = [body]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            code = each.get("errorCode")
            if isinstance(code, int) and code:
                yield code
            left += reversed([value for name, value in each.items() if name != "errorCode"])
        elif isinstance(each, list):
            left += reversed(each)


def decoded_subscription(metadata: object) -> tuple[tuple[str, ...] | None, tuple[tuple[str, int], ...] | None]:
    """Topics and owned partitions of a subscription in base64; None and None for what is no subscription."""
    try:
        found = decode_subscription(_raw(metadata))
    except ValueError:
        return None, None
    owned = tuple((topic, partition) for topic, partition in found.owned_partitions) if found.version >= 1 else None
    return found.topics, owned


def decoded_assignment(assignment: object) -> tuple[tuple[str, int], ...] | None:
    """Partitions of an assignment in base64. An empty one is one of nothing; None for what is no assignment."""
    try:
        raw = _raw(assignment)
        return tuple((topic, partition) for topic, partition in decode_assignment(raw).partitions) if raw else ()
    except ValueError:
        return None


def _raw(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"expected base64, not {type(value).__name__}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as problem:
        raise ValueError(f"no base64: {problem}") from None


def joining(exchange: LoggedExchange) -> LoggedMember:
    """Who sent a JoinGroup, with what stands in its metadata for the protocol that was chosen, else its first one."""
    request, response = exchange.request, exchange.response
    chosen = response.get("protocolName")
    protocols = [each for each in request.get("protocols") or () if isinstance(each, dict)]
    metadata = next((each.get("metadata") for each in protocols if each.get("name") == chosen), None)
    if metadata is None and protocols:
        metadata = protocols[0].get("metadata")
    topics, owned = (
        decoded_subscription(metadata) if request.get("protocolType", "consumer") == "consumer" else (None,) * 2
    )
    member = response.get("memberId") or request.get("memberId") or ""
    return LoggedMember(str(member), request.get("groupInstanceId"), topics, owned)


def roster(exchange: LoggedExchange) -> list[LoggedMember]:
    """The members in the leader's response; empty for all others."""
    members = []
    for each in exchange.response.get("members") or ():
        topics, owned = decoded_subscription(each.get("metadata"))
        members.append(LoggedMember(str(each.get("memberId")), each.get("groupInstanceId"), topics, owned))
    return members


def assignments(exchange: LoggedExchange) -> dict[str, tuple[tuple[str, int], ...] | None]:
    """Partitions by member id in a leader's SyncGroup; empty for followers."""
    return {
        str(each.get("memberId")): decoded_assignment(each.get("assignment"))
        for each in exchange.request.get("assignments") or ()
        if isinstance(each, dict)
    }


def leaving(exchange: LoggedExchange) -> list[tuple[str, str | None, str | None]]:
    """Who left with a LeaveGroup: member id, instance id, reason. Only those that were let go."""
    request, response = exchange.request, exchange.response
    if request.get("members") is None:
        return [] if exchange.error else [(str(request.get("memberId", "")), None, None)]
    answers = response.get("members") or []
    left = []
    for index, each in enumerate(request["members"]):
        answer = answers[index] if index < len(answers) else {}
        if not answer.get("errorCode"):
            left.append((str(each.get("memberId") or ""), each.get("groupInstanceId"), each.get("reason")))
    return left
