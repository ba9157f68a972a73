"""`rejoin consume`: consumers as real processes, signals, and what their journals say afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rejoin.__main__ import main
from rejoin.client.commands.consumer_processes import settings_from
from rejoin.client.commands.setting_options import WrongOption
from rejoin.client.workload.accounting import Account, account
from rejoin.coordinator.core.inputs import SessionLost
from rejoin.coordinator.core.views import ConsumerGroupView, GroupView
from rejoin.coordinator.service.app import App
from rejoin.journal.events.client import EVENT_TYPES
from rejoin.journal.reader import read_journal
from rejoin.journal.schema import JournalSchema
from tests.client.conftest import Serve

Start = Callable[..., Awaitable[asyncio.subprocess.Process]]
QUICK = ("--heartbeat-interval-ms", "100", "--log-level", "error")
EXPIRES_SOON = ("--session-timeout-ms", "1000")
"""For members that are to be lost: however busy the machine, others stay for Kafka's own 45 s."""
PATIENCE = 120.0

TRANSFORM = ("--group", "g", "--topic", "t", "--bootstrap", "127.0.0.1:9092", "--transform-to")


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts ``rejoin consume`` with some arguments; kills whatever is left at the end."""
    started: list[asyncio.subprocess.Process] = []

    async def run(*arguments: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "rejoin", "consume", *arguments, stdout=asyncio.subprocess.PIPE
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def until(app: App, reached: Callable[[GroupView], bool]) -> GroupView:
    """Wait until the group ``g`` is so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            runtime = app.runtime
            group = runtime.node.describe_group("g")
            if group is not None and reached(group):
                return group
            await asyncio.sleep(0.02)


