"""The instances of an application: processes that run ``streams/WordCount.java``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from conformance.clients.programs import BUILT, HERE, JAVA, class_path, run
from conformance.clients.streams_groups.stage import PARTITIONS, StreamsStage, until
from rejoin.conform.player.messages import Json

FOLDER: Final = HERE / "streams"
STOP_SECONDS: Final = 60.0
ACTIVE, STANDBY = "activeTasks", "standbyTasks"
THREAD: Final = "-StreamThread"
TASKS: Final = 2 * PARTITIONS
"""Tasks of the application: a subtopology before the repartition topic, and one behind it."""

Tasks = dict[str, set[tuple[str, int]]]
"""Tasks by instance."""


class StreamsApplication:
    """An application by its name, which is that of its group; topics begin with it."""

    def __init__(self, stage: StreamsStage, name: str, **settings: str) -> None:
        self.stage, self.name, self.settings = stage, name, settings
        self._running: dict[int, asyncio.subprocess.Process] = {}

    @property
    def lines(self) -> str:
        """The topic of lines."""
        return f"{self.name}.lines"

    async def make_topics(self) -> None:
        """Make the topics of lines and of counts."""
        await self.stage.make_topics(**{self.lines: PARTITIONS, f"{self.name}.counts": 1})

    async def start(self, number: int, **more: str) -> None:
        """Start an instance; under a number that was used before it finds its state and its log again.

        In settings, underscores in names stand for dots and ``{}`` in values for the number.
        """
        settings = {
            "application.id": self.name,
            "client.id": f"{self.name}-{number}",
            "bootstrap.servers": self.stage.address,
            "group.protocol": "streams",
            "state.dir": str(self.stage.folder / f"{self.name}-{number}"),
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "200",
            "statestore.cache.max.bytes": "0",
            "source": self.lines,
            "sink": f"{self.name}.counts",
            **{name.replace("_", "."): value.format(number) for name, value in (self.settings | more).items()},
        }
        command = [*JAVA, "-cp", await asyncio.to_thread(_classes), "WordCount"]
        command += [f"{name}={value}" for name, value in settings.items()]
        with self.log(number).open("ab") as log:
            self._running[number] = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)

    def log(self, number: int) -> Path:
        """The output of an instance."""
        return self.stage.folder / f"{self.name}-{number}.log"

    def logged(self, number: int) -> str:
        """All that an instance has logged."""
        return self.log(number).read_text(errors="replace")

    async def until_failed(self, number: int) -> None:
        """Wait until an instance has ended in the state ERROR."""
        await until(f"instance {number} in ERROR", lambda: "state ERROR" in self.logged(number))
        await self._ended(number)

    async def kill(self, number: int) -> None:
        """Kill an instance, as kill -9 does."""
        with suppress(ProcessLookupError):  # It may have ended by itself.
            self._running[number].kill()
        await self._ended(number)

    async def stop(self, *numbers: int) -> None:
        """Let instances close and end."""
        for number in numbers:
            self._running[number].terminate()
        for number in numbers:
            await self._ended(number)

    async def _ended(self, number: int) -> None:
        async with asyncio.timeout(STOP_SECONDS):
            await self._running.pop(number).wait()

    async def end(self) -> None:
        """Kill what still runs."""
        for number in list(self._running):
            await self.kill(number)

    # --- what the broker knows

    async def tasks(self, kind: str = ACTIVE) -> Tasks:
        """The tasks of each instance."""
        return tasks_of(await self.stage.described(self.name), kind)

    async def until_shared(self, instances: int) -> None:
        """Wait until the group is stable and so many instances have all tasks, each one once."""

        async def are_shared() -> bool:
            described = await self.stage.described(self.name)
            tasks = tasks_of(described)
            every = [task for some in tasks.values() for task in some]
            is_whole = len(every) == len(set(every)) == TASKS and sum(map(bool, tasks.values())) == instances
            return is_whole and len(tasks) == instances and described["groupState"] == "Stable"

        await until(f"all tasks on {instances}", are_shared)

    async def until_counted(self, word: str, count: int) -> None:
        """Wait until a word was counted so often."""

        async def is_counted() -> bool:
            return (await self.stage.counts(f"{self.name}.counts")).get(word, [0])[-1] == count

        await until(f"{count} times {word}", is_counted)

    async def until_state(self, state: str) -> None:
        """Wait until ListGroups has the group with this type and state."""

        async def is_listed() -> bool:
            return (await self.stage.listed(self.name)).lower() == state.lower()

        await until(state, is_listed)

    async def seen(self) -> Json:
        """The comparable part of the group: its state, its topology and the number of tasks of each member."""
        described = await self.stage.described(self.name)
        sizes = {
            kind: sorted(_by_subtopology(tasks) for tasks in tasks_of(described, kind).values())
            for kind in (ACTIVE, STANDBY)
        }
        return {"state": described["groupState"], "topology": described["topology"], **sizes}

    async def last_counts(self) -> dict[str, int]:
        """The last count of each word."""
        return {word: counts[-1] for word, counts in sorted((await self.stage.counts(f"{self.name}.counts")).items())}


def tasks_of(described: Json, kind: str = ACTIVE) -> Tasks:
    """The tasks of each instance of a described group, those of its threads together."""
    found: Tasks = {}
    for member in described["members"]:
        tasks = found.setdefault(member["clientId"].partition(THREAD)[0], set())
        for each in member["assignment"][kind]:
            tasks.update((each["subtopologyId"], partition) for partition in each["partitions"])
    return found


def _by_subtopology(tasks: set[tuple[str, int]]) -> str:
    subtopologies = sorted({subtopology for subtopology, _ in tasks})
    return " ".join(f"{each}:{sum(subtopology == each for subtopology, _ in tasks)}" for each in subtopologies)


@asynccontextmanager
async def application(stage: StreamsStage, name: str, **settings: str) -> AsyncIterator[StreamsApplication]:
    """An application, whose instances are ended with it."""
    found = StreamsApplication(stage, name, **settings)
    try:
        yield found
    finally:
        await found.end()


@cache
def _classes() -> str:
    """The class path of the program, which is compiled where that was not done since its last change."""
    jars = class_path(FOLDER)
    source, out = FOLDER / "WordCount.java", BUILT / "streams-classes"
    made = out / "WordCount.class"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        run("javac", "-cp", jars, "-d", str(out), str(source))
    return f"{out}:{jars}"
