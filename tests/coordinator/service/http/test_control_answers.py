"""What the control API says of its own answers is so."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from pydantic import BaseModel

from rejoin.coordinator.service.http.control_api.answers import answer_schemas
from rejoin.coordinator.service.http.control_api.operation import TextAnswer
from rejoin.coordinator.service.http.control_api.operations import OPERATIONS
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.coordinator.control.samples import GROUP, OF_CONSUMER_GROUPS, beat, parse, sample, stable
from tests.coordinator.testing.share_member import GROUP as SHARE_GROUP
from tests.coordinator.testing.share_member import member_of
from tests.coordinator.testing.streams_member import AT_ONCE, running_threads
from tests.docs.texts import TEXTS

NOT_TEXT = {"key": "//8=", "value": "//8=", "headers": {"h": "//8="}}
ONE_BROKER: list[tuple[str, dict[str, Any]]] = [
    ("GET /control", {}),
    ("GET /control/clock", {}),
    ("POST /control/groups/wait", {"group": "none", "state": "Dead"}),
    ("POST /control/groups/wait", {"group": GROUP}),
    ("POST /control/groups/wait", {"group": "consumers"}),
    ("POST /control/faults", {"keys": "Heartbeat", "latency_ms": 5, "count": 2}),
    ("POST /control/faults", {"keys": "Heartbeat", "error": "NOT_COORDINATOR"}),
    ("GET /control/faults", {}),
    ("POST /control/faults/1/wait", {}),
    ("GET /control/faults/1", {}),
    ("POST /control/faults/1/release", {}),
    ("DELETE /control/faults/1", {}),
    ("DELETE /control/faults", {}),
    ("POST /control/topics", {"topic": "clicks", "partitions": 1}),
    ("POST /control/topics/produce", {"topic": "clicks", "records": ["a", ["k", None]]}),
    ("POST /control/topics/produce", {"topic": "clicks", "records": [NOT_TEXT], "encoding": "base64"}),
    ("POST /control/topics/compact", {}),
    ("GET /control/topics/records?topic=clicks", {}),
    ("GET /control/topics/records?topic=__consumer_offsets", {}),
    ("POST /control/offsets/wait", {"group": GROUP, "offsets": [{"topic": "orders", "partition": 0, "offset": 5}]}),
    ("GET /control/share-groups/state?group=jobs-app&topic=jobs&partition=0", {}),
    ("POST /control/share-groups/wait", {"group": SHARE_GROUP}),
    ("POST /control/groups/configs", {"group": SHARE_GROUP, "configs": {"share.delivery.count.limit": "3"}}),
    ("POST /control/share-groups/fail-persister", {"group": SHARE_GROUP, "operation": "write"}),
    ("POST /control/share-groups/release", {"group": SHARE_GROUP, "topic": "jobs", "partition": 0, "offset": 1}),
    ("POST /control/share-groups/expire-lock", {"group": SHARE_GROUP, "topic": "jobs", "partition": 0, "offset": 0}),
    ("GET /control/streams-groups/state?group=app", {}),
    ("GET /control/streams-groups/state?group=none", {}),
    ("POST /control/streams-groups/wait", {"group": "app", "tasks": 2}),
    ("POST /control/groups/wait", {"group": "app", "state": "stable"}),
    ("POST /control/streams-groups/shut-down", {"group": "app"}),
    ("POST /control/topics/delete", {"topic": "lines"}),
    ("GET /control/requests", {}),
    ("GET /control/mark", {}),
    ("GET /control/transcript", {}),
    ("GET /control/broker-log", {}),
    ("GET /control/request-log", {}),
    ("POST /control/advertise", {"host": "localhost", "port": 49_153}),
    ("POST /control/snapshot", {}),
    ("POST /control/restore", {"snapshot": "1"}),
    ("POST /control/groups/kick", {"group": GROUP, "client_id": "app"}),
    ("POST /control/groups/expire", {"group": "consumers", "client_id": "app"}),
    ("POST /control/clock", {"advance_ms": 700_000}),
    ("POST /control/partitions/resign", {"group": GROUP}),
    ("POST /control/partitions/elect", {"group": GROUP}),
    ("POST /control/principals", {"client": "billing*", "principal": "User:billing"}),
    ("GET /control/principals", {}),
    ("POST /control/acls", {"create": "User:billing:READ:topic=orders", "delete": ["deny User:eve:ALL:group=*"]}),
    ("GET /control/acls", {}),
    ("POST /control/quotas", {"quotas": "user=billing producer_byte_rate=1000"}),
    ("GET /control/quotas", {}),
    ("DELETE /control/principals", {}),
    ("POST /control/reset", {}),
]
SEVERAL_BROKERS: list[tuple[str, dict[str, Any]]] = [
    ("GET /control/brokers", {}),
    ("GET /control/partitions?topics=orders&topics=__consumer_offsets", {}),
    ("POST /control/partitions/move", {"topic": "orders", "partition": 0}),
    ("POST /control/brokers/2/cut", {"controller": True, "brokers": 3}),
    ("POST /control/brokers/2/heal", {}),
    ("POST /control/brokers/2/pause", {}),
    ("POST /control/brokers/2/resume", {}),
    ("POST /control/brokers/2/kill", {}),
    ("POST /control/brokers/2/start", {}),
    ("POST /control/brokers/2/stop", {}),
    ("POST /control/brokers/2/start", {}),
    ("POST /control/clock", {"advance_ms": 1_000}),
    ("POST /control/partitions/elect-preferred", {}),
]
WITH_ACLS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
ANSWERS = {f"{each.method} {each.path}": each.answer for each in OPERATIONS}


def operation(asked: str) -> str:
    """The entry that serves a request."""
    path = asked.partition("?")[0]
    return path if path in ANSWERS else re.sub(r"/\d+", "/{id}", path)


class Requester:
    """Asks the control API, and checks what it answers."""

    def __init__(self, session: aiohttp.ClientSession, coordinator: GroupCoordinator) -> None:
        self._session = session
        self.coordinator = coordinator

    async def check(self, asked: str, body: dict[str, Any]) -> None:
        method, path = asked.split()
        url = self.coordinator.url + path
        async with self._session.request(method, url, json=body if method == "POST" else None) as answered:
            assert answered.status == 200, (asked, await answered.text())
            answer = ANSWERS[operation(asked)]
            if answer is TextAnswer:
                assert answered.content_type == "text/plain"
            else:
                answer.model_validate_json(await answered.read())  # type: ignore[union-attr]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


async def test_answers_of_one_broker_are_as_described(session: aiohttp.ClientSession) -> None:
    async with running(clock="virtual", topics={"orders": 3}, settings=AT_ONCE | WITH_ACLS) as coordinator:
        member_id = await stable(coordinator)
        await coordinator.call(sample("OffsetCommit", member_id))
        await coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR")
        await coordinator.call(beat(member_id))
        heartbeat = {**OF_CONSUMER_GROUPS["ConsumerGroupHeartbeat"], "groupId": "consumers"}
        await coordinator.call(parse("ConsumerGroupHeartbeat", heartbeat), client_id="app")
        member = await member_of(coordinator)
        await coordinator.produce("jobs", 0, 2)
        assert await member.fetch() == [(0, 1, 1)]
        await coordinator.set_topic("lines", 1)
        await running_threads(coordinator, "a")
        requester = Requester(session, coordinator)
        for asked, body in ONE_BROKER:
            await requester.check(asked, body)


async def test_answers_of_several_brokers_are_as_described(session: aiohttp.ClientSession) -> None:
    async with running(clock="virtual", topics={"orders": 3}, brokers=3) as coordinator:
        requester = Requester(session, coordinator)
        for asked, body in SEVERAL_BROKERS:
            await requester.check(asked, body)


def test_the_answer_of_every_operation_is_looked_at() -> None:
    asked = {operation(each) for each, _ in (*ONE_BROKER, *SEVERAL_BROKERS)}
    assert asked == ANSWERS.keys()


async def test_every_reference_leads_to_a_schema(session: aiohttp.ClientSession) -> None:
    async with running() as coordinator, session.get(f"{coordinator.url}/control") as answered:
        text, described = await answered.text(), await answered.json()
    references = set(re.findall(r'"\$ref":"#/schemas/(\w+)"', text))
    assert references == described["schemas"].keys()
    answers = {f"{each['method']} {each['path']}": each["answer"] for each in described["operations"]}
    assert answers["POST /control/groups/wait"] == {"$ref": "#/schemas/GroupAnswer"}
    assert answers["GET /control/transcript"] == {"type": "string", "contentMediaType": "text/plain"}
    assert "group_instance_id" in described["schemas"]["MemberView"]["properties"]
    assert "next_in_ms" in described["schemas"]["ClockAnswer"]["properties"]


def test_all_fields_are_in_snake_case() -> None:
    schemas = answer_schemas([each.answer for each in OPERATIONS if issubclass(each.answer, BaseModel)])
    names = {field for schema in schemas.values() for field in schema["properties"]}
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", name)] == []


def test_every_answer_has_an_example() -> None:
    rows = re.findall(r"^\| (`(?:GET|POST|DELETE) .*) \| `(\{.*\})` \|$", TEXTS["docs/testing.md"], re.MULTILINE)
    examples = {
        f"{method} /control/{path.replace('ID', '{id}')}": example
        for operations, example in rows
        for method, path in re.findall(r"`([A-Z]+) ([^`]+)`", operations)
    }
    shown_elsewhere = {"GET /control", "POST /control/groups/wait"}
    in_json = {name: answer for name, answer in ANSWERS.items() if answer is not TextAnswer}
    assert examples.keys() == in_json.keys() - shown_elsewhere
    for name, example in examples.items():
        # A view has Kafka's names as well; an example has Python's.
        read = in_json[name].model_validate_json(example)  # type: ignore[union-attr]
        assert read.model_dump(mode="json", by_alias=False, exclude_unset=True) == json.loads(example), name


async def test_the_documented_group_has_the_fields_of_a_real_one(session: aiohttp.ClientSession) -> None:
    [shown] = re.findall(r"```json\n(\{\n  \"group\": .*?)```", TEXTS["docs/testing.md"], re.DOTALL)
    documented = json.loads(shown)["group"]
    async with running(clock="virtual", topics={"orders": 3}) as coordinator:
        await stable(coordinator)
        url = f"{coordinator.url}/control/groups/wait"
        async with session.post(url, json={"group": GROUP}) as answered:
            real = (await answered.json())["group"]
    assert documented.keys() == real.keys()
    assert documented["members"][0].keys() == real["members"][0].keys()