async def written(journal: Path, reached: Callable[[list[Account]], bool]) -> None:
    """Wait until the consumers' journals say that records were processed so."""
    async with asyncio.timeout(PATIENCE):
        while not reached(accounts_of(journal)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def accounts_of(journal: Path) -> list[Account]:
    """What became of the records of each partition, by the journals of its consumers."""
    rows = read_journal(journal, JournalSchema(EVENT_TYPES), source="client")
    return account(row.event for row in rows)


def members(count: int) -> Callable[[GroupView], bool]:
    return lambda group: group.state == "Stable" and len(group.members) == count


async def test_consumers_in_several_processes_leave_on_sigterm(serve: Serve, start: Start, tmp_path: Path) -> None:
    app = await serve({"orders": 6}, group_min_session_timeout_ms=500)
    process = await start(
        "--group", "g", "--topic", "orders", "--consumers", "2", "--processes", "2", "--bootstrap", app.url,
        "--assignor", "cooperative-sticky", "--journal", str(tmp_path), "--commit", "sync", *QUICK,
    )  # fmt: skip
    group = await until(app, members(4))
    assert sorted(member.client_id for member in group.members) == ["g-1", "g-2", "g-3", "g-4"]
    await written(tmp_path, lambda found: len(found) == 6 and all(each.committed for each in found))
    process.send_signal(signal.SIGTERM)
    await until(app, lambda group: group.state == "Empty")
    assert await process.wait() == 0
    said = [json.loads(line) for line in (await process.communicate())[0].splitlines()]
    assert [each["event"] for each in said] == ["process_started"] * 2 + ["process_ended"] * 2
    accounts = accounts_of(tmp_path)
    assert sum(each.processed for each in accounts) > 0
    assert sum(each.lost for each in accounts) == 0
    assert all(each.committed is not None for each in accounts)


async def test_a_process_leaves_a_group_of_the_consumer_protocol_and_offsets_stay(
    serve: Serve, start: Start, tmp_path: Path
) -> None:
    app = await serve(
        {"orders": 6},
        group_consumer_min_heartbeat_interval_ms=100,
        group_consumer_heartbeat_interval_ms=100,
        group_consumer_session_timeout_ms=60_000,
    )
    process = await start(
        "--group", "g", "--topic", "orders", "--consumers", "2", "--group-protocol", "consumer", "--bootstrap", app.url,
        "--journal", str(tmp_path), "--commit", "sync", "--log-level", "error",
    )  # fmt: skip
    group = await until(app, members(2))
    assert isinstance(group, ConsumerGroupView)
    assert (group.protocol, sorted(member.client_id for member in group.members)) == ("uniform", ["g-1", "g-2"])
    async with asyncio.timeout(PATIENCE):
        while len(app.runtime.node.describe_offsets("g", 0)) < 6:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    await until(app, lambda group: group.state == "Empty")
    assert await process.wait() == 0
    assert len(app.runtime.node.describe_offsets("g", 0)) == 6, "offsets stay behind"
    assert sum(each.lost for each in accounts_of(tmp_path)) == 0


async def test_others_take_over_from_a_killed_process_of_the_consumer_protocol(
    serve: Serve, start: Start, tmp_path: Path
) -> None:
    app = await serve(
        {"orders": 6},
        rate=500.0,
        group_consumer_min_heartbeat_interval_ms=100,
        group_consumer_heartbeat_interval_ms=100,
        group_consumer_assignment_interval_ms=0,
    )
    process = await start(
        "--group", "g", "--topic", "orders", "--processes", "2", "--group-protocol", "consumer",
        "--bootstrap", app.url, "--journal", str(tmp_path), "--log-level", "error",
        "-c", "auto.commit.interval.ms=3600000", "--processing-time", "500us",
    )  # fmt: skip
    assert process.stdout is not None
    started = [json.loads(await process.stdout.readline()) for _ in range(2)]
    both = await until(app, members(2))
    await written(tmp_path, lambda found: len(found) == 6 and all(each.processed for each in found))
    os.kill(started[0]["pid"], signal.SIGKILL)
    # Members of such a group have one session timeout. Only this session ends; the other member keeps the 45 s.
    (killed,) = (member for member in both.members if member.client_id == "g-1")
    app.runtime.hand_in(SessionLost("g", killed.member_id))
    alone = await until(app, lambda group: members(1)(group) and group.members[0].assignment == {"orders": [*range(6)]})
    assert alone.generation > both.generation
    # What the killed one had read since it joined was never committed.
    await written(tmp_path, lambda found: sum(each.duplicated for each in found) > 0)
    process.send_signal(signal.SIGTERM)
    await until(app, lambda group: group.state == "Empty")
    await process.wait()
    ended = [json.loads(line) for line in (await process.communicate())[0].splitlines()]
    assert {each.get("signal") for each in ended} == {"SIGKILL", None}
    assert sum(each.lost for each in accounts_of(tmp_path)) == 0


async def test_a_killed_process_is_replaced_and_nothing_is_lost(serve: Serve, start: Start, tmp_path: Path) -> None:
    app = await serve({"orders": 4}, rate=500.0, group_min_session_timeout_ms=500)
    arguments = ("--group", "g", "--topic", "orders", "--bootstrap", app.url, "--journal", str(tmp_path), *QUICK)
    never = ("-c", "auto.commit.interval.ms=3600000")
    doomed = await start(*arguments, *EXPIRES_SOON, *never, "--client-id", "doomed", "--processing-time", "500us")
    await until(app, members(1))
    await written(tmp_path, lambda found: sum(each.processed for each in found) > 0)
    doomed.send_signal(signal.SIGKILL)
    heir = await start(*arguments, "--client-id", "heir")
    group = await until(app, lambda group: members(1)(group) and group.members[0].client_id.startswith("heir"))
    assert group.members[0].client_id == "heir-1"
    # What was processed after the last commit.
    await written(tmp_path, lambda found: sum(each.duplicated for each in found) > 0)
    heir.send_signal(signal.SIGTERM)
    assert await heir.wait() == 0
    assert sum(each.lost for each in accounts_of(tmp_path)) == 0


async def test_a_stopped_process_loses_its_membership_and_rejoins(serve: Serve, start: Start) -> None:
    app = await serve(group_min_session_timeout_ms=500)
    arguments = ("--group", "g", "--topic", "orders", "--bootstrap", app.url, *QUICK)
    first = await start(*arguments, *EXPIRES_SOON, "--client-id", "first")
    await start(*arguments, "--client-id", "second")
    await until(app, members(2))
    first.send_signal(signal.SIGSTOP)
    await until(app, members(1))
    first.send_signal(signal.SIGCONT)
    group = await until(app, members(2))
    assert group.generation >= 3


async def test_children_leave_when_their_parent_is_killed(serve: Serve, start: Start) -> None:
    app = await serve(group_min_session_timeout_ms=500)
    parent = await start(
        "--group",
        "g",
        "--topic",
        "orders",
        "--processes",
        "2",
        "--bootstrap",
        app.url,
        *QUICK,
        *EXPIRES_SOON,
        "--static",
    )
    group = await until(app, members(2))
    assert sorted(member.group_instance_id or "" for member in group.members) == ["g-1", "g-2"]
    parent.send_signal(signal.SIGKILL)
    await until(app, lambda group: group.state == "Empty")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--group", "g"), "expected --topic or --pattern"),
        (("--group", "g", "--topic", "t", "--consumers", "0"), "at least 1"),
        (("--group", "g", "--topic", "t", "--processing-time", "long"), "expected a time"),
        (("--group", "g", "--topic", "t", "-c", "sesion.timeout.ms=1"), "is it session.timeout.ms?"),
        (("--group", "g", "--topic", "t", "--heartbeat-interval-ms", "99999"), "must be lower"),
        (("--group", "g", "--topic", "t", "--log-level", "loud"), "expected one of"),
        (("--group", "g", "--topic", "t", "--exactly-once"), "needs --transform-to TOPIC"),
        (("--group", "g", "--topic", "t", "--transform-to", "u"), "give the listener of Kafka's protocol"),
        ((*TRANSFORM, "t"), "so the run would never end; write to another"),
        (("--group", "g", "--pattern", "[a-z]", *TRANSFORM[4:], "u"), "so the run would never end; write to another"),
        ((*TRANSFORM, "u", "--exactly-once", "--commit", "sync"), "--exactly-once commits offsets in the transaction"),
        ((*TRANSFORM, "u", "-c", "transactional.id=x"), "is made of --group"),
        ((*TRANSFORM, "u", "-c", "linger.ms=soon"), "linger_ms: expected an integer"),
        ((*TRANSFORM, "u", "-c", "lingr.ms=5"), "is it linger.ms?"),
        ((*TRANSFORM, "u", "--exactly-once", "-c", "acks=1"), "enable.idempotence"),
        ((*TRANSFORM, "u", "--commit-interval", "5s"), "needs --exactly-once"),
        ((*TRANSFORM, "u", "--exactly-once", "--commit-interval", "soon"), "expected a length of time"),
        ((*TRANSFORM, "u", "--exactly-once", "--commit-interval", "10s"), "transaction.timeout.ms is 10000"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["consume", *arguments])
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_settings_by_kafkas_names_win_over_options() -> None:
    given: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 10_000}
    assert settings_from(["session.timeout.ms=20000", "enable.auto.commit=false"], given) == {
        "group_id": "g",
        "session_timeout_ms": 20_000,
        "enable_auto_commit": False,
    }
    with pytest.raises(WrongOption, match="expected NAME=VALUE"):
        settings_from(["session.timeout.ms"], given)
