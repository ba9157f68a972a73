"""A whole node over real HTTP on loopback, on a clock that moves only on command."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import aiohttp

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.service.app import App
from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.types import TopicPartition
from tests.coordinator.faulty_log import FaultyLog

START = 1_700_000_000_000


class ManualClock:
    """Stands still until ``advance``, and then rings every alarm on the way."""

    def __init__(self) -> None:
        self._now: Millis = START
        self._alarms: list[tuple[Millis, int, ManualAlarm]] = []
        self._count = itertools.count()

    def now(self) -> Millis:
        return self._now

    def call_at(self, when: Millis, call: Callable[[], None]) -> ManualAlarm:
        alarm = ManualAlarm(call)
        heappush(self._alarms, (max(when, self._now), next(self._count), alarm))
        return alarm

    @property
    def pending(self) -> int:
        """How many alarms are set."""
        return sum(alarm.is_set for _, _, alarm in self._alarms)

    def advance(self, millis: int) -> None:
        end = self._now + millis
        while self._alarms and self._alarms[0][0] <= end:
            when, _, alarm = heappop(self._alarms)
            self._now = when
            alarm.ring()
        self._now = end


class ManualAlarm:
    """An alarm of a :class:`ManualClock`."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    @property
    def is_set(self) -> bool:
        return self._call is not None

    def cancel(self) -> None:
        self._call = None

    def ring(self) -> None:
        if self._call is not None:
            self._call()


class HttpAnswer:
    """An HTTP answer, read to its end."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Harness:
    """A running node and its client."""

    def __init__(self, app: App, clock: ManualClock, log: FaultyLog, session: aiohttp.ClientSession) -> None:
        self.app = app
        self.clock = clock
        self.log = log
        self.session = session

    @property
    def port(self) -> int:
        return self.app.port

    async def request(self, method: str, path: str, data: bytes | None = None, **headers: str) -> HttpAnswer:
        """Any HTTP request. Header names are given with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if method == "POST":
            named.setdefault("Content-Type", "application/json")
        url = f"{self.app.url}{path}"
        async with self.session.request(
            method, url, data=data, headers=named, skip_auto_headers=["Content-Type"]
        ) as got:
            return HttpAnswer(got, await got.read())

    async def get(self, path: str, **headers: str) -> Any:
        answered = await self.request("GET", path, None, **headers)
        assert answered.status == 200, answered.body
        return answered.json

    async def call(self, api: str, body: dict[str, Any], version: int | None = None, **headers: str) -> Any:
        """One of Kafka's requests; the answer's body."""
        if version is not None:
            headers["Kafka_Api_Version"] = str(version)
        answered = await self.request("POST", BY_NAME[api].path, json.dumps(body).encode(), **headers)
        assert answered.status == 200, answered.body
        named = answered.headers.get("Kafka-Error")
        if "errorCode" in answered.json:
            assert named is not None, "an answer with an error code names it"
        return answered.json

    async def parked(self, api: str, body: dict[str, Any], version: int | None = None) -> asyncio.Task[Any]:
        """One of Kafka's requests that will have to wait: returns once it is parked."""
        before = self._waiting()
        task = asyncio.ensure_future(self.call(api, body, version))
        async with asyncio.timeout(60):
            while self._waiting() == before and not task.done():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert not task.done(), f"{api} was answered at once: {task.result()}"
        return task

    async def topic(self, name: str, partitions: int) -> None:
        await self.call("CreateTopics", create_topics(name, partitions))

    async def member_id(self, group: str, **fields: Any) -> str:
        """An id for a new dynamic member."""
        answer = await self.call("JoinGroup", join(group, **fields))
        assert answer["errorCode"] == 79, answer
        member_id: str = answer["memberId"]
        return member_id

    async def stable(self, group: str, topics: tuple[str, ...] = ("orders",)) -> str:
        """Bring a group of one dynamic member to Stable; its member id. The generation is 1."""
        member_id = await self.member_id(group, topics=topics)
        joining = await self.parked("JoinGroup", join(group, member_id, topics=topics))
        self.clock.advance(3_000)
        assert (await joining)["generationId"] == 1
        answer = await self.call("SyncGroup", sync(group, member_id, 1, {member_id: {"orders": [0]}}))
        assert answer["errorCode"] == 0, answer
        return member_id

    def _waiting(self) -> int:
        node = self.app.runtime.node.describe()
        return node.parked_joins + node.parked_syncs + self.log.held


def subscription(*topics: str) -> str:
    return base64.b64encode(encode_subscription(Subscription(topics=topics))).decode()


def assignment(owned: dict[str, list[int]]) -> str:
    partitions = tuple(TopicPartition(topic, number) for topic, numbers in owned.items() for number in numbers)
    return base64.b64encode(encode_assignment(Assignment(partitions))).decode()


def join(group: str, member_id: str = "", topics: tuple[str, ...] = ("orders",), **fields: Any) -> dict[str, Any]:
    return {
        "groupId": group,
        "sessionTimeoutMs": 45_000,
        "rebalanceTimeoutMs": 300_000,
        "memberId": member_id,
        "groupInstanceId": None,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": subscription(*topics)}],
        "reason": None,
        **fields,
    }


def sync(
    group: str, member_id: str, generation: int, assigned: dict[str, dict[str, list[int]]], **fields: Any
) -> dict[str, Any]:
    return {
        "groupId": group,
        "generationId": generation,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [{"memberId": member, "assignment": assignment(owned)} for member, owned in assigned.items()],
        **fields,
    }


def create_topics(name: str, partitions: int, **fields: Any) -> dict[str, Any]:
    topic = {"name": name, "numPartitions": partitions, "replicationFactor": -1, "assignments": [], "configs": []}
    return {"topics": [{**topic, **fields}], "timeoutMs": 1_000}
