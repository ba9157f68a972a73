"""The HTTP listener of a proxy: its control API under ``/control``, and the pages beside it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import structlog
from aiohttp import web

from rejoin.coordinator.service.defaults import BACKLOG
from rejoin.coordinator.service.http.access import Access
from rejoin.coordinator.service.http.control import ControlRoutes
from rejoin.coordinator.service.http.problems import Problem, one_error
from rejoin.coordinator.service.http.server import CONTROL
from rejoin.coordinator.service.kafka.binding import listening_socket
from rejoin.coordinator.service.security.loopback import is_loopback
from rejoin.proxy.control.control import ProxyControl
from rejoin.proxy.live.views import ProxyPages

_LONGEST_BODY: Final = 1 << 20
_BODY_SECONDS: Final = 30.0


class ControlListener:
    """Serves a control over HTTP."""

    def __init__(
        self, control: ProxyControl, host: str, port: int, token: str | None, pages: ProxyPages | None = None
    ) -> None:
        self._pages = pages
        self._access = Access(host, token=token, is_local=is_loopback(host))
        self._routes = ControlRoutes(control, self._access)
        self._host = host
        self._wanted_port = port
        self._web = web.Server(self._handle, access_log=None)
        self._listening: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where the control API is found."""
        host = "127.0.0.1" if self._host in ("", "0.0.0.0", "::") else self._host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def start(self) -> None:
        """Listen. Raises ``ValueError`` where the port cannot be had."""
        try:
            sock = listening_socket(self._host, self._wanted_port)
        except ValueError as problem:
            raise ValueError(f"--control-port {self._wanted_port}: {problem}") from problem
        self.port = sock.getsockname()[1]
        self._listening = await asyncio.get_running_loop().create_server(self._web, sock=sock, backlog=BACKLOG)

    async def stop(self) -> None:
        """Stop listening, and close the connections."""
        if self._listening is not None:
            self._listening.close()
        if self._pages is not None:
            await self._pages.stop()
        with suppress(asyncio.TimeoutError):
            await self._web.shutdown(0.1)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self._access.check(request)
            encoded, _, query = request.raw_path.partition("?")
            path = unquote(encoded)
            if path != CONTROL and not path.startswith(f"{CONTROL}/"):
                shown = None
                if self._pages is not None and request.method == "GET":
                    shown = await self._pages.show(path, query, request)
                if shown is not None:
                    return shown
                detail = f"there is no {path[:200]}; a proxy has its pages, / and /list, and {CONTROL}, which lists all"
                raise Problem(404, "unknown-route", detail, one_error("path", "unknown route", path))
            return await self._routes.serve(request, path, await _body(request))
        except Problem as problem:
            return problem.response()
        except ConnectionError:
            # The client has gone: there is nothing to answer.
            return web.Response()
        except asyncio.CancelledError:
            raise
        except Exception as problem:
            log: Any = structlog.get_logger("proxy")
            log.error("request_failed", path=request.path, problem=repr(problem), exc_info=problem)
            return Problem(500, "internal-error", "the service failed").response()


async def _body(request: web.BaseRequest) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while chunk := await request.content.readany():
                body += chunk
                if len(body) > _LONGEST_BODY:
                    raise Problem(413, "body-too-large", f"a body may have at most {_LONGEST_BODY} bytes")
    except TimeoutError:
        raise Problem(408, "request-timeout", f"the body did not arrive within {_BODY_SECONDS:g} s") from None
    except web.RequestPayloadError:
        raise Problem(400, "invalid-http", "the body cannot be read") from None
    return bytes(body)
