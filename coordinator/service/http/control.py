"""The control API over HTTP: JSON in, JSON out, described by itself at ``GET /control``."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import isawaitable
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, unquote

import orjson
from aiohttp import web
from pydantic import ValidationError

from rejoin.coordinator.control.errors import (
    ConditionNotReached,
    ControlError,
    InvalidArgument,
    NotFound,
    NotPossible,
    RequestFailed,
    StepsNotKept,
)
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.driver import Submit
from rejoin.coordinator.service.http.access import Access, check_content_type
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, TextAnswer
from rejoin.coordinator.service.http.control_api.operations import OPERATIONS
from rejoin.coordinator.service.http.problems import MOST_ERRORS, Problem, field_errors, one_error
from rejoin.coordinator.service.http.server import CONTROL
from rejoin.protocol.message import Request
from rejoin.protocol.validation import sentence

_STATUS: Final[dict[type[ControlError], int]] = {
    StepsNotKept: 410,
    InvalidArgument: 400,
    NotFound: 404,
    NotPossible: 409,
    ConditionNotReached: 409,
    RequestFailed: 500,
}


_BY_ROUTE: Final = {(each.method, each.path): each for each in OPERATIONS}
_PATHS: Final = {each.path for each in OPERATIONS}


class Marked(Protocol):
    """A recording; ``mark`` is how many steps it has."""

    mark: int


class Recorded(Protocol):
    """A control: its attributes have the operations, and it records."""

    @property
    def recorder(self) -> Marked:
        """The recording, of which each answer names the mark."""


class ControlRoutes:
    """Finds the operation, reads its arguments, and writes its result."""

    def __init__(self, control: Recorded, access: Access, submit: Submit | None = None) -> None:
        """``submit`` hands in one of Kafka's requests, through the fault rules; none where HTTP takes no such."""
        self.submit = submit or _no_requests
        self._control: Any = control
        self._access = access

    async def serve(self, request: web.BaseRequest, path: str, body: bytes) -> web.Response:
        """Answer one request."""
        self._access.check_token(request.headers)
        route, key = _match(path)
        method = "GET" if request.method == "HEAD" else request.method
        operation = _BY_ROUTE.get((method, route))
        if operation is None:
            allowed = ", ".join(sorted(each for each, where in _BY_ROUTE if where == route))
            detail = f"{path} takes {allowed}, not {request.method[:32]}"
            raise Problem(405, "wrong-method", detail, headers={"Allow": allowed})
        if method == "POST":
            check_content_type(request.headers.get("Content-Type"))
        query = request.raw_path.partition("?")[2]
        wanted = self._read(operation, body, query)
        try:
            answer = operation.call(self._control, wanted, key)
            if isawaitable(answer):
                answer = await answer
        except ControlError as error:
            raise problem_of(error) from None
        headers = {"Kafka-Control-Mark": str(self._control.recorder.mark)}
        if isinstance(answer, TextAnswer):
            return web.Response(body=answer.text.encode(), content_type="text/plain", charset="utf-8", headers=headers)
        return web.Response(body=orjson.dumps(answer), content_type="application/json", headers=headers)

    @staticmethod
    def _read(operation: ControlOperation, body: bytes, query: str) -> Body:
        where = f"{operation.method} {operation.path}"
        try:
            if operation.in_query:
                return operation.body.model_validate(_parameters(query), strict=False)
            if query:
                detail = f"{where} takes no parameters; its fields go into the body"
                raise Problem(400, "invalid-parameter", detail, one_error("query", "expected none", query))
            return operation.body.model_validate_json(body or b"{}")
        except ValidationError as problem:
            found = problem.errors(include_url=False, include_context=False)
            errors = field_errors(found[:MOST_ERRORS])
            detail = f"{where}: {sentence(problem, operation.body, of_json=not operation.in_query)}"
            raise Problem(400, "invalid-body", detail, errors) from None


def _no_requests(request: Request, context: Context) -> PendingReply:
    raise Problem(404, "unknown-route", f"this control takes no {type(request).__name__} over HTTP")


def _parameters(query: str) -> dict[str, Any]:
    """The parameters of a query by name; one that is given several times has a list."""
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name, []).append(value)
    return {name: several if len(several) > 1 else several[0] for name, several in values.items()}


def _match(path: str) -> tuple[str, str]:
    """The operation's path, and the id in it."""
    path = path.rstrip("/") or path
    if path in _PATHS:
        return path, ""
    parts = path.split("/")
    if len(parts) >= 4:
        pattern = "/".join([*parts[:3], "{id}", *parts[4:]])
        if pattern in _PATHS:
            return pattern, unquote(parts[3])
    # By what stands behind /control/, as all paths begin alike.
    names = {each.removeprefix(f"{CONTROL}/"): each for each in _PATHS}
    near = names[get_close_matches(path.removeprefix(f"{CONTROL}/"), names, n=1, cutoff=0.0)[0]]
    detail = f"there is no {path[:200]}; the nearest is {near}, and GET {CONTROL} lists all"
    raise Problem(404, "unknown-route", detail, one_error("path", "unknown route", path))


def problem_of(error: ControlError) -> Problem:
    """HTTP response for an error of the control."""
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    errors = one_error(error.name, error.expected, error.given) if isinstance(error, InvalidArgument) else None
    return Problem(status, error.kind, error.detail, errors, more=error.more)
