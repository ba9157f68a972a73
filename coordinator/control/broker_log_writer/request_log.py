"""Requests and their answers as ``kafka-request.log`` has them: JSON in a line, since Kafka 2.8 (KIP-673).

A line is written when the answer is sent, so a request that never got one has none. ``remoteTimeMs`` is how long it was
parked, on the node's clock; ``localTimeMs`` is real. Port and correlation id of the client are not known here: 0, and
the number of the request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from rejoin.coordinator.control.broker_log_writer.writer import stamp
from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Broker, Context, Millis, Received
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


def key_name(api: str) -> str:
    """JoinGroup as JOIN_GROUP."""
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in api).lstrip("_")


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
        envelope = self._envelope(asking, at - asking.at, request, who, response)
        return [f"[{stamp(at)}] DEBUG Completed request:{orjson.dumps(envelope).decode()} (kafka.request.logger)"]

    def _envelope(
        self, asking: Step, parked_ms: Millis, request: Request, who: Context, response: Response
    ) -> dict[str, Any]:
        api, version = BY_REQUEST[type(request)], who.api_version
        header: dict[str, Any] = {
            "requestApiKey": api.key,
            "requestApiVersion": version,
            "correlationId": asking.number,
            "clientId": who.client_id,
            "requestApiKeyName": key_name(api.name),
        }
        first, last = _DEPRECATED_SHOWN
        if first <= self._version <= last and version <= _DEPRECATED_UP_TO.get(api.name, -1):
            header["requestApiVersionDeprecated"] = True
        local = round(asking.took_ms, 3)
        return {
            "isForwarded": False,
            "requestHeader": header,
            "request": orjson.loads(request.to_json(version)),
            "response": orjson.loads(response.to_json(version)),
            "connection": f"{self._broker.host}:{self._broker.port}-{who.client_host.lstrip('/')}:0-0",
            "totalTimeMs": round(parked_ms + local, 3),
            "requestQueueTimeMs": 0.0,
            "localTimeMs": local,
            "remoteTimeMs": float(parked_ms),
            "throttleTimeMs": 0,
            "responseQueueTimeMs": 0.0,
            "sendTimeMs": 0.0,
            "securityProtocol": "PLAINTEXT",
            "principal": who.principal,
            "listener": "PLAINTEXT",
            "clientInformation": {"softwareName": "unknown", "softwareVersion": "unknown"},
        }
