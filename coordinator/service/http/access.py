"""Who may change something: no page of another site, and for some of it only who has the token.

A browser sends requests to this node for any page that is open in it. Such a request names the page in ``Origin``, or
says ``cross-site``; without a preflight it cannot have the content type of JSON. A page whose name was made to point to
this node (DNS rebinding) has another name in ``Host``.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from multidict import istr

from rejoin.coordinator.service.http.problems import Problem, one_error

JSON: Final = "application/json"
_SITE: Final = istr("Sec-Fetch-Site")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE: Final = frozenset({"same-origin", "none"})
_PRIVATE: Final = (".localhost", ".local", ".internal")
"""Names that no public name server has, so that no outside name can point here."""
_MOST_HOSTS: Final = 1_000


class Access:
    """Checks requests. ``names`` are those that the node is known by, beside addresses and local names.

    Without a token, operations that need it are only for a node that other machines cannot reach.
    """

    def __init__(self, *names: str, token: str | None = None, is_local: bool = True) -> None:
        self._token = token
        self._is_local = is_local
        self._names = {name.lower().rstrip(".") for name in (*names, socket.gethostname()) if name}
        self._known: set[str] = set()

    def check(self, request: web.BaseRequest) -> None:
        """Raise a :class:`Problem` for a request to another host, or for a change on behalf of another site."""
        headers = request.headers
        host = headers.get(hdrs.HOST)
        if host is not None and host not in self._known:
            self._check_host(host)
        if request.method in _SAFE:
            return
        origin, site = headers.get(hdrs.ORIGIN), headers.get(_SITE)
        if (origin is not None and _netloc(origin) != host) or (site is not None and site not in _OWN_SITE):
            detail = "a page of another site must not change anything here"
            errors = one_error("Origin", f"expected this node, {host}", origin) if origin is not None else None
            raise Problem(403, "cross-origin", detail, errors)

    @property
    def has_token(self) -> bool:
        """Whether some operations have a token of their own."""
        return self._token is not None

    def check_token(self, headers: Mapping[str, str]) -> None:
        """Raise a :class:`Problem` unless a request has the token's permission."""
        if self._token is None:
            if not self._is_local:
                detail = "other machines can reach this node, so it needs a token; start it with --control-token-file"
                raise Problem(403, "no-token", detail)
            return
        kind, _, given = headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        # A header may hold any bytes, and not only text.
        found, token = given.strip().encode("utf-8", "surrogateescape"), self._token.encode()
        if kind.lower() != "bearer" or not hmac.compare_digest(found, token):
            detail = "expected the token of --control-token-file, as the header Authorization: Bearer TOKEN"
            raise Problem(401, "not-authorized", detail, headers={"WWW-Authenticate": "Bearer"})

    def _check_host(self, host: str) -> None:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            name = "."
        if not (name in self._names or "." not in name or name.endswith(_PRIVATE) or _is_address(name)):
            detail = f"{host[:200]} is not this node; start it with --advertised-host to serve it by another name"
            raise Problem(
                421, "unknown-host", detail, one_error("Host", "expected a name or address of this node", host)
            )
        if len(self._known) < _MOST_HOSTS:
            self._known.add(host)


def check_content_type(given: str | None) -> None:
    """Raise a :class:`Problem` for anything but JSON. A page of another site cannot send that without asking."""
    kind, _, parameters = (given or "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != JSON or charset not in {"", "utf-8"}:
        detail = f"Content-Type: expected {JSON} in UTF-8"
        raise Problem(415, "unsupported-media-type", detail, one_error("Content-Type", f"expected {JSON}", given))


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
