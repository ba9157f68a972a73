"""Errors that are no Kafka responses: ``application/problem+json`` (RFC 9457), with the field and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson
from aiohttp import web
from pydantic import ValidationError

from rejoin.protocol.message import WrongVersion
from rejoin.protocol.validation import NAMES_IN_JSON, reason

LONGEST_GIVEN: Final = 120
MOST_ERRORS: Final = 20


class Problem(Exception):
    """A request that is refused. ``kind`` is the last part of its type and stable."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        errors: list[dict[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def response(self) -> web.Response:
        """The HTTP response."""
        body: dict[str, Any] = {
            "type": f"urn:rejoin:problem:{self.kind}",
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors is not None:
            body["errors"] = self.errors
        body |= self.more
        response = web.Response(
            status=self.status,
            reason=HTTPStatus(self.status).phrase,
            body=orjson.dumps(body, default=str),
            content_type="application/problem+json",
            headers=self.headers,
        )
        if self.status in _CLOSING:
            response.force_close()
        return response


_CLOSING: Final = {408, 413, 500, 503}
"""Statuses after which the connection is closed."""


def one_error(field: str, problem: str, given: object) -> list[dict[str, Any]]:
    """The list of errors for a single field."""
    return [{"field": field, "problem": problem, "given": abridged(given)}]


def invalid_body(name: str, version: int, problem: ValidationError) -> Problem:
    """A body that is not a valid message."""
    found = problem.errors(include_url=False, include_context=False)
    errors = field_errors(found[:MOST_ERRORS])
    first = errors[0]
    field = f"{first['field']}: " if first["field"] else ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Problem(
        400, "invalid-body", f"not a {name} request of version {version}: {field}{first['problem']}{more}", errors
    )


def field_errors(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Pydantic's errors as ours: the field, the problem, the given value."""
    return [
        {"field": _path(error["loc"]), "problem": reason(error), "given": abridged(error["input"])} for error in found
    ]


def wrong_version(name: str, version: int, problem: WrongVersion) -> Problem:
    """A body that is valid only in another version."""
    detail = f"not a {name} request of version {version}: {problem.field}: {problem.problem}"
    return Problem(400, "invalid-body", detail, [{"field": problem.field, "problem": problem.problem, "given": None}])


def abridged(value: object) -> object:
    """A received value, short enough to be sent back and always JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else _text(value)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST_GIVEN else text[:LONGEST_GIVEN] + "…"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict):
        return "an object with " + ", ".join(str(key) for key in list(value)[:8]) if value else "an empty object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return NAMES_IN_JSON.get(str(value), str(value))


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)
