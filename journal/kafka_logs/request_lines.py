"""A line of ``kafka-request.log``: a request with its answer as JSON, since Kafka 2.8 (KIP-673)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that has not logged in."""
UNKNOWN_SOFTWARE = ("unknown", "unknown")
"""The name and version of a client that has said neither."""


def key_name(api: str) -> str:
    """JoinGroup as JOIN_GROUP."""
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in api).lstrip("_")


def api_name(key: str) -> str:
    """JOIN_GROUP as JoinGroup."""
    return "".join(word.capitalize() for word in key.split("_"))


def stamp(at_ms: int) -> str:
    """An instant, in ms since 1970, as log4j prints it where the broker's clock is set to UTC."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S,") + f"{at_ms % 1_000:03d}"


@dataclass(frozen=True, slots=True)
class LoggedHead:
    """The header of a request."""

    api: str
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    is_deprecated: bool = False


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The connection that a request came by. ``connection`` has both ends, with the number of the connection."""

    connection: str
    principal: str = ANONYMOUS
    protocol: str = "PLAINTEXT"
    software: tuple[str, str] = UNKNOWN_SOFTWARE


@dataclass(frozen=True, slots=True)
class LoggedTimes:
    """Durations in ms: of all, of the work, and of the wait for others."""

    total: float
    local: float
    parked: float


def request_line(
    at_ms: int, head: LoggedHead, origin: RequestOrigin, times: LoggedTimes, request: Any, response: Any
) -> str:
    """The line of a request whose answer was sent at an instant; ``request`` and ``response`` are Kafka's JSON."""
    header: dict[str, Any] = {
        "requestApiKey": head.key,
        "requestApiVersion": head.version,
        "correlationId": head.correlation_id,
        "clientId": head.client_id,
        "requestApiKeyName": key_name(head.api),
    }
    if head.is_deprecated:
        header["requestApiVersionDeprecated"] = True
    name, version = origin.software
    envelope = {
        "isForwarded": False,
        "requestHeader": header,
        "request": request,
        "response": response,
        "connection": origin.connection,
        "totalTimeMs": round(times.total, 3),
        "requestQueueTimeMs": 0.0,
        "localTimeMs": round(times.local, 3),
        "remoteTimeMs": float(times.parked),
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.0,
        "sendTimeMs": 0.0,
        "securityProtocol": origin.protocol,
        "principal": origin.principal,
        "listener": origin.protocol,
        "clientInformation": {"softwareName": name, "softwareVersion": version},
    }
    return f"[{stamp(at_ms)}] DEBUG Completed request:{orjson.dumps(envelope).decode()} (kafka.request.logger)"
