"""The service over HTTP: Kafka's requests by POST, views by GET.

The server is aiohttp's low-level one with a dispatch of its own: one dictionary, no middlewares, no log line unless
debug is on. A request that has to wait costs a future.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from contextlib import suppress
from difflib import get_close_matches
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote

import structlog
from aiohttp import hdrs, web

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import ANONYMOUS
from rejoin.coordinator.pending_reply import NoReply
from rejoin.coordinator.service.arrivals import Arrivals, close_servers
from rejoin.coordinator.service.defaults import BACKLOG, BODY_SECONDS, HEAD_SECONDS, MAX_BODY_BYTES
from rejoin.coordinator.service.driver import Runtime, Submit
from rejoin.coordinator.service.http.access import JSON, Access, check_content_type
from rejoin.coordinator.service.http.cluster_views import resign
from rejoin.coordinator.service.http.connections import Connection, Connections
from rejoin.coordinator.service.http.problems import Problem, one_error
from rejoin.coordinator.service.http.rpc import (
    API_VERSION,
    CLIENT_ID,
    KAFKA_ERROR,
    PRINCIPAL,
    Answer,
    Dates,
    Route,
    context,
    correlation,
)
from rejoin.coordinator.service.http.views import ROUTES, Views
from rejoin.coordinator.service.logs import LoggedReasons
from rejoin.coordinator.service.metrics import ERRORS_TOTAL, Metrics
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.coordinator.service.served_version import NO_ERROR
from rejoin.protocol.brokers.listener_address import HTTP
from rejoin.protocol.brokers.offered_versions import served
from rejoin.protocol.message import Request
from rejoin.protocol.registry import API_VERSIONS, DEFINED
from rejoin.protocol.wire.errors import ResponseTooLarge

if TYPE_CHECKING:
    from rejoin.coordinator.service.http.login import HttpLogin

CONTROL: Final = "/control"
RESIGN: Final = "/cluster/partitions/{partition}/resign"
_RESIGN: Final = re.compile(r"/cluster/partitions/([0-9]{1,9})/resign")


class Controlling(Protocol):
    """The control API, between the service and its runtime."""

    submit: Submit
    """As the runtime's; a request may be delayed, refused or lost."""

    async def serve(self, request: web.BaseRequest, path: str, body: bytes) -> web.StreamResponse:
        """Answer a request to a path under ``/control``."""


