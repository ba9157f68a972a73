"""One script on a real Kafka: requests by several clients, and every line of the recording.

What a broker makes up has a name in the recording: ``pid-1`` for a producer id, ``id:NAME`` for a topic id,
``member-1``, ``session-1``; times near the recording are ``T+123``.
"""

from __future__ import annotations

import asyncio
import base64
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.kafka.broker import Cluster
from conformance.player.connection import ConnectionClosed, Connections
from conformance.player.messages import ZERO_ID, Json, newest, with_defaults
from conformance.player.script import ScriptFailed
from conformance.records.described_records import described_batches
from conformance.records.described_transaction_log import PRODUCER_IDS, with_transactions
from rejoin.protocol.errors import ErrorCode

ANSWER_SECONDS: Final = 20.0
NEAR_MS: Final = 40 * 24 * 3_600_000
"""Times that are this near to a recording are said as what lies between."""

SETTLE_MS: Final = 300
"""Within this all markers are written that are written at all."""

NAMED: Final = {"producerId": "pid", "sessionId": "session", "memberId": "member"}
"""Fields with what a broker makes up, and how that is called."""
LEARNED_FROM: Final = {"InitProducerId", "EndTxn", "Fetch", "JoinGroup"}
"""Requests whose answers bring such values."""
SPOKEN_OF: Final = {"producerId", "v3AndBelowProducerId", "sessionId", "memberId", "leader", "topicId", *PRODUCER_IDS}


@dataclass
class Script:
    """A script by its name: what it does, on how many partitions of its own topic, in which set.

    ``assignment`` names the replicas of each partition; ``configs`` are the topic's settings.
    """

    name: str
    run: Callable[[Play], Awaitable[None]]
    partitions: int = 2
    configs: dict[str, str] = field(default_factory=dict)
    assignment: list[list[int]] | None = None
    more_topics: dict[str, int] = field(default_factory=dict)
    """Further topics that there are before the script begins, and how many partitions they have."""
    epoch: int | None = None
    """The epoch that the script's transactional id has before the script begins, if it is known then."""
    keeps_ids: bool = False
    """Whether members and topics have in the recording the ids that the broker drew: their order depends on them."""

    @property
    def transactional_id(self) -> str:
        return f"tx-{self.name}"


