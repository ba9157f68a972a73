"""Members of a share group whose broker is killed, and the ledger of what they were given and what they said."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any, Final

from rejoin import ShareConsumer, TopicPartition
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.durability.service import PATIENCE

GROUP: Final = "jobs-app"
TOPIC: Final = "jobs"
ACCEPT, RELEASE = 1, 2
PAUSE_SECONDS: Final = 0.02
MOST_RECORDS: Final = 5


class NoAnswer(Exception):
    """The broker is away, or does not lead anything yet."""


class Caller:
    """Asks a broker over one HTTP connection at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """The answer as JSON. Raises :class:`NoAnswer`, whatever became of the request."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        headers = {"Content-Type": "application/json", "Kafka-Api-Version": str(version)}
        try:
            self._connection.request("POST", BY_NAME[api].path, json.dumps(body), headers)
            answer = self._connection.getresponse()
            found: dict[str, Any] = json.loads(answer.read())
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise NoAnswer from problem
        if answer.status == 503:
            raise NoAnswer
        assert answer.status == 200, f"{api}: {found}"
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Ledger:
    """Everything by offset; the members of one broker write into it under its lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.deliveries: dict[int, list[int]] = defaultdict(list)
        """The delivery counts that came with each record."""
        self.accepted: set[int] = set()
        """Acknowledged as accepted, and the broker has said so."""
        self.maybe: set[int] = set()
        """Accepted in a request that was not answered."""
        self.released: Counter[int] = Counter()
        """Releases that were answered."""
        self.problems: list[str] = []

    def final(self) -> set[int]:
        """Records that no fetch which begins now may deliver."""
        with self.lock:
            return set(self.accepted)

    def acquired(self, given: dict[int, int], final: set[int]) -> None:
        """Records came with their delivery counts, by a fetch that began when others were final."""
        with self.lock:
            for offset, count in given.items():
                if offset in final:
                    self.problems.append(f"record {offset} was accepted and is delivered again")
                self.deliveries[offset].append(count)

    def began(self, offsets: list[int]) -> None:
        with self.lock:
            self.maybe.update(offsets)

    def answered(self, offsets: dict[int, int]) -> None:
        with self.lock:
            for offset, kind in offsets.items():
                if kind == ACCEPT:
                    self.accepted.add(offset)
                else:
                    self.released[offset] += 1

    @property
    def accepted_count(self) -> int:
        return len(self.accepted)


class LedgerMember(threading.Thread):
    """A :class:`rejoin.ShareConsumer` that releases each poison record and accepts all others, until it is stopped."""

    def __init__(self, kafka_port: int, name: str, ledger: Ledger, poison: int) -> None:
        """Every record whose offset ``poison`` divides is poison."""
        super().__init__(name=f"member-{name}", daemon=True)
        self._servers = f"127.0.0.1:{kafka_port}"
        self._ledger = ledger
        self._poison = poison
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        try:
            asyncio.run(self._live())
        except Exception as problem:  # a member that ends early would look like one that has nothing to do
            self._ledger.problems.append(f"{self.name}: {problem!r}")

    async def _live(self) -> None:
        consumer = ShareConsumer(TOPIC, bootstrap_servers=self._servers, group_id=GROUP, **_SETTINGS)
        async with asyncio.timeout(PATIENCE), consumer:
            while not self._stopped.is_set():
                await self._work(consumer)

    async def _work(self, consumer: ShareConsumer) -> None:
        final = self._ledger.final()
        given = {record.offset: record.delivery_count or 0 for record in await consumer.poll(POLL_MS)}
        self._ledger.acquired(given, final)
        if not given:
            return
        kinds = {offset: ACCEPT if offset % self._poison else RELEASE for offset in given}
        self._ledger.began([offset for offset, kind in kinds.items() if kind == ACCEPT])
        for offset, kind in kinds.items():
            consumer.acknowledge(TOPIC, 0, offset, kind)
        results = await consumer.commit()
        if results == {TopicPartition(TOPIC, 0): None}:
            self._ledger.answered(kinds)


POLL_MS: Final = 50
_SETTINGS: Final[dict[str, Any]] = {
    "share_acknowledgement_mode": "explicit",
    "share_acquire_mode": "record_limit",
    "max_poll_records": MOST_RECORDS,
    "fetch_max_wait_ms": POLL_MS,
    "retry_backoff_max_ms": 300,
    "reconnect_backoff_max_ms": 300,
}


def insist(caller: Caller, api: str, version: int, body: dict[str, Any], *fine: int) -> dict[str, Any]:
    """Ask until there is an answer without an error, or with one of those that are fine."""
    deadline = time.monotonic() + PATIENCE
    answer: dict[str, Any] = {}
    while time.monotonic() < deadline:
        with suppress(NoAnswer):
            answer = caller.ask(api, version, body)
            if set(_errors(answer)) <= {0, *fine}:
                return answer
        time.sleep(PAUSE_SECONDS)
    raise AssertionError(f"{api} is not answered well: {answer}")


def _errors(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [value["errorCode"]] if "errorCode" in value else []
        return own + [error for each in value.values() for error in _errors(each)]
    return [error for each in value for error in _errors(each)] if isinstance(value, list) else []
