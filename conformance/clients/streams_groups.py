"""Applications of Kafka Streams that leave their tasks to the broker (KIP-1071).

    python -m conformance.clients.streams_groups

The program ``streams/WordCount.java`` is started, killed and stopped here. The table is written to docs/clients.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from conformance.clients.node import Node, running
from conformance.clients.programs import BUILT, HERE, JAVA, class_path, run
from conformance.clients.step_table import StepTable

STEPS: Final = (
    "words are counted",
    "a second instance takes its share",
    "one is killed, and the other goes on",
    "standbys",
    "exactly once",
    "stopped instances leave",
    "a source topic is missing",
)
TABLE: Final = StepTable("client-streams-groups", "step", STEPS, HERE / "streams_groups.jsonl")
FOLDER: Final = HERE / "streams"
LINE: Final = "the quick brown fox jumps over the lazy dog"
PARTITIONS: Final = 3
SETTINGS: Final = {
    "group.streams.min.session.timeout.ms": 1_000,
    "group.streams.session.timeout.ms": 6_000,
    "group.streams.min.heartbeat.interval.ms": 500,
    "group.streams.heartbeat.interval.ms": 500,
    "group.streams.initial.rebalance.delay.ms": 500,
    "group.streams.assignment.interval.ms": 0,
}
SECONDS: Final = 90.0
"""Longest wait for each state: instances share a machine."""

Tasks = dict[str, set[tuple[str, int]]]
"""Active tasks by member."""


class StreamsApplication:
    """The instances of one application, each a JVM with one thread."""

    def __init__(self, node: Node, name: str, folder: Path, **settings: str) -> None:
        self.node, self.name, self._folder = node, name, folder
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.instances: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        """Start another instance."""
        number = len(self.instances)
        settings = {
            "application.id": self.name,
            "bootstrap.servers": self.node.bootstrap_servers,
            "group.protocol": "streams",
            "state.dir": str(self._folder / f"{self.name}-{number}"),
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "200",
            **self._settings,
        }
        with self.log(number).open("wb") as log:
            command = [*JAVA, "-cp", _classes(), "WordCount", *(f"{name}={value}" for name, value in settings.items())]
            self.instances.append(subprocess.Popen(command, stdout=log, stderr=log))
        return self.instances[-1]

    def log(self, number: int) -> Path:
        """The output of an instance."""
        return self._folder / f"{self.name}-{number}.log"

    def described(self) -> dict[str, Any]:
        """The group, as StreamsGroupDescribe has it."""
        body = {"groupIds": [self.name], "includeAuthorizedOperations": False}
        group: dict[str, Any] = _post(self.node, "/v1/streams-group-describe", body)["groups"][0]
        return group

    def tasks(self, kind: str = "activeTasks") -> Tasks:
        """The tasks of each member."""
        return {
            member["memberId"]: {
                (each["subtopologyId"], partition)
                for each in member["assignment"][kind]
                for partition in each["partitions"]
            }
            for member in self.described()["members"]
        }

    def end(self) -> None:
        """Kill what still runs."""
        for each in self.instances:
            each.kill()
            each.wait(10)


def _classes() -> str:
    """The class path of the program, which is compiled where that was not done yet."""
    jars = class_path(FOLDER)
    out = BUILT / "streams-classes"
    if not (out / "WordCount.class").exists():
        run("javac", "-cp", jars, "-d", str(out), str(FOLDER / "WordCount.java"))
    return f"{out}:{jars}"


def _post(node: Node, path: str, body: dict[str, Any]) -> Any:
    request = Request(node.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=10) as answer:
        return json.load(answer)


def _write(node: Node, lines: int) -> None:
    for number in range(lines):
        _post(node, "/control/topics/produce", {"topic": "lines", "partition": number % PARTITIONS, "records": [LINE]})


def _counts(node: Node) -> dict[str, int]:
    """The last count of each word."""
    with urlopen(f"{node.url}/control/topics/records?{urlencode({'topic': 'counts'})}", timeout=10) as answer:
        return {each["key"]: int(each["value"]) for each in json.load(answer)["records"]}


def _wait(said: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so. Raises ``TimeoutError`` with the words for it."""
    end = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"{said}: not within {SECONDS:g} s")
        time.sleep(0.2)


