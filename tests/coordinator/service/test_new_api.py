"""A new API is a file of messages with its registry entry, and a handler with its rule: there are no other lists."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from aiohttp import ClientSession

from rejoin.coordinator.core.apis import SERVED, ServedApi
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.request_handlers import RequestHandlers
from rejoin.coordinator.core.runtime.admission import Rule
from rejoin.coordinator.core.security.resources import Operation, Resource
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol import registry
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.registry import APIS, BY_KEY, BY_NAME, BY_PATH, BY_REQUEST, DEFINED, TELEMETRY
from rejoin.protocol.types import GroupId, In, Int32
from tests.paths import ROOT


class CountMembersRequest(Request):
    """Count the members of a group. v1 adds a limit."""

    group_id: GroupId
    limit: Annotated[Int32, In(1)] = 100

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return CountMembersResponse(error_code=error)


class CountMembersResponse(Response):
    """How many there are."""

    error_code: ErrorCode = ErrorCode.NONE
    members: Int32 = -1


def counting(of: RequestHandlers) -> Callable[[Token, Any, Context], None]:
    def count(token: Token, request: CountMembersRequest, context: Context) -> None:
        if request.group_id == "broken":
            raise LookupError("a bug in the handler")
        error = of.admission.authorize(request, context, Resource.GROUP, request.group_id)
        if error is not ErrorCode.NONE:
            of.ctx.reply(token, CountMembersResponse(error_code=error))
            return
        of.ctx.reply(token, CountMembersResponse(members=min(request.limit, len(request.group_id))))

    return count


@pytest.fixture
def new_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[registry.Api]:
    """The entry and the handler; gone again after the test."""
    tables: list[tuple[dict[Any, registry.Api], dict[Any, registry.Api]]] = [
        (table, dict(table)) for table in (BY_KEY, BY_NAME, BY_PATH, BY_REQUEST, DEFINED)
    ]
    api = registry.register(999, (0, 1), 1, "CountMembers", __name__)
    monkeypatch.setitem(SERVED, api, ServedApi(counting, Rule(group=Operation.DESCRIBE)))
    yield api
    for table, before in tables:
        table.clear()
        table.update(before)


async def asked(coordinator: GroupCoordinator, body: dict[str, Any], version: int = 1) -> tuple[int, Any, str]:
    headers = {"Content-Type": "application/json", "Kafka-Api-Version": str(version)}
    async with (
        ClientSession() as session,
        session.post(f"{coordinator.url}/v1/count-members", data=json.dumps(body), headers=headers) as answer,
    ):
        return answer.status, await answer.json(content_type=None), answer.headers.get("Kafka-Error", "")


async def test_it_is_served_over_http(new_api: registry.Api) -> None:
    async with running() as coordinator:
        assert await asked(coordinator, {"groupId": "four"}) == (200, {"errorCode": 0, "members": 4}, "NONE")
        status, problem, _ = await asked(coordinator, {"groupId": "four", "limit": 1}, version=0)
        assert (status, problem["errors"][0]["field"]) == (400, "limit")


async def test_it_is_among_the_versions(new_api: registry.Api) -> None:
    async with running(socket=False) as coordinator:
        answer = await coordinator.call(ApiVersionsRequest(client_software_name="t", client_software_version="1"))
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.api_keys[-1] == ApiVersion(api_key=999, min_version=0, max_version=1)


async def test_faults_match_it_by_name_and_by_what_it_is_about(new_api: registry.Api) -> None:
    async with running(socket=False) as coordinator:
        await coordinator.add_fault(keys="CountMembers", group="orders", error="NOT_COORDINATOR")
        refused = await coordinator.call(CountMembersRequest(group_id="orders"))
        assert refused == CountMembersResponse(error_code=ErrorCode.NOT_COORDINATOR)
        assert await coordinator.call(CountMembersRequest(group_id="four")) == CountMembersResponse(members=4)


async def test_its_rule_of_admission_is_applied(new_api: registry.Api) -> None:
    denied = {"emulator_deny": ("User:*:DESCRIBE:group=secret",)}
    async with running(socket=False, settings=denied) as coordinator:
        refused = await coordinator.call(CountMembersRequest(group_id="secret"))
        assert refused == CountMembersResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert await coordinator.call(CountMembersRequest(group_id="four")) == CountMembersResponse(members=4)


async def test_a_bug_in_its_handler_is_answered(new_api: registry.Api) -> None:
    async with running(socket=False) as coordinator:
        answer = await coordinator.call(CountMembersRequest(group_id="broken"))
    assert answer == CountMembersResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)


async def test_a_transcript_and_the_logs_survive_it(new_api: registry.Api) -> None:
    async with running(socket=False) as coordinator:
        await coordinator.call(CountMembersRequest(group_id="four"))
        assert "CountMembers" not in await coordinator.transcript()
        assert "CountMembers" in (await coordinator.request_log()).replace("COUNT_MEMBERS", "CountMembers")


def test_every_api_has_a_handler_and_a_rule() -> None:
    assert {api.key for api in SERVED} == BY_KEY.keys() | {api.key for api in TELEMETRY}


PACKAGES = ("benchmarks", "client", "coordinator", "journal", "pipeline", "protocol", "simulation", "transcript")
TABLES = ("protocol.registry", "coordinator.core.apis")
"""What can be said, and what a node serves: the test above compares the two."""


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_else_lists_every_api(package: str) -> None:
    """A module that imports most of the requests would keep a list of its own, and the next API would not be in it."""
    for path in (ROOT / package).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        imported = {
            name.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        requests = imported & {api.request.__name__ for api in APIS}
        assert module in TABLES or len(requests) <= len(APIS) // 2, f"{module} lists {len(requests)} APIs"
