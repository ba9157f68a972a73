"""Who sends a request over HTTP: the same users, tokens and certificates as over Kafka's protocol."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import hdrs, web

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.http.problems import Problem, one_error
from rejoin.coordinator.service.http.rpc import PRINCIPAL

if TYPE_CHECKING:
    from rejoin.coordinator.service.security.failed_logins import FailedLogins
    from rejoin.coordinator.service.security.logins import Logins
    from rejoin.coordinator.service.security.principals import SslPrincipals

_OPEN: Final = frozenset({"/healthz", "/readyz"})
"""Paths for probes, which have no login."""


class HttpLogin:
    """Finds the principal of a request. With ``logins`` it needs a user or a token, else the certificate decides."""

    def __init__(
        self,
        settings: Settings,
        logins: Logins | None,
        principals: SslPrincipals | None,
        failures: FailedLogins,
    ) -> None:
        self._logins = logins
        self._principals = principals
        self._delay_seconds = settings.connection_failed_authentication_delay_ms / 1_000
        self._failures = failures
        self._loop = asyncio.get_running_loop()
        self._log: Any = structlog.get_logger("coordinator").bind()

    async def principal(self, request: web.BaseRequest, client_host: str) -> str | None:
        """The principal; none for what needs no login. Raises a :class:`Problem` for a failed one."""
        if request.raw_path.partition("?")[0] in _OPEN:
            return None
        principal = (
            self._of_certificate(request) if self._logins is None else await self._of_login(request, client_host)
        )
        named = request.headers.get(PRINCIPAL)
        if named not in {None, principal}:
            detail = f"{PRINCIPAL}: expected {principal}, which this login is, or no such header"
            raise Problem(403, "another-principal", detail, one_error(PRINCIPAL, f"expected {principal}", str(named)))
        return principal

    def _of_certificate(self, request: web.BaseRequest) -> str:
        assert self._principals is not None, "without logins there are certificates"
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        principal = self._principals.principal(certificate)
        if principal is None:
            raise Problem(403, "unknown-certificate", "no rule of ssl.principal.mapping.rules fits the certificate")
        return principal

    async def _of_login(self, request: web.BaseRequest, client_host: str) -> str:
        now = self._loop.time()
        wait_seconds = self._failures.wait_seconds(client_host, now)
        if wait_seconds > 0:
            headers = {"Retry-After": str(int(wait_seconds) + 1)}
            raise Problem(
                429, "too-many-failed-logins", "too many logins from this address have failed", headers=headers
            )
        given = request.headers.get(hdrs.AUTHORIZATION)
        if given is None:
            raise _needs_login("a login is needed")
        name = self._name(given)
        if name is None:
            self._failures.add(client_host, now)
            self._log.warning("http_login_failed", client=client_host)
            await asyncio.sleep(self._delay_seconds)
            raise _needs_login("the user, the password or the token is wrong")
        return f"User:{name}"

    def _name(self, given: str) -> str | None:
        """The name that a header proves; none if it does not."""
        assert self._logins is not None, "there are logins"
        kind, _, value = given.partition(" ")
        if kind.lower() == "bearer":
            token = self._logins.token(value.strip())
            return None if token is None else token.name
        if kind.lower() != "basic":
            return None
        try:
            name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        return name if colon and self._logins.verify(name, password) else None


def _needs_login(detail: str) -> Problem:
    headers = {"WWW-Authenticate": 'Basic realm="rejoin", charset="UTF-8", Bearer realm="rejoin"'}
    text = f"{detail}: expected Authorization: Basic with a user and a password, or Bearer with a token"
    return Problem(401, "not-authenticated", text, headers=headers)