def _have_all(tasks: Tasks, count: int) -> bool:
    """Whether so many members have all six tasks, each task once."""
    every = [task for some in tasks.values() for task in some]
    return len(every) == len(set(every)) == 2 * PARTITIONS and sum(map(bool, tasks.values())) == count


def _words_are_counted(application: StreamsApplication) -> None:
    _write(application.node, 6)
    application.start()
    _wait("twelve times the", lambda: _counts(application.node).get("the") == 12)
    assert _have_all(application.tasks(), 1)


def _second(application: StreamsApplication) -> None:
    application.start()
    _wait("two members with all tasks", lambda: _have_all(application.tasks(), 2))
    assert {len(some) for some in application.tasks().values()} == {PARTITIONS}


def _killed(application: StreamsApplication) -> None:
    application.instances[0].kill()
    _write(application.node, 6)
    _wait("one member with all tasks", lambda: _have_all(application.tasks(), 1))
    _wait("24 times the", lambda: _counts(application.node).get("the") == 24)


def _stopped(application: StreamsApplication) -> None:
    application.instances[1].terminate()
    application.instances[1].wait(60)
    _wait("an empty group", lambda: application.described()["groupState"] == "Empty")


def _standbys(application: StreamsApplication) -> None:
    for _ in range(2):
        application.start()
    _wait("two members with all tasks", lambda: _have_all(application.tasks(), 2))

    def are_elsewhere() -> bool:
        active, standby = application.tasks(), application.tasks("standbyTasks")
        kept = {task for some in standby.values() for task in some}
        return len(kept) == PARTITIONS and all(not active[member] & some for member, some in standby.items())

    _wait("a standby of each task with state", are_elsewhere)


def _missing(application: StreamsApplication) -> None:
    application.start()
    log = application.log(0)
    _wait(
        "the topic's name in the client's log", lambda: "nowhere" in log.read_text().partition("state REBALANCING")[2]
    )
    described = application.described()
    assert described["groupState"] in ("NotReady", "Empty"), described["groupState"]
    assert not application.tasks() or not any(application.tasks().values())


@contextmanager
def _application(node: Node, name: str, folder: Path, **settings: str) -> Iterator[StreamsApplication]:
    application = StreamsApplication(node, name, folder, **settings)
    try:
        yield application
    finally:
        application.end()


def _problem(step: Callable[[StreamsApplication], None], application: StreamsApplication) -> str:
    try:
        step(application)
    except (AssertionError, TimeoutError, OSError, KeyError, subprocess.SubprocessError) as problem:
        return (
            str(problem) or f"{type(problem).__name__}: {application.tasks()}, {application.described()['groupState']}"
        )
    return ""


def main() -> int:
    """Play the steps, print each, and write the table."""
    options = [part for setting, value in SETTINGS.items() for part in ("-c", f"{setting}={value}")]
    topics = ["--topic", f"lines:{PARTITIONS}", "--topic", "counts:1"]
    problems: dict[str, str] = {}

    def play(name: str, step: Callable[[StreamsApplication], None], application: StreamsApplication) -> None:
        problems[name] = _problem(step, application)
        print(f"{name}: {problems[name] or 'passed'}", flush=True)

    defects = []
    with tempfile.TemporaryDirectory(prefix="streams-") as made:
        folder = Path(made)
        with running("--control", *topics, *options) as node:
            with _application(node, "words", folder) as application:
                play(STEPS[0], _words_are_counted, application)
                play(STEPS[1], _second, application)
                play(STEPS[2], _killed, application)
                play(STEPS[5], _stopped, application)
            with _application(node, "nowhere-words", folder, source="nowhere") as application:
                play(STEPS[6], _missing, application)
            defects += node.defects()
        with running("--control", *topics, *options, "-c", "group.streams.num.standby.replicas=1") as node:
            with _application(node, "standby-words", folder) as application:
                play(STEPS[3], _standbys, application)
            defects += node.defects()
        with running("--control", *topics, *options) as node:
            with _application(node, "once", folder, processing_guarantee="exactly_once_v2") as application:
                play(STEPS[4], _words_are_counted, application)
            defects += node.defects()
    for line in defects:
        print(f"the node logged: {line}")
    TABLE.keep("Kafka Streams", "4.4.0", {name: problems[name] for name in STEPS})
    TABLE.write()
    return 1 if any(problems.values()) or defects else 0


if __name__ == "__main__":
    sys.exit(main())
