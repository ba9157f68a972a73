"""Lives of applications, each in steps. A step returns what it has seen, which is compared between brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from conformance.clients.programs import HERE, JAVA, class_path
from conformance.clients.streams_groups.application import STANDBY, StreamsApplication, application
from conformance.clients.streams_groups.stage import PARTITIONS, StreamsStage, until

Step: TypeAlias = Callable[[], Awaitable[Any]]
Play: TypeAlias = Callable[[str, Step], Awaitable[None]]
"""Plays a step by its name."""
Life: TypeAlias = Callable[[StreamsStage, Play], Awaitable[None]]
TOOL: Final = "org.apache.kafka.tools.streams.StreamsGroupCommand"
TOOL_SECONDS: Final = 60.0
OTHER_TOPOLOGY: Final = {"repartition": "other"}
MISSING_SOURCE_TOPICS: Final = 1
"""Code of a status. Kafka: StreamsGroupHeartbeatResponse.Status.MISSING_SOURCE_TOPICS."""
AWAY: Final = -2
"""Epoch of a static member that is away."""


async def words(stage: StreamsStage, play: Play) -> None:
    """One instance, two, three; one is killed, the others are deployed anew; then another topology."""
    async with application(stage, "words") as app:
        await app.make_topics()

        async def one() -> Any:
            await stage.write(app.lines, 6)
            await app.start(0)
            await app.until_counted("the", 12)
            await app.until_shared(1)
            return await app.seen(), await app.last_counts(), await stage.topics("words-")

        async def two() -> Any:
            await app.start(1)
            await app.until_shared(2)
            return await app.seen()

        async def three() -> Any:
            await app.start(2)
            await app.until_shared(3)
            return await app.seen()

        async def killed() -> Any:
            await app.kill(0)
            await stage.write(app.lines, 6)
            await app.until_shared(2)
            await app.until_counted("the", 24)
            return await app.seen(), await app.last_counts()

        async def bounce() -> Any:
            for number in (1, 2):
                await app.stop(number)
                await stage.write(app.lines, 3)
                await app.start(number)
                await app.until_shared(2)
            await app.until_counted("the", 36)
            return await app.seen(), await app.last_counts()

        await play("words are counted", one)
        await play("a second instance takes its share", two)
        await play("a third instance takes its share", three)
        await play("one is killed, and the others go on", killed)
        await play("rolling bounce", bounce)
        await _another_topology(app, play)


async def _another_topology(app: StreamsApplication, play: Play) -> None:
    """The end of the life of ``words``: stopped, and started with another topology before and after a deletion."""
    stage = app.stage

    async def stopped() -> Any:
        await app.stop(1, 2)
        await app.until_state("streams Empty")
        return await app.seen(), await stage.offsets("words", app.lines)

    async def refused() -> Any:
        await app.start(3, **OTHER_TOPOLOGY)
        await app.until_failed(3)
        return await app.seen(), await stage.topics("words-other")

    async def changed() -> Any:
        assert await stage.delete_group("words") == 0
        await app.start(4, **OTHER_TOPOLOGY)
        await app.until_shared(1)
        # The offsets went with the group, and the store is restored from its changelog: all lines count twice.
        await app.until_counted("the", 72)
        seen = await app.seen(), await stage.topics("words-")
        await app.stop(4)
        return seen

    await play("stopped instances leave", stopped)
    await play("another topology is refused", refused)
    await play("another topology after the group was deleted", changed)


async def standbys(stage: StreamsStage, play: Play) -> None:
    """A setting of the group brings standbys, and one of them is promoted after a kill."""
    async with application(stage, "standby") as app:
        await app.make_topics()

        async def added() -> Any:
            await stage.write(app.lines, 6)
            for number in range(3):
                await app.start(number)
            await app.until_shared(3)
            await stage.set_group("standby", num_standby_replicas="1")
            await until("a standby of each task with state", lambda: _have_standbys(app, 3))
            await app.until_shared(3)
            return await app.seen()

        async def promoted() -> Any:
            before = await app.tasks()
            number = next(number for number in range(3) if any(each == "1" for each, _ in before[f"standby-{number}"]))
            lost = {task for task in before[f"standby-{number}"] if task[0] == "1"}
            heirs = {task: name for name, some in (await app.tasks(STANDBY)).items() for task in some & lost}
            await app.kill(number)
            await app.until_shared(2)
            after = await app.tasks()
            missed = {task: name for task, name in heirs.items() if task not in after[name]}
            assert not missed, f"not promoted: {missed}"
            await until("standbys on two instances", lambda: _have_standbys(app, 2))
            await stage.write(app.lines, 6)
            await app.until_counted("the", 24)
            seen = await app.seen(), await app.last_counts()
            await app.stop(*({0, 1, 2} - {number}))
            return seen

        await play("standbys by a setting of the group", added)
        await play("a standby is promoted after a kill", promoted)


async def _have_standbys(app: StreamsApplication, instances: int) -> bool:
    """Whether each task with state has a standby on another instance."""
    active, standby = await app.tasks(), await app.tasks(STANDBY)
    kept = [task for some in standby.values() for task in some]
    is_whole = sorted(kept) == [("1", partition) for partition in range(PARTITIONS)]
    return is_whole and len(active) == instances and not any(active[each] & standby[each] for each in active)


async def threads(stage: StreamsStage, play: Play) -> None:
    """Two threads in each process, with endpoints and standbys."""
    settings = {"num_stream_threads": "2", "application_server": "127.0.0.1:910{}"}
    async with application(stage, "threads", **settings) as app:
        await app.make_topics()

        async def two_processes() -> Any:
            await stage.set_group("threads", num_standby_replicas="1")
            await stage.write(app.lines, 6)
            for number in (0, 1):
                await app.start(number)
            await app.until_shared(2)
            await until("standbys in the other process", lambda: _have_standbys(app, 2))
            await app.until_counted("the", 12)
            return await app.seen(), await app.last_counts()

        async def killed() -> Any:
            await app.kill(0)
            await app.until_shared(1)
            await stage.write(app.lines, 6)
            await app.until_counted("the", 24)
            seen = await app.seen(), await app.last_counts()
            await app.stop(1)
            return seen

        await play("two threads in each process", two_processes)
        await play("a process with two threads is killed", killed)


async def static_members(stage: StreamsStage, play: Play) -> None:
    """An instance with an instance id restarts: nothing moves."""
    async with application(stage, "static") as app:
        await app.make_topics()

        async def restarted() -> Any:
            await stage.write(app.lines, 6)
            for number in (0, 1):
                await app.start(number, group_instance_id=f"instance-{number}")
            await app.until_shared(2)
            before, tasks = await stage.described("static"), await app.tasks()
            await app.stop(0)
            away = await stage.described("static")
            epochs = sorted(each["memberEpoch"] for each in away["members"])
            assert epochs == [AWAY, before["groupEpoch"]], epochs
            await app.start(0, group_instance_id="instance-0")
            await app.until_shared(2)
            after = await stage.described("static")
            assert after["groupEpoch"] == before["groupEpoch"], "the epoch rose"
            assert await app.tasks() == tasks, "tasks moved"
            await stage.write(app.lines, 6)
            await app.until_counted("the", 24)
            return away["groupState"], await app.seen(), await app.last_counts()

        async def expired() -> Any:
            await app.stop(0, 1)
            await app.until_state("streams Empty")
            return await app.seen()

        await play("a static member restarts, and no task moves", restarted)
        await play("static members that stay away expire", expired)


async def exactly_once(stage: StreamsStage, play: Play) -> None:
    """EOS v2 with a kill in the middle of the lines: the counts of each word go up by one."""
    settings = {"processing_guarantee": "exactly_once_v2", "transaction_timeout_ms": "3000"}
    async with application(stage, "once", **settings) as app:
        await app.make_topics()

        async def killed() -> Any:
            await stage.write(app.lines, 6)
            for number in (0, 1):
                await app.start(number)
            await app.until_shared(2)
            await app.until_counted("the", 12)
            await stage.write(app.lines, 300)
            await app.kill(0)
            await app.until_shared(1)
            await app.until_counted("the", 612)
            counts = await stage.counts("once.counts")
            wrong = [word for word, found in counts.items() if found != list(range(1, len(found) + 1))]
            assert not wrong, f"not each count once: {wrong}"
            seen = await app.seen(), await app.last_counts()
            await app.stop(1)
            return seen

        await play("exactly once, with a kill", killed)


async def missing_topics(stage: StreamsStage, play: Play) -> None:
    """A source topic that is not there, and one that comes in time."""
    async with (
        application(stage, "nowhere") as nowhere,
        application(stage, "reached", application_server="127.0.0.1:9100") as reached,
        application(stage, "later") as later,
    ):

        async def missing() -> Any:
            await nowhere.start(0)
            await nowhere.until_failed(0)
            assert "MissingSourceTopicException" in nowhere.logged(0)
            return (await nowhere.seen())["topology"]

        async def missing_with_endpoint() -> Any:
            await reached.start(0)
            await reached.until_failed(0)
            return "MissingSourceTopicException" in reached.logged(0)

        async def appears() -> Any:
            # Twice the interval of heartbeats is how long an instance waits for a topic.
            await stage.set_group("later", heartbeat_interval_ms="5000")
            await later.start(0)
            await until("a status without the topic", lambda: stage.had_status("later", MISSING_SOURCE_TOPICS))
            not_ready = await later.seen()
            await later.make_topics()
            await stage.write(later.lines, 6)
            await later.until_counted("the", 12)
            seen = not_ready, await later.seen(), await stage.topics("later-")
            await later.stop(0)
            return seen

        await play("a source topic is missing", missing)
        await play("a source topic is missing, and there is an endpoint", missing_with_endpoint)
        await play("a source topic appears", appears)


async def shutdown(stage: StreamsStage, play: Play) -> None:
    """One instance asks the whole application to shut down."""
    async with application(stage, "poison", poison="poison") as app:
        await app.make_topics()

        async def shut_down() -> Any:
            await stage.write(app.lines, 6)
            for number in (0, 1):
                await app.start(number)
            await app.until_shared(2)
            await app.until_counted("the", 12)
            await stage.write(app.lines, 1, "poison")
            for number in (0, 1):
                await app.until_failed(number)
            await app.until_state("streams Empty")
            return await app.last_counts()

        await play("an application shuts itself down", shut_down)


async def reset(stage: StreamsStage, play: Play) -> None:
    """Kafka's tool sets the offsets of a stopped application back and deletes its internal topics."""
    async with application(stage, "again") as app:
        await app.make_topics()

        async def set_back() -> Any:
            await stage.write(app.lines, 6)
            await app.start(0)
            await app.until_counted("the", 12)
            await app.stop(0)
            await app.until_state("streams Empty")
            arguments = ("--reset-offsets", "--group", "again", "--input-topic", app.lines, "--to-earliest")
            await _run_tool(stage, *arguments, "--delete-all-internal-topics", "--execute")
            left, offsets = await stage.topics("again-"), await stage.offsets("again", app.lines)
            await app.start(1)
            await app.until_shared(1)

            async def are_counted_again() -> bool:
                return (await stage.counts("again.counts")).get("the") == [*range(1, 13)] * 2

            await until("all counts once more from 1", are_counted_again)
            seen = left, offsets, await app.seen(), await stage.topics("again-")
            await app.stop(1)
            return seen

        await play("application reset", set_back)


