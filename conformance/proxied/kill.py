"""Kills proxies under producers, group commits and transactions: ``python -m conformance.proxied.kill``.

Clients of several libraries are connected to ``rejoin proxy`` in front of a real Kafka. Each kill is a SIGKILL at a
drawn moment. ``--way port``: one proxy, started again on its port. ``--way second``: two proxies, both in
bootstrap.servers; the one that has the clients is killed, and comes back only once they go on by the other one. At the
end the clients' own ledgers are compared with what the broker has. Prints how long each client stood still.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import signal
import socket
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from conformance.kafka.broker import HOST, JAVA, Cluster, class_path
from conformance.kafka.proxy_process import ProxyProcess
from conformance.proxied.client import BACKOFF_MS, LIBRARIES, NUMBERS, moved
from conformance.proxied.ledger import ClientLedger, lost
from conformance.record import ready

HERE: Final = Path(__file__).parent
ROLES: Final = ("produce", "consume", "move")
CHOICES: Final = ("rdkafka", "java", "aiokafka", "kafka-python")
WAYS: Final = ("port", "second")
BROKER: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
}
START_SECONDS: Final = 240.0
RECOVER_SECONDS: Final = 90.0
"""A client that has stood still for so long is stuck."""
STOP_SECONDS: Final = 45.0
LONGEST_CALM_SECONDS: Final = 0.5
LONGEST_AWAY_SECONDS: Final = 2.0
_AGAIN: Final = 3
"""Acknowledgements that a client must have after a kill before the next one."""
_PORTS_APART: Final = 10


class KilledClient:
    """A client's process, its ledger, and how long it stood still after each kill."""

    def __init__(self, command: list[str], ledger: ClientLedger, log: Path) -> None:
        self.ledger = ledger
        self.still: list[float | None] = []
        """Seconds after each kill, None where it was stuck."""
        self._command, self._log = command, log
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return f"{self.ledger.library} {self.ledger.role}"

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        self._reading = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None, "its output is a pipe"
        async for line in process.stdout:
            self.ledger.take(json.loads(line))

    async def goes_on(self, since: float, seconds: float) -> bool:
        """Wait until it has had some things acknowledged since an instant, in s since 1970."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if sum(at > since for at in self.ledger.answered_at[-_AGAIN:]) == _AGAIN:
                return True
            if self._process is not None and self._process.returncode is not None:
                self.ledger.problems.append(f"ended with {self._process.returncode}")
                return False
            await asyncio.sleep(0.02)
        return False

    def measure(self, since: float) -> None:
        """Note the longest time without an acknowledgement since a kill."""
        answered = self.ledger.answered_at
        instants = [since, *(at for at in answered if at > since)]
        self.still.append(max(after - before for before, after in itertools.pairwise(instants)))

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(how)
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                self.ledger.problems.append(f"did not end within {STOP_SECONDS:.0f} s")
                process.kill()
                await process.wait()
        if self._reading is not None:
            await self._reading


def command(library: str, role: str, bootstrap: str, number: int, classes: str) -> list[str]:
    """How a client is started."""
    if library == "java":
        memory = [*(each for each in JAVA if not each.startswith("-Xm")), "-Xmx96m"]
        settings = [f"reconnect.backoff.max.ms={BACKOFF_MS}"]
        return [*memory, "-cp", classes, "Client", role, bootstrap, str(number), *settings]
    return [sys.executable, "-m", "conformance.proxied.client", library, role, bootstrap, str(number)]


async def play(
    way: str, libraries: list[str], kills: int, seed: int, work: Path
) -> tuple[list[KilledClient], list[str]]:
    """One run; the clients with their ledgers, and what was lost."""
    dice = random.Random(seed)
    jars = await class_path()
    if "java" in libraries:
        await _compile(jars, work)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster(jars, 1, BROKER))
        broker = ":".join(map(str, cluster.addresses[1]))
        topics = {name: len(libraries) for name in (NUMBERS, *(moved(library) for library in libraries))}
        await ready(cluster.addresses, topics, 1, 1)
        ports = _ports(2 if way == "second" else 1)
        proxies = [ProxyProcess(broker, work / f"proxy-{port}", port) for port in ports]
        for proxy in proxies:
            await stack.enter_async_context(proxy)
        bootstrap = ",".join(proxy.address for proxy in proxies)
        clients = [
            KilledClient(
                command(library, role, bootstrap, number, f"{work}:{jars}"),
                ClientLedger(library, role, number),
                work / f"{library}-{role}.log",
            )
            for number, library in enumerate(libraries)
            for role in ROLES
        ]
        for client in clients:
            await client.start()
            stack.push_async_callback(client.stop, signal.SIGKILL)
        await _all_go_on(clients, 0.0, START_SECONDS)
        for nth in range(kills):
            await asyncio.sleep(dice.uniform(0, LONGEST_CALM_SECONDS))
            killed = proxies[nth % len(proxies)]
            since = time.time()
            await killed.stop(signal.SIGKILL)
            if way == "port":
                await asyncio.sleep(dice.uniform(0, LONGEST_AWAY_SECONDS))
                await killed.start()
            await _recover(clients, since)
            if way == "second":
                await killed.start()
            print(f"kill {nth + 1}: {', '.join(_still(client) for client in clients)}", flush=True)
        await asyncio.gather(*(client.stop() for client in clients))
        return clients, await asyncio.to_thread(lost, broker, [client.ledger for client in clients])


def _still(client: KilledClient) -> str:
    last = client.still[-1]
    return f"{client.name} {'stuck' if last is None else f'{last:.1f} s'}"


async def _all_go_on(clients: list[KilledClient], since: float, seconds: float) -> None:
    going = await asyncio.gather(*(client.goes_on(since, seconds) for client in clients))
    standing = [
        f"{client.name}: {client.ledger.problems[-3:]}" for client, goes in zip(clients, going, strict=True) if not goes
    ]
    if standing:
        raise SystemExit(f"nothing is acknowledged: {'; '.join(standing)}")


async def _recover(clients: list[KilledClient], since: float) -> None:
    """Wait for each client. One that is stuck goes on where the proxy that it knows comes back."""
    going = await asyncio.gather(*(client.goes_on(since, RECOVER_SECONDS) for client in clients))
    for client, goes in zip(clients, going, strict=True):
        if goes:
            client.measure(since)
        else:
            client.still.append(None)


async def _compile(jars: str, folder: Path) -> None:
    process = await asyncio.create_subprocess_exec("javac", "-cp", jars, "-d", str(folder), str(HERE / "Client.java"))
    if await process.wait():
        raise SystemExit(f"javac ended with {process.returncode}")


def _ports(count: int) -> list[int]:
    """Ports far enough apart for the listeners of brokers, below those that systems hand out."""
    found: list[int] = []
    for port in range(19_092, 30_000, _PORTS_APART):
        if len(found) == count:
            break
        try:
            for near in range(port, port + 3):
                with socket.socket() as probe:
                    probe.bind((HOST, near))
        except OSError:
            continue
        found.append(port)
    return found


def table(clients: list[KilledClient]) -> str:
    """Each client's acknowledgements, how long it stood still, and what it said."""
    lines = ["| client | acknowledged | still, median | still, longest | stuck | errors | producers replaced |"]
    lines.append("|---|---|---|---|---|---|---|")
    for client in clients:
        seconds = sorted(each for each in client.still if each is not None)
        median = f"{seconds[len(seconds) // 2]:.1f} s" if seconds else ""
        longest = f"{seconds[-1]:.1f} s" if seconds else ""
        ledger = client.ledger
        row: list[Any] = [client.name, ledger.acknowledged(), median, longest, client.still.count(None)]
        row += [len(ledger.problems), len(ledger.replaced)]
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m conformance.proxied.kill", description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=f"of {', '.join(CHOICES)}; all without")
    parser.add_argument("--way", choices=(*WAYS, "both"), default="both")
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    libraries = arguments.libraries or list(CHOICES)
    if unknown := set(libraries) - {*LIBRARIES, "java"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join(CHOICES)}")
    problems = []
    for way in WAYS if arguments.way == "both" else (arguments.way,):
        with tempfile.TemporaryDirectory(prefix="kill-proxy-") as work:
            clients, found = asyncio.run(play(way, libraries, arguments.kills, arguments.seed, Path(work)))
        print(f"\n{way}: {arguments.kills} kills, seed {arguments.seed}\n{table(clients)}")
        for client in clients:
            for said in (*client.ledger.problems[:5], *client.ledger.replaced[:5]):
                print(f"  {client.name}: {said}")
        print("nothing acknowledged was lost" if not found else "\n".join(found), flush=True)
        problems += found
    if problems:
        sys.exit(1)


if __name__ == "__main__":
    main()
