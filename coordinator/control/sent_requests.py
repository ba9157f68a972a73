"""Requests of clients with their responses, from the recorded steps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson
from pydantic import Field

from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.fault_injection.fault_rules import ApiName
from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Context, Millis, Received
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.journal.events.coordinator import GroupEvent
from rejoin.protocol.brokers.listener_address import HTTP
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST, PRODUCE
from rejoin.protocol.request_contents.traits import traits_of
from rejoin.protocol.wire.codec import codec_of
from rejoin.transcript.steps import Interception, Step

_ERROR_CODE: Final = re.compile(rb'"(?:e|partitionE)rrorCode":(-?[0-9]+)')
_CUT: Final = re.compile(r"cut after ([0-9]+) bytes$")


class RequestsQuery(Body):
    """Which requests."""

    api: ApiName | None = Field(default=None, description="an API by name or number, as JoinGroup or 11")
    client_id: str | None = Field(default=None, description="the client id in the request")
    since: int = Field(default=0, ge=0, description="a mark; only requests after it. Unless given, all requests")


class RecordedRequest(NamedTuple):
    """A request, and the answer that its client got.

    There is none as long as the request waits, where a fault lost it, and to a Produce with acks of 0.
    """

    mark: int
    at_ms: Millis
    api: str
    version: int
    client_id: str
    client_host: str
    request: Request
    response: Response | None

    def shown(self) -> dict[str, Any]:
        """The request as JSON has it, with Kafka's fields of its version."""
        response = None if self.response is None else orjson.loads(self.response.to_json(self.version))
        return {**self._asdict(), "request": orjson.loads(self.request.to_json(self.version)), "response": response}

    def errors(self) -> list[str]:
        """The names of the errors in the answer, each once."""
        answer = b"" if self.response is None else self.response.to_json(self.version)
        codes = dict.fromkeys(int(code) for code in _ERROR_CODE.findall(answer))
        return [ErrorCode(code).name for code in codes if code != ErrorCode.NONE]


def groups_in(step: Step) -> set[str]:
    """The groups that a step's request and its events name."""
    what = step.what
    named = {each.group_id for each in step.effects if isinstance(each, GroupEvent)}
    if isinstance(what, (Received, Interception)):
        named |= traits_of(what.request, what.context.api_version).groups
    return named


def sent_requests(steps: Iterable[Step], wanted: RequestsQuery) -> list[RecordedRequest]:
    """The requests of clients among these steps, in the order in which they were sent.

    What the control and other brokers asked for goes past the fault injector, which marks what clients sent.
    """
    found: dict[int, RecordedRequest] = {}
    tokens: dict[int, int] = {}
    for step in steps:
        what = step.what
        if isinstance(what, Received) and isinstance(what.token, PendingReply) and what.token.is_of_client:
            if _is_answered(what.request, what.context):
                tokens[id(what.token)] = id(what.request)
            found[id(what.request)] = _sent(step, what.request, what.context)
        elif isinstance(what, Interception):
            # A fault before the core: the request was never received. After it: another answer, or none.
            sent = found.get(id(what.request)) or _sent(step, what.request, what.context)
            found[id(what.request)] = sent._replace(response=_arrived(what, sent))
        for effect in step.effects:
            if isinstance(effect, Reply) and (asked := tokens.pop(id(effect.token), None)) is not None:
                found[asked] = found[asked]._replace(response=effect.response)
    return [
        each
        for each in found.values()
        if each.mark > wanted.since and wanted.api in (None, each.api) and wanted.client_id in (None, each.client_id)
    ]


def _is_answered(request: Any, context: Context) -> bool:
    """Kafka: a Produce with acks of 0 is not. Over HTTP it is, as each request is."""
    return context.listener == HTTP or BY_REQUEST[type(request)] is not PRODUCE or request.acks != 0


def _arrived(fault: Interception, sent: RecordedRequest) -> Response | None:
    """The answer of a fault, or the one that it cut behind its end; none where it was lost, cut short or changed.

    Over HTTP, what is cut counts as lost: its size depends on headers that are not recorded.
    """
    cut = _CUT.search(fault.text)
    if not _is_answered(sent.request, fault.context) or (fault.response is None and cut is None):
        return None
    answer = sent.response if fault.response is None else fault.response
    if answer is None or cut is None:
        return answer
    codec = codec_of(BY_REQUEST[type(sent.request)].key, sent.version)
    is_whole = codec is not None and len(codec.response_frame(0, answer)) <= int(cut[1])
    return answer if is_whole and fault.context.listener != HTTP else None


def _sent(step: Step, request: Request, context: Context) -> RecordedRequest:
    return RecordedRequest(
        step.number,
        step.at,
        BY_REQUEST[type(request)].name,
        context.api_version,
        context.client_id,
        context.client_host.lstrip("/"),
        request,
        None,
    )