async def broker_restart(stage: StreamsStage, play: Play) -> None:
    """The broker restarts under a running application: epochs and tasks stay, and no line is lost."""
    async with application(stage, "restart") as app:
        await app.make_topics()

        async def restarted() -> Any:
            await stage.write(app.lines, 6)
            for number in (0, 1):
                await app.start(number)
            await app.until_shared(2)
            await app.until_counted("the", 12)
            before, tasks = await stage.described("restart"), await app.tasks()
            await stage.restart()
            await stage.write(app.lines, 6)
            await app.until_counted("the", 24)
            await app.until_shared(2)
            after = await stage.described("restart")
            assert after["groupEpoch"] == before["groupEpoch"], "the epoch rose"
            assert await app.tasks() == tasks, "tasks moved"
            seen = await app.seen(), await app.last_counts(), await stage.topics("restart-")
            await app.stop(0, 1)
            return seen

        await play("the broker restarts", restarted)


async def turned_off(stage: StreamsStage, play: Play) -> None:
    """streams.version 0: an application ends in ERROR."""
    async with application(stage, "off") as app:
        await app.make_topics()

        async def refused() -> Any:
            await stage.set_streams_version(0)
            await app.start(0)
            await app.until_failed(0)
            code = (await stage.described("off"))["errorCode"]
            await stage.set_streams_version(1)
            return code, "UnsupportedVersionException" in app.logged(0), await stage.listed("off")

        await play("streams.version is off", refused)


