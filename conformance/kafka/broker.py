"""A real Apache Kafka, one node or several in KRaft mode, from its jars: started on loopback, stopped, removed.

Maven resolves the jars of ``pom.xml`` and puts them on a class path. Everything a broker writes is in one temporary
folder; every port is on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Self

HERE: Final = Path(__file__).parent
HOST: Final = "127.0.0.1"
CLUSTER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
LOGGING: Final = HERE / "log4j2.properties"
LOGGED_FOLDER: Final = "/var/lib/kafka"
"""Stands in recorded logs for the temporary folder."""
START_SECONDS: Final = 240.0
STOP_SECONDS: Final = 20.0
JAVA: Final = ("java", "-Xmx512m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")


class BrokerFailed(Exception):
    """Kafka could not be resolved or did not start; the text has the end of what it said."""


def kafka_version() -> str:
    """The version that ``pom.xml`` names."""
    text = (HERE / "pom.xml").read_text()
    return text.split("<kafka.version>")[1].split("<")[0]


async def class_path(release: str = "") -> str:
    """The jars of the broker, resolved by Maven and joined for Java; ``pom.xml`` names the release if none is given."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        out = Path(folder) / "class-path"
        goal = "dependency:build-classpath"
        command = ("mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), goal, f"-Dmdep.outputFile={out}")
        chosen = (f"-Dkafka.version={release}",) if release else ()
        profiles = ("-P", "log4j-1") if release.startswith("3.") else ()
        await _run(*command, "-DincludeScope=runtime", *chosen, *profiles)
        return out.read_text().strip()


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    if process.returncode != 0:
        raise BrokerFailed(f"{command[0]} ended with {process.returncode}: {said.decode()[-2000:]}")


class Cluster:
    """Brokers 1 to ``count``. Use it as an async context manager.

    ``listeners`` are further ones by name, each with its security protocol; ``users`` are log-ins by SCRAM, as
    ``kafka-storage`` takes them; ``features`` are levels of features other than the newest. ``advertised`` are ports to
    which clients are sent instead of the brokers' own.
    """

    def __init__(
        self,
        jars: str,
        count: int,
        settings: Mapping[str, str],
        logging: Path = LOGGING,
        *,
        listeners: Mapping[str, str] | None = None,
        users: Iterable[str] = (),
        features: Mapping[str, int] | None = None,
        advertised: Mapping[int, int] | None = None,
    ) -> None:
        self._jars = jars
        self._logging = logging
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self._settings = settings
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._listeners = dict(listeners or {})
        self._users = tuple(users)
        self._features = dict(features or {})
        self._advertised = dict(advertised or {})
        free = _free_ports((2 + len(self._listeners)) * count)
        self.ports = {number: free.pop() for number in range(1, count + 1)}
        self.listener_ports = {number: {name: free.pop() for name in self._listeners} for number in range(1, count + 1)}
        """The ports of the further listeners, by broker and name."""
        self._controller_ports = {number: free.pop() for number in range(1, count + 1)}

    async def __aenter__(self) -> Self:
        try:
            for number in self.ports:
                self._write_settings(number)
                await _run(*JAVA, "-cp", self._jars, "kafka.tools.StorageTool", *self._format(number))
            await asyncio.gather(*(self.start(number) for number in self.ports))
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(self.stop(number) for number in list(self._processes)))
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        return {number: (HOST, port) for number, port in self.ports.items()}

    @property
    def stopped(self) -> list[int]:
        """The brokers that do not run."""
        return [number for number in self.ports if number not in self._processes]

    def pid(self, number: int) -> int:
        """The process of a broker that runs."""
        return self._processes[number].pid

    async def start(self, number: int) -> None:
        """Start a broker and wait until it serves."""
        with self._file(number, "console").open("ab") as console:
            self._processes[number] = await asyncio.create_subprocess_exec(
                *JAVA,
                f"-Dlog4j2.configurationFile={self._logging}",
                f"-Dgroup.log={self._file(number, 'group')}",
                f"-Drequest.log={self._file(number, 'requests')}",
                *("-cp", self._jars, "kafka.Kafka", str(self._file(number, "settings"))),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                cwd=self._folder,
            )
        starts = self.server_log(number).count("Kafka Server started")
        try:
            async with asyncio.timeout(START_SECONDS):
                while self.server_log(number).count("Kafka Server started") == starts:
                    if self._processes[number].returncode is not None:
                        raise BrokerFailed(f"broker {number} ended: {self.server_log(number)[-2000:]}")
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise BrokerFailed(f"broker {number} did not start: {self.server_log(number)[-2000:]}") from None

    def change_settings(self, settings: Mapping[str, str]) -> None:
        """Give all brokers other settings, with which they start from now on."""
        self._settings = {**self._settings, **settings}
        for number in self.ports:
            self._write_settings(number)

    async def stop(self, number: int, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop a broker, and kill it when it does not."""
        process = self._processes.pop(number, None)
        if process is None or process.returncode is not None:
            return
        process.send_signal(how)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    def group_log(self) -> str:
        """Lines of all brokers' group coordinators, each broker's in their order."""
        return "".join(
            self._file(number, "group").read_text() for number in self.ports if self._file(number, "group").exists()
        )

    def server_log(self, number: int) -> str:
        """All that a broker has logged, but for its requests, with :data:`LOGGED_FOLDER` for the cluster's own."""
        return self._file(number, "console").read_text(errors="replace").replace(str(self._folder), LOGGED_FOLDER)

    def request_log(self, number: int) -> str:
        """The requests that a broker has logged, where its logging does that."""
        return self._file(number, "requests").read_text(errors="replace")

    def cleaned_up_to(self, number: int, topic: str, partition: int) -> int:
        """The offset below which a broker has compacted a partition."""
        checkpoint = self._file(number, "data") / "cleaner-offset-checkpoint"
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        found = [line.split() for line in lines if line.startswith(f"{topic} {partition} ")]
        return int(found[0][2]) if found else 0

    def data_folder(self, number: int) -> Path:
        """The folder of a broker's logs."""
        return self._file(number, "data")

    def _file(self, number: int, name: str) -> Path:
        return self._folder / f"{number}.{name}"

    def _format(self, number: int) -> tuple[str, ...]:
        users = (part for user in self._users for part in ("--add-scram", user))
        features = (part for name, level in self._features.items() for part in ("--feature", f"{name}={level}"))
        settings = str(self._file(number, "settings"))
        return ("format", "--cluster-id", CLUSTER_ID, "--config", settings, *users, *features)

    def _write_settings(self, number: int) -> None:
        port, controller_port = self.ports[number], self._controller_ports[number]
        replicas = str(min(3, len(self.ports)))
        own = [f"PLAINTEXT://{HOST}:{port}"]
        further = [f"{name}://{HOST}:{at}" for name, at in self.listener_ports[number].items()]
        seen = [f"PLAINTEXT://{HOST}:{self._advertised.get(number, port)}", *further]
        own += further
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._listeners}
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "listeners": ",".join((*own, f"CONTROLLER://{HOST}:{controller_port}")),
            "advertised.listeners": ",".join(seen),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{at}@{HOST}:{on}" for at, on in self._controller_ports.items()),
            "log.dirs": str(self._folder / f"{number}.data"),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "auto.leader.rebalance.enable": "false",
            **self._settings,
        }
        lines = (f"{name}={value}\n" for name, value in settings.items())
        self._file(number, "settings").write_text("".join(lines))


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago."""
    listeners = []
    for _ in range(count):
        listener = socket.socket()
        listener.bind((HOST, 0))
        listeners.append(listener)
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
