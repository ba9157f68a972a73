"""One script while it is played: requests by several clients, waits, and the actions on the cluster.

The play keeps every request with its answer and every other action; :mod:`rejoin.conform.player.recording` writes them.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from rejoin.conform.player.connection import Address, BrokerAccess, ClientConnections, ConnectionClosed, SentRequest
from rejoin.conform.player.messages import ZERO_ID, Json, newest
from rejoin.conform.player.script import Script, ScriptFailed
from rejoin.protocol.errors import ErrorCode

ANSWER_SECONDS: Final = 20.0
UNANSWERED_SECONDS: Final = 0.1
SETTLE_MS: Final = 300
"""Within this all markers are written that are written at all."""

CLOSED: Final = "closed"
"""Stands for the answer where the broker closed the connection."""


class ClusterActions(Protocol):
    """Actions of steps on a cluster, beside the requests of clients."""

    async def move(self, partition: int, broker: int, begins: Callable[[], None]) -> None: ...

    async def stop(self, broker: int, gently: bool) -> None: ...

    async def start(self, broker: int) -> None: ...

    async def fill(self, partition: int, partitions: int, broker: int, commits: int) -> None: ...


class StartableCluster(Protocol):
    """Brokers that a script may stop, start and look into."""

    @property
    def ports(self) -> Mapping[int, int]: ...

    @property
    def addresses(self) -> dict[int, Address]: ...

    @property
    def stopped(self) -> list[int]: ...

    async def stop(self, number: int, how: signal.Signals = signal.SIGTERM) -> None: ...

    async def start(self, number: int) -> None: ...

    def change_settings(self, settings: Mapping[str, str]) -> None: ...

    def cleaned_up_to(self, number: int, topic: str, partition: int) -> int: ...


@dataclass
class Target:
    """The brokers that a script is played on: addresses by number, the versions they take, topics with their ids.

    ``cluster`` is set where the brokers are a real Kafka of ours, ``actions`` where steps may act on them.
    """

    addresses: dict[int, Address]
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    offsets_partitions: int = 50
    topic_ids: dict[str, str] = field(default_factory=dict)
    cluster: StartableCluster | None = None
    actions: ClusterActions | None = None
    lenient: bool = False
    """Go on where an answer is not the one that the script expects: for emulators, which are not recorded."""
    patience: float = ANSWER_SECONDS
    access: BrokerAccess = field(default_factory=BrokerAccess)


@dataclass
class Note:
    """Something that was done and is no request."""

    fields: Json
    began: float
    ended: float


class Play:
    """A script while it is played."""

    def __init__(self, script: Script, target: Target) -> None:
        self.script = script
        self.target = target
        self.topic = script.topic
        self.topic_ids = target.topic_ids
        self.transactional_id = script.transactional_id
        self.group = script.group
        self.entries: list[SentRequest | Note] = []
        self.connections: Final = ClientConnections(target.addresses, self.elapsed, target.access)
        self.begin()

    @property
    def topic_id(self) -> str:
        return self.topic_ids[self.topic]

    @property
    def cluster(self) -> StartableCluster:
        """The cluster of brokers that can be stopped and started."""
        assert self.target.cluster is not None, f"{self.script.name} needs a cluster of its own"
        return self.target.cluster

    def begin(self) -> None:
        """Count time from now on."""
        self._start = time.monotonic()
        self._start_ms = round(time.time() * 1000)

    def elapsed(self) -> float:
        """Milliseconds since the script began."""
        return (time.monotonic() - self._start) * 1000

    def now(self, more: int = 0) -> int:
        """The time of day, in milliseconds, at the script's start and some later."""
        return self._start_ms + more

    async def play(self) -> Play:
        """Run the script to its end; returns this play with all its entries."""
        try:
            await self.script.run(self)
        finally:
            self.close()
            for entry in self.entries:
                if isinstance(entry, SentRequest):
                    entry.answer.cancel()
        return self

    def close(self) -> None:
        """Close every connection."""
        self.connections.close()

    # --- requests

    async def send(
        self,
        client: str,
        broker: int,
        api: str,
        version: int,
        body: Json,
        *,
        claimed: int | None = None,
        is_answered: bool = True,
    ) -> SentRequest:
        """Send a request; returns once it is written."""
        asked = SentRequest(client, broker, api, version, body, claimed, is_answered, self.elapsed())
        self.entries.append(asked)
        await self.connections.send(asked)
        return asked

    async def answer(self, asked: SentRequest, more_ms: float = 0.0) -> Any:
        """The answer to a request that was sent, which Kafka took ``more_ms`` to give.

        Raises ConnectionClosed, and ScriptFailed if no answer comes.
        """
        patience = self.target.patience + more_ms / 1000
        try:
            return await asyncio.wait_for(asyncio.shield(asked.answer), patience)
        except TimeoutError:
            who = f"{asked.client}'s {asked.api} v{asked.version}"
            raise ScriptFailed(f"{self.script.name}: {who} was not answered") from None

    async def ask(
        self,
        client: str,
        api: str,
        body: Json,
        version: int | None = None,
        *,
        broker: int = 1,
        is_answered: bool = True,
    ) -> Any:
        """Send a request, and return its answer, or ``closed``."""
        version = newest(api) if version is None else version
        asked = await self.send(client, broker, api, version, body, is_answered=is_answered)
        if not is_answered:
            await asyncio.sleep(UNANSWERED_SECONDS)
            asked.answered_at = self.elapsed()
            return None
        try:
            return await self.answer(asked)
        except ConnectionClosed:
            return CLOSED

    async def unrecorded(self, api: str, body: Json, version: int | None = None, *, broker: int = 1) -> Any:
        """The answer to a request that is not recorded."""
        asked = SentRequest("unrecorded", broker, api, newest(api) if version is None else version, body)
        await self.connections.send(asked)
        try:
            return await self.answer(asked)
        except ConnectionClosed:
            return CLOSED

    # --- where partitions are led

    async def leader(self, topic: str, partition: int) -> int:
        """The broker that leads a partition, as a broker that runs knows it; -1 if none does."""
        broker = next(each for each in self.cluster.ports if each not in self.cluster.stopped)
        return await self.leader_known_to(broker, topic, partition)

    async def leader_known_to(self, broker: int, topic: str, partition: int) -> int:
        found = await self.unrecorded("Metadata", {"topics": [{"topicId": ZERO_ID, "name": topic}]}, 12, broker=broker)
        return next(
            int(each["leaderId"]) for each in found["topics"][0]["partitions"] if each["partitionIndex"] == partition
        )

    # --- what is no request

    def note(self, what: str, began: float, **more: Any) -> None:
        """Record an action that has ended."""
        self.entries.append(Note({"do": what, **more}, began, self.elapsed()))

    def mark(self, **fields: Any) -> None:
        """Record something that is so from now on."""
        self.entries.append(Note(fields, self.elapsed(), self.elapsed()))

    async def wait(self, ms: int) -> None:
        began = self.elapsed()
        await asyncio.sleep(ms / 1000)
        self.note("wait", began, ms=ms)

    async def together(self, *parts: Awaitable[Any]) -> None:
        """Several at the same time."""
        await asyncio.gather(*parts)

    async def until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something is so."""
        await self._until(is_so)

    async def until_complete(self, transactional_id: str | None = None, *, broker: int = 1) -> None:
        """Wait until the coordinator shows no Prepare state."""
        began, wanted = self.elapsed(), transactional_id or self.transactional_id

        async def is_complete() -> bool:
            found = await self.unrecorded("DescribeTransactions", {"transactionalIds": [wanted]}, broker=broker)
            return not found["transactionStates"][0]["transactionState"].startswith("Prepare")

        await self._until(is_complete)
        self.note("wait until the transaction is complete", began, transactionalId=wanted)

    async def settle(self, transactional_id: str, *, broker: int = 1) -> None:
        """Wait as :meth:`until_complete` does, but for a transaction that may stay in a Prepare state no longer."""
        began, body = self.elapsed(), {"transactionalIds": [transactional_id]}
        while self.elapsed() < began + SETTLE_MS:
            answer = await self.unrecorded("DescribeTransactions", body, broker=broker)
            (found,) = answer["transactionStates"]
            if not found["transactionState"].startswith("Prepare"):
                self.note("wait until the transaction is complete", began, transactionalId=transactional_id)
                return
            await asyncio.sleep(0.01)
        self.note("wait", began)

    async def until_led(self, topic: str, partitions: int) -> None:
        """Wait until a new topic can be written to."""
        began = self.elapsed()
        for partition in range(partitions):
            await self._until_error(topic, partition, ErrorCode.NONE)
        await asyncio.sleep(SETTLE_MS / 1000)
        self.note("wait", began)

    async def until_gone(self, topic: str) -> None:
        """Wait until a topic that was deleted is not led any more."""
        began = self.elapsed()
        await self._until_error(topic, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await asyncio.sleep(SETTLE_MS / 1000)
        self.note("wait", began)

    async def _until_error(self, topic: str, partition: int, error: ErrorCode) -> None:
        """Wait until the leader of a partition says so."""
        wanted = {"topics": [{"name": topic, "partitionIndexes": [partition]}]}

        async def is_so() -> bool:
            (seen,) = (await self.unrecorded("DescribeProducers", wanted))["topics"]
            return bool(seen["partitions"][0]["errorCode"] == error)

        await self._until(is_so)

    async def restart(self, how: str, settings: Mapping[str, str] | None = None) -> None:
        """Stop or kill the one broker, start it again, and wait until it serves what it has.

        It may come back with some other settings.
        """
        began = self.elapsed()
        self.close()
        await self.cluster.stop(1, signal.SIGKILL if how == "killed" else signal.SIGTERM)
        if settings:
            self.cluster.change_settings(settings)
        await self.cluster.start(1)
        for partition in range(self.script.partitions):
            await self._until_error(self.topic, partition, ErrorCode.NONE)

        async def is_loaded() -> bool:
            body = {"groups": [self.group]}
            group = (await self.unrecorded("DescribeGroups", body, 0))["groups"][0]["errorCode"]
            listed = (await self.unrecorded("ListTransactions", {}))["errorCode"]
            no_id = {"transactionalId": None, "transactionTimeoutMs": 1_000}
            given = (await self.unrecorded("InitProducerId", no_id, 2))["errorCode"]
            return not group and not listed and not given

        await self._until(is_loaded)
        await asyncio.sleep(SETTLE_MS / 1000)
        self.note(f"the broker is {how} and started", began, **({"settings": settings} if settings else {}))

    async def until_closed(self, partition: int = 0, topic: str | None = None, *, broker: int = 1) -> None:
        """Wait until a partition has no open transaction."""
        began, name = self.elapsed(), topic or self.topic
        body = {"topics": [{"name": name, "partitionIndexes": [partition]}]}

        async def is_closed() -> bool:
            found = (await self.unrecorded("DescribeProducers", body, broker=broker))["topics"][0]["partitions"][0]
            return all(each["currentTxnStartOffset"] < 0 for each in found["activeProducers"])

        await self._until(is_closed)
        self.note("wait until no transaction is open", began, topic=name, partition=partition)

    async def until_cleaned(self, offset: int, topic: str | None = None, partition: int = 0) -> None:
        """Wait until a partition is compacted up to an offset: the first one, if none is named."""
        began = self.elapsed()

        async def is_cleaned() -> bool:
            return self.cluster.cleaned_up_to(1, topic or self.topic, partition) >= offset

        await self._until(is_cleaned)
        await asyncio.sleep(SETTLE_MS / 1000)
        self.note("wait", began)

    async def _until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while not await is_so():
                    await asyncio.sleep(0.003)
        except TimeoutError:
            raise ScriptFailed(f"{self.script.name}: what was waited for never came") from None
