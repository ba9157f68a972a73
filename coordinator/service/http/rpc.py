"""From an API's HTTP request to the core and back: the part of the service that runs for every heartbeat.

Everything that depends only on API and version is worked out once, in a :class:`Variant`. Answers that are nothing but
an error code are written once and kept.
"""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from multidict import CIMultiDictProxy, istr
from pydantic import ValidationError

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.http.problems import Problem, invalid_body, one_error, wrong_version
from rejoin.coordinator.service.metrics import ApiMetrics
from rejoin.coordinator.service.refusals.json_size import check_json_size
from rejoin.coordinator.service.served_version import ServedVersion
from rejoin.protocol.brokers.listener_address import check_advertised_host
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, WrongVersion
from rejoin.protocol.registry import Api

CLIENT_ID: Final = istr("Kafka-Client-Id")
API_VERSION: Final = istr("Kafka-Api-Version")
CORRELATION_ID: Final = istr("Kafka-Correlation-Id")
PRINCIPAL: Final = istr("Kafka-Principal")
KAFKA_ERROR: Final = istr("Kafka-Error")

_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,4}")
_CORRELATION: Final = re.compile(r"-?[0-9]{1,10}")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_NAME: Final = 1_024
_INT32: Final = range(-(2**31), 2**31)


class Answer(web.StreamResponse):
    """A Kafka answer, written in one piece. The bytes are final: status, headers and body."""

    def __init__(self, request: web.BaseRequest, data: bytes) -> None:
        # Not the base's own: it prepares headers, a state and cookies for each answer, which none of ours has.
        self._answered = request
        self._data = data

    @property
    def keep_alive(self) -> bool:
        return True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Write the answer."""
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client has disconnected")
        transport.write(self._data)

    async def write_eof(self, data: bytes = b"") -> None:
        """Wait for a slow reader."""
        if self._answered.protocol.writing_paused:
            await self._answered.writer.drain()


class Variant(ServedVersion):
    """One version of an API: how its requests are read and its answers written."""

    __slots__ = ("_kept", "_request")

    def __init__(self, api: Api, version: int) -> None:
        super().__init__(api, version)
        self._request = api.request
        self._kept: dict[ErrorCode, tuple[str, bytes, bytes]] = {}

    def parse(self, body: bytes) -> Request:
        """Read a request, or raise the problem with it."""
        try:
            return self._request.parse(body, self.version)
        except ValidationError as problem:
            raise invalid_body(self.api.name, self.version, problem) from None
        except WrongVersion as problem:
            raise wrong_version(self.api.name, self.version, problem) from None

    def write(self, response: Response) -> tuple[str, bytes, bytes]:
        """The name of an answer's error ("" where it has none), the head of its HTTP form, and its body.

        Raises :class:`ResponseTooLarge`.
        """
        error = self.bare_error(response)
        if error is None:
            return self._write(response)
        kept = self._kept.get(error)
        if kept is None:
            kept = self._kept[error] = self._write(response)
        return kept

    def _write(self, response: Response) -> tuple[str, bytes, bytes]:
        check_json_size(response, self.version)
        body = response.to_json(self.version)
        error = self.error_of(response)
        named = f"Kafka-Error: {error}\r\n" if error else ""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{named}Content-Length: {len(body)}\r\n"
        return error, head.encode("ascii"), body


class Route:
    """An API's path: its versions, as clients name them, each made with its first request; and its counters."""

    __slots__ = ("_newest", "_oldest", "_variants", "api", "metrics")

    def __init__(self, api: Api, metrics: ApiMetrics, versions: tuple[int, int]) -> None:
        self.api = api
        self.metrics = metrics
        self._oldest, self._newest = versions
        self._variants: dict[str | None, Variant] = {}

    def variant(self, named: str | None) -> Variant:
        """The version that a request asks for; the API's default, if it names none."""
        return self._variants.get(named) or self._add(named)

    def _add(self, named: str | None) -> Variant:
        oldest, newest = self._oldest, self._newest
        if named is None:
            variant = self.variant(str(min(newest, self.api.default_version)))
        elif _DECIMAL.fullmatch(named) and oldest <= int(named) <= newest:
            variant = Variant(self.api, int(named))
        else:
            raise self._refusal(named)
        self._variants[named] = variant
        return variant

    def _refusal(self, named: str) -> Problem:
        oldest, newest = self._oldest, self._newest
        if not _DECIMAL.fullmatch(named):
            detail = f"{API_VERSION}: expected a whole number from {oldest} to {newest}"
            return Problem(400, "invalid-header", detail, one_error(API_VERSION, "expected a whole number", named))
        reason = f"{self.api.name} is supported in versions {oldest} to {newest}"
        return Problem(400, "unsupported-version", f"{reason}, not {named}", one_error(API_VERSION, reason, named))


@lru_cache(maxsize=4_096)
def context(version: int, client_id: str, principal: str, host: str, local_host: str = "") -> Context:
    """The context of a request from ``host``, whose Host header is ``local_host``.

    Clients send the same in every request, so the checks are cached.
    """
    _check_name(CLIENT_ID, client_id)
    _check_name(PRINCIPAL, principal)
    kind, colon, name = principal.partition(":")
    if kind != "User" or not colon or not name:
        reason = "expected User: and a name"
        raise Problem(400, "invalid-header", f"{PRINCIPAL}: {reason}", one_error(PRINCIPAL, reason, principal))
    return Context(
        api_version=version,
        client_id=client_id,
        client_host=f"/{host}",
        principal=principal,
        local_host=_name_of_host(local_host),
    )


def _name_of_host(header: str) -> str:
    """The name or address in a Host header that was let in; empty where clients could not connect to it."""
    name = urlsplit(f"//{header}").hostname or ""
    try:
        check_advertised_host(name)
    except ValueError:
        return ""
    return name


def correlation(headers: CIMultiDictProxy[str]) -> bytes:
    """The header that gives a request's correlation id back; nothing when it has none."""
    given = headers.get(CORRELATION_ID)
    if given is None:
        return b""
    if not _CORRELATION.fullmatch(given) or int(given) not in _INT32:
        reason = "expected a whole number of 32 bits"
        raise Problem(400, "invalid-header", f"{CORRELATION_ID}: {reason}", one_error(CORRELATION_ID, reason, given))
    return b"Kafka-Correlation-Id: " + given.encode("ascii") + b"\r\n"


def _check_name(header: str, value: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _bad_name(header, "expected UTF-8", value) from None
    if _UNPRINTABLE.search(value):
        raise _bad_name(header, "expected no control characters", value)
    if len(value) > _LONGEST_NAME:
        raise _bad_name(header, f"expected at most {_LONGEST_NAME} characters", value)


def _bad_name(header: str, reason: str, value: str) -> Problem:
    return Problem(400, "invalid-header", f"{header}: {reason}", one_error(header, reason, value))


class Dates:
    """The ``Date`` line, which ends every head, written once a second."""

    __slots__ = ("_line", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._line = b""

    def line(self) -> bytes:
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._line = f"Date: {formatdate(now, usegmt=True)}\r\n\r\n".encode("ascii")
        return self._line
