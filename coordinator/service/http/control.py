"""The control API over HTTP: JSON in, JSON out, described by itself at ``GET /control``."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import orjson
from aiohttp import web
from pydantic import Field, ValidationError

from rejoin.coordinator.control.admin_actions import MemberKey, NewRecords, PartitionKey, SnapshotKey, TopicTarget
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.errors import (
    ConditionNotReached,
    ControlError,
    InvalidArgument,
    NotFound,
    NotPossible,
    RequestFailed,
    StepsNotKept,
)
from rejoin.coordinator.control.fault_rules import Body, Fault, FaultRule
from rejoin.coordinator.control.timing import Advance
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS, GroupCondition, Timeout
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.http.problems import MOST_ERRORS, Problem, field_errors, one_error
from rejoin.coordinator.service.http.server import CONTROL, check_content_type
from rejoin.protocol.message import Request

_STATUS: Final[dict[type[ControlError], int]] = {
    StepsNotKept: 410,
    InvalidArgument: 400,
    NotFound: 404,
    NotPossible: 409,
    ConditionNotReached: 409,
    RequestFailed: 500,
}


class HitCount(Body):
    """How many hits a fault shall have."""

    hits: int = Field(default=1, ge=0, description="so many requests, or more")
    timeout_ms: Timeout = DEFAULT_TIMEOUT_MS


class NoFields(Body):
    """No fields."""


class RecordingQuery(Body):
    """Which part of the recording."""

    since: int = Field(default=0, ge=0, description="a mark: what came behind it; all of it unless given")
    group: str | None = Field(default=None, description="what is about this group only")


class TranscriptQuery(RecordingQuery):
    """Which part of the recording, and what it shows."""

    claim: str = Field(default="", description="the transcript's first line: what it shows")


class LogQuery(RecordingQuery):
    """Which part of the recording, and in whose form."""

    kafka: str = Field(default="3.9", description="the Kafka version whose form it shall have")


class ControlOperation(NamedTuple):
    """One method on one path; ``{id}`` stands for a part of the path."""

    method: str
    path: str
    does: str
    body: type[Body]
    call: Callable[[Any, str], Awaitable[Any]]
    in_query: bool = False


class TextAnswer(NamedTuple):
    """An answer that is not JSON."""

    text: str


class ControlRoutes:
    """Finds the operation, reads its arguments, and writes what it returns."""

    def __init__(self, control: Control, token: str | None) -> None:
        self._control = control
        self._token = token
        self.operations = self._table()
        self._by_route = {(each.method, each.path): each for each in self.operations}
        self._paths = {each.path for each in self.operations}

    def submit(self, request: Request, context: Context) -> PendingReply:
        """Hand in one of Kafka's requests, through the fault rules."""
        return self._control.submit(request, context)

    async def serve(self, request: web.BaseRequest, path: str, body: bytes) -> web.Response:
        """Answer one request."""
        self._check_token(request)
        route, key = self._match(path)
        method = "GET" if request.method == "HEAD" else request.method
        operation = self._by_route.get((method, route))
        if operation is None:
            allowed = ", ".join(sorted(each for each, where in self._by_route if where == route))
            detail = f"{path} takes {allowed}, not {request.method[:32]}"
            raise Problem(405, "wrong-method", detail, headers={"Allow": allowed})
        kind = request.headers.get("Content-Type")
        if body and kind is not None:
            check_content_type(kind)
        query = request.raw_path.partition("?")[2]
        wanted = self._read(operation, body, query)
        try:
            answer = await operation.call(wanted, key)
        except ControlError as error:
            raise problem_of(error) from None
        headers = {"Kafka-Control-Mark": str(self._control.recorder.mark)}
        if isinstance(answer, TextAnswer):
            return web.Response(body=answer.text.encode(), content_type="text/plain", charset="utf-8", headers=headers)
        return web.Response(body=orjson.dumps(answer), content_type="application/json", headers=headers)

    def _check_token(self, request: web.BaseRequest) -> None:
        if self._token is None:
            return
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
            detail = "expected the token of --control-token, as the header Authorization: Bearer TOKEN"
            raise Problem(401, "not-authorized", detail, headers={"WWW-Authenticate": "Bearer"})

    def _match(self, path: str) -> tuple[str, str]:
        """The operation's path, and the id in it."""
        path = path.rstrip("/") or path
        if path in self._paths:
            return path, ""
        parts = path.split("/")
        if len(parts) >= 4:
            route = "/".join([*parts[:3], "{id}", *parts[4:]])
            if route in self._paths:
                return route, unquote(parts[3])
        near = get_close_matches(path, self._paths, n=1, cutoff=0.0)[0]
        detail = f"there is no {path[:200]}; the nearest is {near}, and GET {CONTROL} lists all"
        raise Problem(404, "unknown-route", detail, one_error("path", "unknown route", path))

    @staticmethod
    def _read(operation: ControlOperation, body: bytes, query: str) -> Body:
        where = f"{operation.method} {operation.path}"
        try:
            if operation.in_query:
                given = dict(parse_qsl(query, keep_blank_values=True))
                return operation.body.model_validate(given, strict=False)
            if query:
                detail = f"{where} takes no parameters; what it wants is in the body"
                raise Problem(400, "invalid-parameter", detail, one_error("query", "expected none", query))
            return operation.body.model_validate_json(body or b"{}")
        except ValidationError as problem:
            found = problem.errors(include_url=False, include_context=False)
            errors = field_errors(found[:MOST_ERRORS])
            first = errors[0]
            field = f"{first['field']}: " if first["field"] else ""
            known = ", ".join(operation.body.model_fields) or "none"
            detail = f"{where}: {field}{first['problem']}; the fields are: {known}"
            raise Problem(400, "invalid-body", detail, errors) from None

    # --- what can be done

    def describe(self) -> dict[str, Any]:
        """Every operation with the schema of what it wants, and where everything stands."""
        return {
            **self._control.status(),
            "operations": [
                {
                    "method": each.method,
                    "path": each.path,
                    "does": each.does,
                    ("query" if each.in_query else "body"): each.body.model_json_schema()
                    if each.body.model_fields
                    else None,
                }
                for each in self.operations
            ],
        }

    def _table(self) -> list[ControlOperation]:
        control = self._control
        actions, evidence = control.actions, control.evidence

        async def describe(_: NoFields, __: str) -> Any:
            return self.describe()

        async def mark(_: NoFields, __: str) -> Any:
            return {"mark": control.recorder.mark}

        async def clock(_: NoFields, __: str) -> Any:
            return control.clock_driver.shown()

        async def advance(how: Advance, _: str) -> Any:
            return await control.clock_driver.advance(how)

        async def faults(_: NoFields, __: str) -> Any:
            return {"faults": [fault.shown() for fault in control.faults.all()]}

        async def add_fault(rule: FaultRule, _: str) -> Any:
            return control.add_fault(rule).shown()

        async def clear_faults(_: NoFields, __: str) -> Any:
            removed = [fault.shown() for fault in control.faults.all()]
            control.faults.clear()
            return {"removed": removed}

        async def fault(_: NoFields, fault_id: str) -> Any:
            return control.fault(fault_id).shown()

        async def remove_fault(_: NoFields, fault_id: str) -> Any:
            found: Fault = control.fault(fault_id)
            control.faults.remove(found)
            return found.shown()

        async def release(_: NoFields, fault_id: str) -> Any:
            found = control.fault(fault_id)
            let_go = found.release()
            return {**found.shown(), "let_go": let_go}

        async def wait_for_fault(wanted: HitCount, fault_id: str) -> Any:
            found = control.fault(fault_id)
            await control.wait_for_fault(found, wanted.hits, wanted.timeout_ms)
            return found.shown()

        async def wait_for_group(wanted: GroupCondition, _: str) -> Any:
            view = await control.groups.wait(wanted)
            return {"group": None if view is None else view.model_dump(mode="json")}

        async def expire(which: MemberKey, _: str) -> Any:
            return actions.expire(which)

        async def kick(which: MemberKey, _: str) -> Any:
            return await actions.kick(which)

        async def resign(which: PartitionKey, _: str) -> Any:
            return actions.resign(which)

        async def elect(which: PartitionKey, _: str) -> Any:
            return actions.elect(which)

        async def set_topic(wanted: TopicTarget, _: str) -> Any:
            return await actions.set_topic(wanted)

        async def produce(produced: NewRecords, _: str) -> Any:
            return await actions.produce(produced)

        async def snapshot(_: NoFields, __: str) -> Any:
            return actions.snapshot()

        async def restore(which: SnapshotKey, _: str) -> Any:
            return actions.restore(which)

        async def reset(_: NoFields, __: str) -> Any:
            return await actions.reset()

        async def transcript(wanted: TranscriptQuery, _: str) -> Any:
            return TextAnswer(evidence.transcript(wanted.since, wanted.group, wanted.claim))

        async def broker_log(wanted: LogQuery, _: str) -> Any:
            return TextAnswer(evidence.broker_log(wanted.kafka, wanted.since, wanted.group))

        async def request_log(wanted: LogQuery, _: str) -> Any:
            return TextAnswer(evidence.request_log(wanted.kafka, wanted.since, wanted.group))

        at = CONTROL
        return [
            ControlOperation("GET", at, "this description, and where everything stands", NoFields, describe),
            ControlOperation("GET", f"{at}/clock", "what time it is, and when something is due", NoFields, clock),
            ControlOperation("POST", f"{at}/clock", "let time pass; answers what fired", Advance, advance),
            ControlOperation("GET", f"{at}/faults", "every rule with its hits", NoFields, faults),
            ControlOperation("POST", f"{at}/faults", "make a rule, behind those that are there", FaultRule, add_fault),
            ControlOperation(
                "DELETE", f"{at}/faults", "remove every rule, and let go of what they hold", NoFields, clear_faults
            ),
            ControlOperation("GET", f"{at}/faults/{{id}}", "one rule with its hits", NoFields, fault),
            ControlOperation(
                "DELETE", f"{at}/faults/{{id}}", "remove a rule, and let go of what it holds", NoFields, remove_fault
            ),
            ControlOperation(
                "POST", f"{at}/faults/{{id}}/release", "open the barrier of a rule with pause", NoFields, release
            ),
            ControlOperation(
                "POST", f"{at}/faults/{{id}}/wait", "wait until a rule has been applied", HitCount, wait_for_fault
            ),
            ControlOperation("POST", f"{at}/groups/wait", "wait until a group is so", GroupCondition, wait_for_group),
            ControlOperation("POST", f"{at}/groups/expire", "let a member's session run out now", MemberKey, expire),
            ControlOperation("POST", f"{at}/groups/kick", "remove a member, as an administrator does", MemberKey, kick),
            ControlOperation("POST", f"{at}/partitions/resign", "lose an offsets partition", PartitionKey, resign),
            ControlOperation(
                "POST", f"{at}/partitions/elect", "lead an offsets partition, loaded anew", PartitionKey, elect
            ),
            ControlOperation("POST", f"{at}/topics", "create a topic, or let it grow", TopicTarget, set_topic),
            ControlOperation("POST", f"{at}/topics/produce", "move end offsets on", NewRecords, produce),
            ControlOperation("POST", f"{at}/snapshot", "keep the whole state", NoFields, snapshot),
            ControlOperation("POST", f"{at}/restore", "go back to a snapshot, in time too", SnapshotKey, restore),
            ControlOperation("POST", f"{at}/reset", "begin anew, without groups, offsets and rules", NoFields, reset),
            ControlOperation("GET", f"{at}/mark", "the mark of this moment, for since", NoFields, mark),
            ControlOperation(
                "GET",
                f"{at}/transcript",
                "what happened, as a transcript that can be played",
                TranscriptQuery,
                transcript,
                True,
            ),
            ControlOperation(
                "GET",
                f"{at}/broker-log",
                "what happened, as lines of a broker's server.log",
                LogQuery,
                broker_log,
                True,
            ),
            ControlOperation(
                "GET",
                f"{at}/request-log",
                "what was asked, as lines of a kafka-request.log",
                LogQuery,
                request_log,
                True,
            ),
        ]


def problem_of(error: ControlError) -> Problem:
    """How an error of the control looks over HTTP."""
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    errors = one_error(error.name, error.expected, error.given) if isinstance(error, InvalidArgument) else None
    return Problem(status, error.kind, error.detail, errors, more=error.more)
