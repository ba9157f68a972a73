"""A client of a running coordinator's events: where its stream stands, and ranges of rows.

Blocking, with the standard library alone, as it runs in Spark's tasks. What a service keeps: with ``--journal`` every
row, over restarts; without one the newest 50,000 rows or 64 MB, and none of a process that is gone.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import orjson

MOST_ROWS: Final = 10_000
"""Rows that a service hands out at one time."""

TIMEOUT_SECONDS: Final = 30.0
_PAUSES: Final = (0.1, 0.3, 1.0)

T = TypeVar("T")


class ServiceDown(Exception):
    """No answer; the text has the address and the error. It may come back."""


class NotAService(Exception):
    """The server there is not a Rejoin coordinator, or it refused the request."""


class EventsGone(Exception):
    """Rows that were asked for are not kept any more, or belong to another run."""


class Standing(NamedTuple):
    """Where a stream stands: the oldest row kept, the newest row, whose they are, and whether all are kept on disk."""

    first: int
    head: int
    run_id: str
    node: str
    journal: bool


class ServiceClient:
    """A coordinator at ``http://HOST:PORT``. Raises ValueError for a URL that is none."""

    def __init__(self, url: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.url = normal(url)
        self._timeout = timeout_seconds
        self._connection: HTTPConnection | None = None

    def standing(self) -> Standing:
        """Where the stream stands now. Raises ServiceDown and NotAService."""
        answer = self._get("/events?limit=0")
        try:
            stream = answer["stream"]
            return Standing(
                int(answer["first"]), int(answer["head"]), stream["run_id"], stream["node"], bool(stream["journal"])
            )
        except (KeyError, TypeError, ValueError):
            raise NotAService(
                f"{self.url}/events does not say where its events stand; expected a coordinator of this version "
                "(rejoin serve)"
            ) from None

    def run_of(self, seq: int) -> str:
        """The run that wrote a row. Raises EventsGone where it is not there."""
        return str(self.rows(seq - 1, 1)[0]["run_id"])

    def rows(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Exactly the ``limit`` rows behind ``after``, at most :data:`MOST_ROWS`; never fewer.

        Raises EventsGone where one of them is not there.
        """
        rows: list[dict[str, Any]] = self._get(f"/events?after={after}&limit={limit}").get("events", [])
        if [row.get("seq") for row in rows] != list(range(after + 1, after + limit + 1)):
            got = f"gave {rows[0].get('seq')} to {rows[-1].get('seq')}" if rows else "gave none"
            raise EventsGone(f"{self.url} was asked for its events {after + 1} to {after + limit} and {got}")
        return rows

    def view(self, path: str) -> dict[str, Any]:
        """One of the views, such as ``/groups``. Raises ServiceDown and NotAService."""
        return self._get(path)

    def events(self, after: int, limit: int, group_id: str | None) -> tuple[list[dict[str, Any]], int]:
        """Up to ``limit`` rows behind ``after``, of one group or of all; and behind which row to go on."""
        group = "" if group_id is None else f"&group={quote(group_id, safe='')}"
        answer = self._get(f"/events?after={after}&limit={limit}{group}")
        return answer.get("events", []), int(answer["next"])

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _get(self, path: str) -> dict[str, Any]:
        try:
            status, body = self._ask(path)
        except (OSError, HTTPException) as problem:
            self.close()
            raise ServiceDown(f"{self.url} does not answer: {_words(problem)}") from None
        try:
            answer = orjson.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise NotAService(f"{self.url}{path} answered {status} without JSON; expected a coordinator there")
        if status == 410:
            raise EventsGone(f"{self.url}: {answer.get('detail', 'the events are gone')}")
        if status >= 500:
            raise ServiceDown(f"{self.url} answered {status}: {answer.get('detail', 'no reason given')}")
        if status != 200:
            raise NotAService(f"{self.url}{path} answered {status}: {answer.get('detail', 'no reason given')}")
        return answer

    def _ask(self, path: str) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        fresh = self._connection is None
        if self._connection is None:
            kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
            self._connection = kind(parts.netloc, timeout=self._timeout)
        try:
            self._connection.request("GET", parts.path + path, headers={"Accept": "application/json"})
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, HTTPException):
            self.close()
            if fresh:
                raise
            # A connection that was kept may have been closed meanwhile.
            return self._ask(path)


def normal(url: str) -> str:
    """A service's URL without what may be left out. Raises ValueError."""
    given = url.strip()
    parts = urlsplit(given if "://" in given else f"http://{given}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is no address of a coordinator; expected http://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def with_patience(ask: Callable[[], T]) -> T:
    """Ask again a few times while there is no answer, for about a second."""
    for pause in _PAUSES:
        try:
            return ask()
        except ServiceDown:
            time.sleep(pause)
    return ask()


def _words(problem: Exception) -> str:
    if isinstance(problem, socket.gaierror):
        return "there is no such host"
    if isinstance(problem, TimeoutError):
        return "no answer in time"
    return (getattr(problem, "strerror", None) or str(problem) or type(problem).__name__).lower()
