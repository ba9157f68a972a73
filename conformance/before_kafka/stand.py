"""A real Kafka with ``rejoin proxy`` before it, in a process of its own.

Brokers have two listeners. One is open, for clients without the proxy. The other wants a login that only the proxy has:
a client that went past the proxy there would be refused, and the broker's log would say so.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from sys import executable
from typing import Any, Final, Self

from conformance.kafka.broker import HOST, Cluster
from rejoin.conform.judged_broker import look
from rejoin.conform.player.connection import BrokerAccess, ClientConnections
from rejoin.conform.player.messages import Json
from rejoin.pipeline.reading.broker_logs.lines import Record
from rejoin.pipeline.reading.request_log import BEGINNING, LoggedExchange, read_exchange

HERE: Final = Path(__file__).parent
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Settings of each broker; without the last three a single one keeps no state of share groups."""
LISTENER: Final = "BEHIND"
USER, PASSWORD = "proxy", "proxy-secret"
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LOGIN: Final = {
    "sasl.enabled.mechanisms": "PLAIN",
    f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": f'{_MODULE} required user_{USER}="{PASSWORD}";',
}
_CLIENT: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}
"""Settings with which the proxy logs in."""
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_NO_DEFECTS: Final = (
    "proxy_listens",
    "proxy_ready",
    "proxy_stopped",
    "proxy_broker_unreachable",
)
"""Events of the proxy's log that are in order. A broker that was stopped is out of reach."""
_REFUSED: Final = re.compile(r"Failed authentication with")


def free_ports(count: int) -> int:
    """The first of as many ports in a row that were free a moment ago; another one each time."""
    for _ in range(1_000):
        first = random.randrange(23_000, 31_000)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise RuntimeError(f"no {count} free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


class ProxyBeforeKafka:
    """``rejoin proxy`` before a cluster."""

    def __init__(self, servers: str, folder: Path, *options: str, brokers: int = 1, logs_in: bool = True) -> None:
        """``servers`` are those of the cluster, which has so many ``brokers``."""
        self.port = free_ports(2 + brokers)
        self.journal = folder / "journal"
        self._log = folder / "proxy.log"
        self._command = [executable, "-m", "rejoin", "proxy", "--bootstrap-server", servers]
        self._command += ["--listen", f"{HOST}:{self.port}", "--journal", str(self.journal), *options]
        if logs_in:
            login = folder / "login.properties"
            login.write_text("".join(f"{name}={value}\n" for name, value in _CLIENT.items()))
            self._command += ["--command-config", str(login)]
        self._process: asyncio.subprocess.Process

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find it."""
        return f"{HOST}:{self.port}"

    async def __aenter__(self) -> Self:
        with self._log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=out, stderr=out, env=os.environ | {"PYTHONFAULTHANDLER": "1"}
            )
        end = time.monotonic() + _START_SECONDS
        while not any(line.get("event") == "proxy_ready" for line in self.logged()):
            if self._process.returncode is not None or time.monotonic() > end:
                raise RuntimeError(f"the proxy did not start: {self._log.read_text()[-2000:]}")
            await asyncio.sleep(0.05)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it; it is killed when it does not."""
        if self._process.returncode is not None:
            return
        self._process.send_signal(how)
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        except TimeoutError:
            # Its stack goes to its log.
            self._process.send_signal(signal.SIGABRT)
            await self._process.wait()

    def logged(self) -> list[dict[str, Any]]:
        """The lines of its log; one that is no JSON has the event ``text``."""
        found = []
        for line in self._log.read_text(errors="replace").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"event": "text", "text": line})
        return found

    def counts(self) -> dict[str, Any]:
        """Its counts, once it was stopped."""
        return next((line for line in self.logged() if line.get("event") == "proxy_stopped"), {})

    def defects(self) -> list[str]:
        """Lines of its log, and counts, that there should not be; of a proxy that was stopped."""
        found = [json.dumps(line) for line in self.logged() if line.get("event") not in _NO_DEFECTS]
        counts = self.counts()
        wrong = ("unknown", "refused", "not_looked_at", "journal_unreadable", "journal_lost")
        return [*found, *(f"{name}: {counts.get(name, 'not known')}" for name in wrong if counts.get(name, 1))]

    def apis(self) -> Counter[str]:
        """Lines of the journal by API. Raises ``ValueError`` where one cannot be read."""
        found: Counter[str] = Counter()
        for file in sorted(self.journal.iterdir()):
            for number, line in enumerate(file.read_text().splitlines(), 1):
                message = line[line.index(BEGINNING) :].removesuffix(" (kafka.request.logger)")
                exchange = read_exchange(Record(number, 0, "DEBUG", "", message))
                if exchange is None:
                    continue
                if not isinstance(exchange, LoggedExchange):
                    raise ValueError(f"{file.name}:{number}: {exchange}")
                found[exchange.api] += 1
        return found


class ProxiedKafka:
    """Brokers and a proxy before them. Use it as an async context manager."""

    def __init__(
        self, jars: str, count: int = 1, settings: Mapping[str, str] | None = None, options: tuple[str, ...] = ()
    ) -> None:
        """``settings`` are further ones of the brokers, ``options`` those of ``rejoin proxy``."""
        listeners = {LISTENER: "SASL_PLAINTEXT"}
        self.cluster = Cluster(jars, count, {**SETTINGS, **_LOGIN, **(settings or {})}, listeners=listeners)
        self._options = options
        self._stack = AsyncExitStack()
        self.proxy: ProxyBeforeKafka
        self.folder: Path

    @property
    def direct(self) -> str:
        """Bootstrap servers of the brokers themselves."""
        return ",".join(f"{HOST}:{port}" for port in self.cluster.ports.values())

    @property
    def behind(self) -> str:
        """Bootstrap servers of the listener that only the proxy can use."""
        return ",".join(f"{HOST}:{ports[LISTENER]}" for ports in self.cluster.listener_ports.values())

    async def __aenter__(self) -> Self:
        try:
            self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="proxied-")))
            await self._stack.enter_async_context(self.cluster)
            brokers = len(self.cluster.ports)
            if brokers == 1:
                broker = await look((HOST, self.cluster.ports[1]), BrokerAccess())
                await broker.warm_up("warm-up-")
                await broker.warm_up_share_state("warm-up-")
            self.proxy = ProxyBeforeKafka(self.behind, self.folder, *self._options, brokers=brokers)
            await self._stack.enter_async_context(self.proxy)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def partitions(self, *topics: str) -> dict[str, list[Json]]:
        """The partitions of topics in their order, as a broker that runs has them; of all topics without a name."""
        running = next(number for number in self.cluster.ports if number not in self.cluster.stopped)
        connections = ClientConnections(self.cluster.addresses, time.monotonic)
        try:
            body = {"topics": [{"name": name} for name in topics] or None}
            answer = await connections.ask("stand", running, "Metadata", 1, body)
        finally:
            connections.close()
        return {
            topic["name"]: sorted(topic["partitions"], key=lambda each: int(each["partitionIndex"]))
            for topic in answer["topics"]
        }

    async def defects(self) -> list[str]:
        """Stop the proxy; what its log, its journal and the brokers' logs have that they should not."""
        await self.proxy.stop()
        found = self.proxy.defects()
        try:
            self.proxy.apis()
        except ValueError as problem:
            found.append(str(problem))
        for number in self.cluster.ports:
            refused = len(_REFUSED.findall(self.cluster.server_log(number)))
            if refused:
                found.append(f"broker {number} refused {refused} logins: a client went past the proxy")
        return found