class Service:
    """The HTTP side of a runtime."""

    def __init__(
        self,
        runtime: Runtime,
        views: Views,
        metrics: Metrics,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        body_seconds: float = BODY_SECONDS,
        head_seconds: float = HEAD_SECONDS,
        control: Controlling | None = None,
        arrivals: Arrivals | None = None,
        access: Access | None = None,
        security: ListenerSecurity | None = None,
    ) -> None:
        self.runtime = runtime
        self._submit = runtime.submit if control is None else control.submit
        self._control = control
        self._access = access or Access()
        self._security = security
        self._login: HttpLogin | None = None
        self.metrics = metrics
        self._views = views
        views.has_control = control is not None
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds
        versions = served(runtime.node.settings.emulator_as_kafka)
        self._routes = {
            api.path: Route(api, metrics.api(api.name), versions[api.key])
            for api in DEFINED.values()
            if api.key in versions
        }
        self._dates = Dates()
        self._serving = False
        self._stopping = False
        self._server = Connections(self._handle, metrics, arrivals or Arrivals(), head_seconds)
        self._listening: asyncio.Server | None = None
        self._failed_handshakes = LoggedReasons("rejoin_refused_requests_total")
        self._refused = LoggedReasons(ERRORS_TOTAL)
        log: Any = structlog.get_logger("coordinator").bind()
        self._log = log
        self._log_requests: bool = log.is_enabled_for(logging.DEBUG)

    async def listen(self, listener: socket.socket) -> None:
        """Listen on a bound socket. Until ``begin`` only the views are served."""
        tls = None
        if self._security is not None:
            tls, self._login = self._security.tls(HTTP), _login(self._security, self.runtime.node.settings)
            self._security.on_failed_handshake = self._take_failed_handshake
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._server, sock=listener, backlog=BACKLOG, ssl=tls)

    def _take_failed_handshake(self, reason: str) -> None:
        """A client of any listener could not agree on TLS, or showed no good certificate; said once for each reason."""
        self.metrics.refused["none"] += 1
        logged = self._failed_handshakes.to_log("", reason)
        if logged is not None:
            self._log.warning("tls_handshake_failed", reason=logged)

    async def begin(self, listener: socket.socket) -> None:
        """Serve everything. The bound socket may already be listening."""
        self._serving = True
        self._views.is_starting = False
        if self._listening is None:
            await self.listen(listener)

    async def abandon(self) -> None:
        """Stop before ``begin``."""
        self._stopping = True
        if self._listening is not None:
            await close_servers([self._listening])
        self._server.stop_looking()
        self._server.pre_shutdown()
        with suppress(asyncio.TimeoutError):
            await self._server.shutdown(0.1)

    async def stop(self, patience: float = 1.0) -> None:
        """Stop accepting, answer parked requests, flush the answers, and close the connections."""
        self._serving, self._stopping = False, True
        if self._listening is not None:
            await close_servers([self._listening])
        await self.runtime.drain()
        self._views.stop()
        await asyncio.sleep(0)
        self._server.stop_looking()
        self._server.pre_shutdown()
        with suppress(asyncio.TimeoutError):
            await self._server.shutdown(patience)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.waits_since, connection.is_busy = None, True
        try:
            return await self._answer(request)
        finally:
            connection.is_busy = False

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self._access.check(request)
            principal = None if self._login is None else await self._principal(request, self._login)
            route = self._routes.get(request.raw_path)
            if route is None or request.method != "POST" or not self._serving:
                return await self._elsewhere(request, principal)
            return await self._call(route, request, principal)
        except Problem as problem:
            return self._refuse(request, problem)
        except NoReply:
            if request.transport is not None:
                request.transport.abort()
            return Answer(request, b"")
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as problem:
            self._log.error("request_failed", path=request.path, problem=repr(problem), exc_info=problem)
            return self._refuse(request, Problem(500, "internal-error", "the service failed"))

    async def _principal(self, request: web.BaseRequest, login: HttpLogin) -> str | None:
        """The principal of a request. Paths with a token of their own need no login."""
        path, protocol = unquote(request.raw_path.partition("?")[0]), request.protocol
        assert isinstance(protocol, Connection)
        if self._access.has_token and (path == CONTROL or path.startswith(f"{CONTROL}/") or _RESIGN.fullmatch(path)):
            return None
        return await login.principal(request, protocol.client_host)

    async def _call(self, route: Route, request: web.BaseRequest, principal: str | None) -> web.StreamResponse:
        content = request.content
        if content.is_eof() and content.total_bytes <= self._max_body_bytes:
            body = content.read_nowait()
        else:
            body = await self.read(request)
        began = perf_counter()
        headers = request.headers
        kind = headers.get("Content-Type")
        if kind != JSON:
            check_content_type(kind)
        variant = route.variant(headers.get(API_VERSION))
        protocol = request.protocol
        assert isinstance(protocol, Connection)
        request_context = context(
            variant.version,
            headers.get(CLIENT_ID, ""),
            principal or headers.get(PRINCIPAL, ANONYMOUS),
            protocol.client_host,
            headers.get(hdrs.HOST, ""),
        )
        echo = correlation(headers)
        message = variant.parse(body)
        pending = self._submit(message, request_context)
        response, delivery = pending.response, None
        took = route.metrics.took
        if response is None:
            took = route.metrics.parked
            response, delivery = await pending.answer(), pending.delivery
            if response is None:
                response = variant.failure()
                if response is None:
                    raise Problem(503, "internal-error", f"{route.api.name} failed; nothing was changed")
        try:
            error, head, body = variant.write(response)
        except ResponseTooLarge as problem:
            variant.log_too_large(self._log, self._refused, "", request_context, problem)
            response = variant.too_large(message)
            error, head, body = variant.write(response)
        if variant.has_nested_errors or error != NO_ERROR:
            refusals = variant.count_errors(response, route.metrics.errors)
            if refusals is not None:
                variant.log_refusals(self._log, self._refused, "", request_context, message, refusals)
        millis = (perf_counter() - began) * 1_000
        answers = route.metrics.answers
        answers[error] = answers.get(error, 0) + 1
        took.observe(millis)
        if self._log_requests:
            variant.log(self._log, request_context.client_id, error, millis)
        if request.keep_alive and request.version == (1, 1):
            answer = head + echo + self._dates.line() + body
            if delivery is not None and request.transport is not None:
                await delivery.write(answer, request.transport)
                return Answer(request, b"")
            return Answer(request, answer)
        return _plain(error, echo, body)

    async def read(self, request: web.BaseRequest) -> bytes:
        """The body of a request that is large, slow or announced first."""
        limit = self._max_body_bytes
        announced = request.content_length
        if announced is not None and announced > limit:
            raise _too_large(limit)
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_seconds):
                while chunk := await request.content.readany():
                    body += chunk
                    if len(body) > limit:
                        raise _too_large(limit)
        except TimeoutError:
            detail = f"the body did not arrive within {self._body_seconds:g} s"
            raise Problem(408, "request-timeout", detail) from None
        except web.RequestPayloadError as problem:
            # aiohttp puts the status in front, on a line of its own.
            detail = str(problem).rpartition("message:\n")[2].strip().partition("\n")[0].rstrip(" :.")
            raise Problem(400, "invalid-http", f"the body cannot be read: {detail}") from None
        return bytes(body)

    async def _elsewhere(self, request: web.BaseRequest, principal: str | None) -> web.StreamResponse:
        """Serve everything but the usual Kafka requests."""
        if self._stopping:
            raise Problem(503, "shutting-down", "this node is shutting down")
        path = unquote(request.raw_path.partition("?")[0])
        match = self._views.match(request.raw_path)
        if not self._serving and (match is None or request.method not in {"GET", "HEAD"}):
            raise Problem(503, "starting", "this node is starting; GET /readyz says why")
        route = self._routes.get(path)
        if route is not None:
            if request.method == "POST":
                return await self._call(route, request, principal)
            if route.api is API_VERSIONS and request.method in {"GET", "HEAD"}:
                return await self._api_versions(request, route)
            allowed = "GET, HEAD, POST" if route.api is API_VERSIONS else "POST"
            raise _wrong_method(request.method, path, allowed)
        if path == CONTROL or path.startswith(CONTROL + "/"):
            if self._control is None:
                raise Problem(404, "unknown-route", f"{CONTROL} is off; start the coordinator with --control")
            return await self._control.serve(request, path, await self.read(request))
        resigning = _RESIGN.fullmatch(path)
        if resigning is not None:
            if request.method != "POST":
                raise _wrong_method(request.method, path, "POST")
            self._access.check_token(request.headers)
            check_content_type(request.headers.get("Content-Type"))
            return web.json_response(resign(self.runtime, int(resigning[1])))
        if match is None:
            raise self._unknown(path)
        if request.method not in {"GET", "HEAD"}:
            raise _wrong_method(request.method, path, "GET, HEAD")
        return await self._views.show(match, request)

    async def _api_versions(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        protocol = request.protocol
        assert isinstance(protocol, Connection)
        # Version 2: the newest that requires no client software name.
        variant = route.variant("2")
        message: Request = route.api.request()
        response = await self._submit(message, context(2, "", ANONYMOUS, protocol.client_host)).answer()
        if response is None:
            raise Problem(503, "internal-error", "ApiVersions failed")
        error, _, body = variant.write(response)
        return _plain(error, b"", body)

    def _unknown(self, path: str) -> Problem:
        known = [*self._routes, *ROUTES, RESIGN]
        near = get_close_matches(path, known, n=1)
        hint = f"; the nearest is {near[0]}" if near else ""
        return Problem(
            404, "unknown-route", f"there is no {path[:200]}{hint}", one_error("path", "unknown route", path)
        )

    def _refuse(self, request: web.BaseRequest, problem: Problem) -> web.Response:
        self.metrics.problems[problem.status] += 1
        if self._log_requests:
            self._log.debug("problem", path=request.raw_path, status=problem.status, detail=problem.detail)
        response = problem.response()
        if request.content.exception() is not None:
            # Where a broken body ends is unknown, so no request can follow it.
            response.force_close()
        with suppress(Problem):
            name, _, number = correlation(request.headers).decode("ascii").strip().partition(": ")
            if name:
                response.headers[name] = number
        return response


def _login(security: ListenerSecurity, settings: Settings) -> HttpLogin | None:
    """The authenticator of requests; none if a request may name its principal itself."""
    protocol = security.protocol(HTTP)
    if not protocol.has_sasl and (not protocol.has_tls or settings.ssl_client_auth == "none"):
        return None
    # Imported here: most nodes do without.
    from rejoin.coordinator.service.http.login import HttpLogin  # noqa: PLC0415

    if protocol.has_sasl:
        return HttpLogin(settings, security.logins(), None, security.failed_logins)
    return HttpLogin(settings, None, security.principals(), security.failed_logins)


def _plain(error: str, echo: bytes, body: bytes) -> web.Response:
    """An answer for HTTP/1.0, for a connection that ends with it, or for a GET."""
    headers: dict[str, str] = {KAFKA_ERROR: error} if error else {}
    if echo:
        name, _, value = echo.decode("ascii").strip().partition(": ")
        headers[name] = value
    return web.Response(body=body, content_type=JSON, headers=headers)


def _too_large(limit: int) -> Problem:
    return Problem(413, "body-too-large", f"a body may have at most {limit} bytes")


def _wrong_method(method: str, path: str, allowed: str) -> Problem:
    detail = f"{path} takes {allowed}, not {method[:32]}"
    return Problem(405, "wrong-method", detail, headers={"Allow": allowed})
