"""What clients sent and what they were answered, from the recording."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson
from pydantic import Field

from rejoin.coordinator.control.fault_rules import ApiName, Body
from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Context, Millis, Received
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST
from rejoin.transcript.recording import Interception, Step


class RequestsQuery(Body):
    """Which requests."""

    api: ApiName | None = Field(default=None, description="an API by name or number, as JoinGroup or 11")
    client_id: str | None = Field(default=None, description="what the request says of its client")
    since: int = Field(default=0, ge=0, description="a mark: what came behind it; all of it unless given")


class RecordedRequest(NamedTuple):
    """A request, and the answer that its client got; none as long as it waits, and where a fault lost it."""

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


def sent_requests(steps: Iterable[Step], wanted: RequestsQuery) -> list[RecordedRequest]:
    """The requests of clients among these steps, in the order in which they were sent.

    What the control and other brokers asked for goes past the fault injector, which marks what clients sent.
    """
    found: dict[int, RecordedRequest] = {}
    tokens: dict[int, int] = {}
    for step in steps:
        what = step.what
        if isinstance(what, Received) and isinstance(what.token, PendingReply) and what.token.is_of_client:
            tokens[id(what.token)] = id(what.request)
            found[id(what.request)] = _sent(step, what.request, what.context)
        elif isinstance(what, Interception):
            # A fault before the core: the request was never received. After it: another answer, or none.
            sent = found.get(id(what.request)) or _sent(step, what.request, what.context)
            answer = what.request.error_response(sent.version, ErrorCode[what.error]) if what.error else None
            found[id(what.request)] = sent._replace(response=answer)
        for effect in step.effects:
            if isinstance(effect, Reply) and (asked := tokens.pop(id(effect.token), None)) is not None:
                found[asked] = found[asked]._replace(response=effect.response)
    return [
        each
        for each in found.values()
        if each.mark > wanted.since and wanted.api in (None, each.api) and wanted.client_id in (None, each.client_id)
    ]


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