async def conversions(stage: StreamsStage, play: Play) -> None:
    """From the classic protocol to streams and back, stopped between, with offsets and counts kept."""
    classic = {"group_protocol": "classic", "session_timeout_ms": "2000", "heartbeat_interval_ms": "500"}
    async with application(stage, "moved") as app:
        await app.make_topics()

        async def begins() -> Any:
            await stage.write(app.lines, 6)
            await app.start(0, **classic)
            await app.until_counted("the", 12)
            await app.until_state("classic Stable")
            return await stage.topics("moved-"), await app.last_counts()

        async def streams_beside_classic() -> Any:
            await app.start(1)
            await app.until_failed(1)
            return await stage.listed("moved")

        async def to_streams() -> Any:
            await app.stop(0)
            await app.until_state("classic Empty")
            before = await stage.offsets("moved", app.lines)
            await app.start(2)
            await app.until_shared(1)
            kept = await stage.offsets("moved", app.lines)
            await stage.write(app.lines, 6)
            await app.until_counted("the", 24)
            return before, kept, await app.seen(), await app.last_counts(), await stage.topics("moved-")

        async def classic_beside_streams() -> Any:
            await app.start(3, **classic)
            await app.until_failed(3)
            return await stage.listed("moved")

        async def to_classic() -> Any:
            await app.stop(2)
            await app.until_state("streams Empty")
            before = await stage.offsets("moved", app.lines)
            await app.start(4, **classic)
            await app.until_state("classic Stable")
            kept = await stage.offsets("moved", app.lines)
            await stage.write(app.lines, 6)
            await app.until_counted("the", 36)
            await app.stop(4)
            return before, kept, await app.last_counts(), await stage.topics("moved-")

        await play("an application of the classic protocol", begins)
        await play("streams beside live classic members is refused", streams_beside_classic)
        await play("from classic to streams, offsets kept", to_streams)
        await play("classic beside live streams members is refused", classic_beside_streams)
        await play("from streams to classic, offsets kept", to_classic)


