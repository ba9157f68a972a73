"""One life in two journals: that of a coordinator, and that of a proxy in front of it. Both go by one clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import ControlOptions, InitialTopic, Options
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    OwnedTopicPartitions,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.registry import BY_REQUEST
from rejoin.proxy.line_file import LineFile
from rejoin.proxy.service import Proxy, ProxyOptions
from rejoin.proxy.watch import RequestWatch
from tests.coordinator.service.helpers import join, sync
from tests.proxy.wire import FrameClient

GROUP = "g"


@dataclass
class Life:
    """A broker, the proxy in front of it, and both journals."""

    broker: GroupCoordinator
    proxy: Proxy
    stack: AsyncExitStack
    folder: Path

    @property
    def seen(self) -> Path:
        """The journal of the proxy."""
        return self.folder / "proxy"

    @property
    def known(self) -> Path:
        """The journal of the coordinator."""
        return self.folder / "coordinator"

    async def client(self) -> FrameClient:
        client = await FrameClient.connect(self.proxy.port)
        self.stack.push_async_callback(client.close)
        return client

    async def member(self, client_id: str = "app", instance: str | None = None) -> ClassicMember:
        return ClassicMember(self, await self.client(), client_id, instance)

    async def modern(self, member_id: str) -> ModernMember:
        return ModernMember(await self.client(), member_id)


@dataclass
class ClassicMember:
    """A member of a classic group that asks when a test says so."""

    life: Life
    client: FrameClient
    client_id: str = "app"
    instance: str | None = None
    member_id: str = ""
    generation: int = -1

    async def ask(self, request: Any) -> Any:
        return await self.client.ask(request, client_id=self.client_id)

    def join_request(self) -> Any:
        more: dict[str, Any] = {} if self.instance is None else {"groupInstanceId": self.instance}
        return _parsed(JoinGroupRequest, join(GROUP, self.member_id, **more))

    async def send_join(self) -> None:
        """Send JoinGroup, with an id that is handed out first, without reading the answer."""
        if not self.member_id and self.instance is None:
            answer = await self.ask(self.join_request())
            assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
            self.member_id = answer.member_id
        self.client.send(self.join_request(), client_id=self.client_id)

    async def joined(self) -> Any:
        answer = await self.client.receive()
        assert answer.error_code is ErrorCode.NONE
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    async def sync(self, gives: dict[str, dict[str, list[int]]] | None = None) -> Any:
        answer = await self.ask(_parsed(SyncGroupRequest, sync(GROUP, self.member_id, self.generation, gives or {})))
        assert answer.error_code is ErrorCode.NONE
        return answer

    async def beat(self) -> Any:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.member_id, group_instance_id=self.instance
        )
        return (await self.ask(request)).error_code

    async def commit(self, offsets: dict[int, int], metadata: str = "") -> Any:
        partitions = [
            {"partitionIndex": number, "committedOffset": offset, "committedMetadata": metadata}
            for number, offset in offsets.items()
        ]
        body = {
            "groupId": GROUP,
            "generationIdOrMemberEpoch": self.generation,
            "memberId": self.member_id,
            "topics": [{"name": "orders", "partitions": partitions}],
        }
        return await self.client.ask(OffsetCommitRequest.parse(json.dumps(body), 9), 9, self.client_id)

    async def leave(self) -> None:
        who = {"memberId": self.member_id, "groupInstanceId": self.instance, "reason": "closed"}
        await self.ask(_parsed(LeaveGroupRequest, {"groupId": GROUP, "members": [who]}))


@dataclass
class ModernMember:
    """A member of a group of the consumer protocol that sends a heartbeat when a test says so."""

    client: FrameClient
    member_id: str
    epoch: int = 0
    has: tuple[OwnedTopicPartitions, ...] = ()

    async def beat(self, epoch: int | None = None) -> Any:
        """A heartbeat that takes over what it was given; an epoch that is not its own joins or leaves."""
        sent = self.epoch if epoch is None else epoch
        joins = sent == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=sent,
            rebalance_timeout_ms=300_000 if joins else -1,
            subscribed_topic_names=("orders",) if joins else None,
            topic_partitions=() if joins else self.has,
        )
        answer = await self.client.ask(request, client_id="app")
        if answer.error_code is ErrorCode.NONE and sent >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = tuple(
                    OwnedTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                    for each in answer.assignment.topic_partitions
                )
        return answer


def _parsed(kind: Any, body: dict[str, Any]) -> Any:
    return kind.parse(json.dumps(body), BY_REQUEST[kind].default_version)


@asynccontextmanager
async def life(folder: Path, **of_file: int) -> AsyncIterator[Life]:
    """A broker on a virtual clock, and a proxy in front of it."""
    (folder / "proxy").mkdir()
    options = Options(
        port=0,
        kafka_port=0,
        settings=Settings(),
        topics=(InitialTopic("orders", 4),),
        control=ControlOptions(clock="virtual"),
        journal=folder / "coordinator",
    )
    watch = RequestWatch(LineFile(folder / "proxy" / "kafka-request.log", **of_file))
    async with AsyncExitStack() as stack:
        stack.callback(watch.close)
        app = await stack.enter_async_context(App(options))
        host, _, port = app.bootstrap_servers.partition(":")
        assert app.control is not None
        clock = app.control.clock
        proxy = Proxy(ProxyOptions(((host, int(port)),)), watch, now_ms=lambda: float(clock.now()))
        await proxy.start()
        stack.push_async_callback(proxy.stop)
        async with AsyncExitStack() as clients:
            broker = GroupCoordinator(app, asyncio.get_running_loop(), True)
            yield Life(broker, proxy, clients, folder)


def events_in(folder: Path) -> pa.Table:
    """The table of events of a journal."""
    return read_events(find([folder]), "UTC").events


def rows(table: Any, columns: Iterable[str]) -> list[dict[str, Any]]:
    """Some columns of a table."""
    return table.select(list(columns)).to_pylist()  # type: ignore[no-any-return]