class Play:
    """A script while it is played."""

    def __init__(self, script: Script, cluster: Cluster, topic_ids: dict[str, str]) -> None:
        self.script = script
        self.cluster = cluster
        self.topic = topic_of(script)
        self.topic_ids = topic_ids
        self.transactional_id = script.transactional_id
        self.group = f"group-{script.name}"
        self.lines: list[Json] = []
        self._start = time.monotonic()
        self._start_ms = round(time.time() * 1000)
        self._connections = Connections(cluster.addresses, self.elapsed)
        self._names: dict[Any, str] = {identity: f"id:{name}" for name, identity in topic_ids.items()}
        self._counts: dict[str, int] = {}

    @property
    def topic_id(self) -> str:
        return self.topic_ids[self.topic]

    def elapsed(self) -> float:
        return round((time.monotonic() - self._start) * 1000, 1)

    def now(self, more: int = 0) -> int:
        """The time of day, in milliseconds, at the script's start and some later."""
        return self._start_ms + more

    async def play(self) -> list[Json]:
        """All lines, with names for what the broker made up."""
        try:
            await self.script.run(self)
        finally:
            self.close()
        return [self._named_line(line) for line in self.lines]

    def close(self) -> None:
        """Close every connection."""
        self._connections.close()

    # --- requests

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
        """The answer, ``closed`` if there is a closed connection instead."""
        version = newest(api) if version is None else version
        line: Json = {"n": len(self.lines) + 1, "client": client, "broker": broker, "api": api, "version": version}
        line |= {"sent": self.elapsed(), "request": with_defaults(api, version, body)}
        self.lines.append(line)
        answer = await self._exchange(client, broker, api, version, body, is_answered)
        line |= {"answered": self.elapsed(), "answer": answer}
        # The id that a member has chosen itself is no name.
        is_chosen = api == "JoinGroup" and (bool(body["memberId"]) or self.script.keeps_ids)
        if api in LEARNED_FROM and isinstance(answer, dict) and not is_chosen:
            self._learn(answer)
        if api == "CreateTopics":
            self._names |= {made["topicId"]: f"id:{made['name']}" for made in answer["topics"]}
        return answer

    async def quietly(self, api: str, body: Json, version: int | None = None, *, broker: int = 1) -> Any:
        """An answer that is not recorded."""
        return await self._exchange("quiet", broker, api, newest(api) if version is None else version, body, True)

    async def _exchange(self, client: str, broker: int, api: str, version: int, body: Json, is_answered: bool) -> Any:
        if not is_answered:
            await self._connections.send_unanswered(client, broker, api, version, body)
            await asyncio.sleep(0.1)
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._connections.ask(client, broker, api, version, body)
        except ConnectionClosed:
            return "closed"
        except TimeoutError:
            raise ScriptFailed(f"{self.script.name}: {api} v{version} was not answered") from None

    # --- where partitions are led

    async def leader(self, topic: str, partition: int) -> int:
        """The broker that leads a partition, as a broker that runs knows it; -1 if none does."""
        broker = next(each for each in self.cluster.ports if each not in self.cluster.stopped)
        return await self.leader_known_to(broker, topic, partition)

    async def leader_known_to(self, broker: int, topic: str, partition: int) -> int:
        found = await self.quietly("Metadata", {"topics": [{"topicId": ZERO_ID, "name": topic}]}, 12, broker=broker)
        return next(
            int(each["leaderId"]) for each in found["topics"][0]["partitions"] if each["partitionIndex"] == partition
        )

    # --- what is no request

    def note(self, what: str, began: float, **more: Any) -> None:
        """A line about something else that was done."""
        self.lines.append({"n": len(self.lines) + 1, "do": what, **more, "began": began, "ended": self.elapsed()})

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
            found = await self.quietly("DescribeTransactions", {"transactionalIds": [wanted]}, broker=broker)
            return not found["transactionStates"][0]["transactionState"].startswith("Prepare")

        await self._until(is_complete)
        self.note("wait until the transaction is complete", began, transactionalId=wanted)

    async def settle(self, transactional_id: str, *, broker: int = 1) -> None:
        """Wait as :meth:`until_complete` does, but for a transaction that may stay in a Prepare state no longer."""
        began, body = self.elapsed(), {"transactionalIds": [transactional_id]}
        while self.elapsed() < began + SETTLE_MS:
            answer = await self.quietly("DescribeTransactions", body, broker=broker)
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
            (seen,) = (await self.quietly("DescribeProducers", wanted))["topics"]
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
            group = (await self.quietly("DescribeGroups", body, 0))["groups"][0]["errorCode"]
            listed = (await self.quietly("ListTransactions", {}))["errorCode"]
            no_id = {"transactionalId": None, "transactionTimeoutMs": 1_000}
            given = (await self.quietly("InitProducerId", no_id, 2))["errorCode"]
            return not group and not listed and not given

        await self._until(is_loaded)
        await asyncio.sleep(SETTLE_MS / 1000)
        self.note(f"the broker is {how} and started", began, **({"settings": settings} if settings else {}))

    async def until_closed(self, partition: int = 0, topic: str | None = None, *, broker: int = 1) -> None:
        """Wait until a partition has no open transaction."""
        began, name = self.elapsed(), topic or self.topic
        body = {"topics": [{"name": name, "partitionIndexes": [partition]}]}

        async def is_closed() -> bool:
            found = (await self.quietly("DescribeProducers", body, broker=broker))["topics"][0]["partitions"][0]
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

    # --- names

    def _learn(self, value: Any) -> None:
        if isinstance(value, dict):
            for key, prefix in NAMED.items():
                made_up = value.get(key)
                is_new = made_up not in (None, -1, 0, "") or (key == "producerId" and made_up == 0)
                if is_new and made_up not in self._names:
                    self._name(made_up, prefix)
            for each in value.values():
                self._learn(each)
        elif isinstance(value, list):
            for each in value:
                self._learn(each)

    def _name(self, value: Any, prefix: str) -> None:
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        self._names[value] = f"{prefix}-{self._counts[prefix]}"

    def _named_line(self, line: Json) -> Json:
        line |= {"answer": with_transactions(line["answer"])} if "answer" in line else {}
        return {
            name: self._named(value, name) if name in ("request", "answer") else value for name, value in line.items()
        }

    def _named(self, value: Any, key: str = "", within: Json | None = None) -> Any:
        if key == "records" and not isinstance(value, (dict, list)):
            return self._records(value)
        if isinstance(value, dict):
            return {name: self._named(each, name, value) for name, each in value.items()}
        if isinstance(value, list):
            inner = "producerId" if key == "producerIdFilters" else key
            return [self._named(each, inner, within) for each in value]
        if (key == "sessionId" and value == 0) or (key == "topicId" and value == ZERO_ID):
            return value
        if key in SPOKEN_OF:
            return self._names.get(value, value)
        if key == "port" and within is not None and value > 0:
            node = next((each for each in self.cluster.ports if self.cluster.ports[each] == value), 0)
            return f"port-{node}"
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return self._time(value) if is_number else value

    def _time(self, value: int) -> Any:
        between = value - self._start_ms
        return f"T{between:+}" if abs(between) < NEAR_MS else value

    def _records(self, value: bytes | str | None) -> Any:
        if value is None:
            return None
        found = described_batches(base64.b64decode(value) if isinstance(value, str) else value)
        for batch in found["batches"]:
            for key in ("producerId", "baseTimestamp", "maxTimestamp"):
                batch[key] = self._named(batch[key], key)
        return found


def topic_of(script: Script) -> str:
    """The name of a script's own topic."""
    return f"orders-{script.name}"


__all__ = ["Play", "Script", "ScriptFailed", "topic_of"]