async def _run_tool(stage: StreamsStage, *arguments: str) -> None:
    jars = await asyncio.to_thread(class_path, HERE / "tools")
    command = (*JAVA, "-cp", jars, TOOL, "--bootstrap-server", stage.address, *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(TOOL_SECONDS):
            said, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode == 0, said.decode()[-500:]


LIVES: Final[dict[str, Life]] = {
    "words": words,
    "standby": standbys,
    "threads": threads,
    "static": static_members,
    "once": exactly_once,
    "missing": missing_topics,
    "poison": shutdown,
    "again": reset,
    "moved": conversions,
    "restart": broker_restart,
    "off": turned_off,
}
"""The lives in their order. The last one takes streams groups away for a while."""
STEPS: Final = (
    "words are counted",
    "a second instance takes its share",
    "a third instance takes its share",
    "one is killed, and the others go on",
    "rolling bounce",
    "stopped instances leave",
    "another topology is refused",
    "another topology after the group was deleted",
    "standbys by a setting of the group",
    "a standby is promoted after a kill",
    "two threads in each process",
    "a process with two threads is killed",
    "a static member restarts, and no task moves",
    "static members that stay away expire",
    "exactly once, with a kill",
    "a source topic is missing",
    "a source topic is missing, and there is an endpoint",
    "a source topic appears",
    "an application shuts itself down",
    "application reset",
    "an application of the classic protocol",
    "streams beside live classic members is refused",
    "from classic to streams, offsets kept",
    "classic beside live streams members is refused",
    "from streams to classic, offsets kept",
    "the broker restarts",
    "streams.version is off",
)
