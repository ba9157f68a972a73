"""Requests and their answers as ``kafka-request.log`` has them: JSON in a line, since Kafka 2.8 (KIP-673).

A line is written when the answer is sent, so a request that never got one has none. ``remoteTimeMs`` is how long it was
parked, on the node's clock; ``localTimeMs`` is real. Port and correlation id of the client are not known here: 0, and
the number of the request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Broker, Context, Millis, Received
from rejoin.journal.kafka_logs.request_lines import LoggedHead, LoggedTimes, RequestOrigin, request_line
from rejoin.journal.kafka_logs.template import Version
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.request_contents.traits import traits_of
from rejoin.transcript.steps import Interception, Step

SINCE: Final[Version] = (2, 8)
_DEPRECATED_SHOWN: Final[tuple[Version, Version]] = ((3, 7), (3, 9))
_DEPRECATED_UP_TO: Final = {
    "ListOffsets": 0,
    "OffsetCommit": 1,
    "OffsetFetch": 0,
    "JoinGroup": 1,
    "CreateTopics": 1,
    "DeleteTopics": 0,
}
"""Versions that Kafka 3.7 marks as going away with 4.0 (KIP-896)."""


class RequestLog:
    """Pairs requests with their answers and writes the lines, in the order of the answers."""

    def __init__(self, version: Version, broker: Broker) -> None:
        self._version = version
        self._broker = broker

    def lines(self, steps: Iterable[Step], since: int, group_id: str | None) -> list[str]:
        """The lines of what was answered behind a mark, of one group or of all."""
        steps = list(steps)
        overruled = {id(step.what.request) for step in steps if isinstance(step.what, Interception)}
        asked: dict[int, Step] = {}
        lines: list[str] = []
        for step in steps:
            what = step.what
            if isinstance(what, Received):
                asked[id(what.token)] = step
            elif isinstance(what, Interception) and what.error and step.number > since:
                answer = what.request.error_response(what.context.api_version, ErrorCode[what.error])
                lines += self._line(step, step.at, what.request, what.context, answer, group_id)
            for effect in step.effects:
                if isinstance(effect, Reply) and (asking := asked.pop(id(effect.token), None)) is not None:
                    received = asking.what
                    assert isinstance(received, Received), "only requests are answered"
                    if step.number > since and id(received.request) not in overruled:
                        lines += self._line(
                            asking, step.at, received.request, received.context, effect.response, group_id
                        )
        return lines

    def _line(
        self,
        asking: Step,
        at: Millis,
        request: Request,
        who: Context,
        response: Response,
        group_id: str | None,
    ) -> list[str]:
        if group_id is not None and group_id not in traits_of(request, who.api_version).groups:
            return []
        api, version = BY_REQUEST[type(request)], who.api_version
        first, last = _DEPRECATED_SHOWN
        is_deprecated = first <= self._version <= last and version <= _DEPRECATED_UP_TO.get(api.name, -1)
        local, parked_ms = round(asking.took_ms, 3), at - asking.at
        line = request_line(
            at,
            LoggedHead(api.name, api.key, version, asking.number, who.client_id, is_deprecated),
            RequestOrigin(f"{self._broker.host}:{self._broker.port}-{who.client_host.lstrip('/')}:0-0", who.principal),
            LoggedTimes(parked_ms + local, local, parked_ms),
            orjson.loads(request.to_json(version)),
            orjson.loads(response.to_json(version)),
        )
        return [line]
