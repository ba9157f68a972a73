"""What happened comes back as a transcript, and playing that gives the very same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from rejoin.commands import build
from rejoin.coordinator.testing import GroupCoordinator, OperationRefused, running
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.transcript.player import play
from tests.coordinator.control.helpers import ControlledNode
from tests.coordinator.control.samples import beat, joined, parse, stable
from tests.coordinator.service.helpers import join, subscription, sync


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", topics={"orders": 3}, socket=False) as started:
        yield started


EXPECTED = """\
# A member says nothing.

topic orders 3
app join session=45000 rebalance=300000 protocols=range:orders
----
g  created
g  app-1 may join
app  JoinGroup -> MEMBER_ID_REQUIRED app-1

app join
----
g  app-1 joined
g  app-1 leads
g  Empty -> PreparingRebalance
g  first rebalance: app-1 joined (at most 3000 ms)
app  JoinGroup waits

advance 3000
----
+3000ms
g  PreparingRebalance -> CompletingRebalance
g  generation 1: app-1, app-1 leads, range
app  JoinGroup -> app-1 in generation 1, range, leader app-1, members app-1

app sync give app=orders:0,1,2
----
g  assignment from app-1 for generation 1
app  SyncGroup -> orders:0-2
g  CompletingRebalance -> Stable
g  rebalanced in 3000 ms, 0 moved, 3 regained: app-1 orders:0-2

advance 44000
app beat
----
+44000ms
app  Heartbeat -> NONE

# app Heartbeat: fault 1: drop request
advance 45000
----
+45000ms
g  app-1 removed (no heartbeat in time)
g  app-1 no longer leads; the group has no leader
g  Stable -> PreparingRebalance
g  rebalance: app-1 sent no heartbeat in time (at most 0 ms)
g  PreparingRebalance -> Empty
g  generation 2 is empty
"""


async def test_what_happened_reads_like_a_scenario(node: ControlledNode) -> None:
    member_id = await node.stable()
    await node.advance(44_000)
    await node.beat(member_id)
    await node.control("POST", "/faults", keys="Heartbeat", when="drop_request")
    with pytest.raises(Exception, match="disconnected"):
        await node.beat(member_id)
    await node.advance(45_000)
    transcript = await node.control("GET", "/transcript?claim=A+member+says+nothing.")
    assert transcript == EXPECTED
    assert play(transcript).text == transcript


async def test_a_reader_can_play_it(node: ControlledNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    member_id = await node.stable()
    await node.advance(44_000)
    await node.beat(member_id)
    file = tmp_path / "what_happened.txt"
    file.write_text(await node.control("GET", "/transcript"))
    assert not build()(["transcript", "play", str(file)], result_action="return_value")
    assert capsys.readouterr() == (file.read_text(), "")


async def test_since_a_mark_the_rest_is_quiet_and_still_replays(node: ControlledNode) -> None:
    await node.stable()
    mark = (await node.control("GET", "/mark"))["mark"]
    await node.advance(45_000)
    transcript = await node.control("GET", f"/transcript?since={mark}")
    assert "JoinGroup ->" not in transcript
    assert "quietly app sync give app=orders:0,1,2" in transcript
    assert "g  app-1 removed (no heartbeat in time)" in transcript
    assert play(transcript).text == transcript


async def test_one_group_can_be_shown_alone(node: ControlledNode) -> None:
    await node.stable()
    await node.stable("h", client_id="other")
    transcript = await node.control("GET", "/transcript?group=h")
    assert "group h" in transcript
    assert "app-1" not in transcript
    assert play(transcript).text == transcript


async def test_settings_are_shown_too(coordinator: GroupCoordinator) -> None:
    settings = {"group.initial.rebalance.delay.ms": 0, "group.max.size": 1}
    async with running(clock="virtual", settings=settings, socket=False) as other:
        await (await joined(other))
        answer = await joined(other, client_id="late")
        assert (await answer).error_code.name == "GROUP_MAX_SIZE_REACHED"
        transcript = await other.transcript()
        assert transcript.splitlines()[2] == "set group.initial.rebalance.delay.ms=0 group.max.size=1"
        assert play(transcript).text == transcript


async def test_metadata_that_differs_beside_its_topics_still_differs(coordinator: GroupCoordinator) -> None:
    """A cooperative member joins again with other partitions in its subscription, and the group rebalances."""
    leader = await stable(coordinator)
    follower = cast(JoinGroupResponse, await _rejoin_with_second(coordinator, leader)).member_id
    changed = join("g", follower)
    changed["protocols"] = [{"name": "range", "metadata": subscription("orders")[:-4] + "AAAA"}]
    again = asyncio.ensure_future(coordinator.call(parse("JoinGroup", changed), None, "second"))
    await asyncio.sleep(0)
    assert not again.done()
    transcript = await coordinator.transcript()
    assert "second join protocols=range:orders/1" in transcript
    assert play(transcript).text == transcript
    again.cancel()


async def _rejoin_with_second(coordinator: GroupCoordinator, leader: str) -> Any:
    second = await joined(coordinator, client_id="second")
    await coordinator.call(parse("JoinGroup", join("g", leader)), None, "app")
    answer = await second
    given = sync("g", leader, 2, {leader: {"orders": [0]}, answer.member_id: {"orders": [1, 2]}})
    await coordinator.call(parse("SyncGroup", given), None, "app")
    await coordinator.call(parse("SyncGroup", sync("g", answer.member_id, 2, {})), None, "second")
    return answer


async def test_a_restored_recording_goes_on_from_the_snapshot(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    kept = await coordinator.snapshot()
    await coordinator.advance(60_000)
    await coordinator.restore(kept)
    await coordinator.call(beat(member_id), None, "app")
    transcript = await coordinator.transcript()
    assert "removed" not in transcript
    assert play(transcript).text == transcript


async def test_names_that_would_be_commands_are_changed(coordinator: GroupCoordinator) -> None:
    joining = [
        await joined(coordinator, f"of-{number}", client_id)
        for number, client_id in enumerate(("admin", "group", "log", "", "a b=c", "ünder"))
    ]
    await coordinator.advance(3_000)
    await asyncio.gather(*joining)
    transcript = await coordinator.transcript()
    assert play(transcript).text == transcript


async def test_a_lookup_that_finds_no_node_is_a_comment(node: ControlledNode) -> None:
    body = {"keyType": 0, "coordinatorKeys": ["g"]}
    await node.call("FindCoordinator", body)
    await node.control("POST", "/partitions/resign", group="g")
    await node.call("FindCoordinator", body)
    transcript = await node.control("GET", "/transcript")
    assert transcript.count("FindCoordinator") == 1
    assert "# app FindCoordinator -> g node -1 COORDINATOR_NOT_AVAILABLE" in transcript
    assert play(transcript).text == transcript


async def test_what_is_not_expressible_is_a_comment(coordinator: GroupCoordinator) -> None:
    await coordinator.call(parse("JoinGroup", join("two words")), None, "app")
    assert "# not expressible: JoinGroup: the group id 'two words' cannot be a word" in await coordinator.transcript()


async def test_a_mark_that_is_not_known_is_refused(node: ControlledNode) -> None:
    status, detail = await node.refused("GET", "/transcript?since=99")
    assert (status, detail.startswith("since: expected a mark of this recording, up to")) == (400, True)
    status, detail = await node.refused("GET", "/transcript?sinse=1")
    assert (status, "there is no field sinse; is it since?" in detail) == (400, True)


async def test_steps_that_are_not_kept_are_refused(coordinator: GroupCoordinator) -> None:
    control = coordinator.app.control
    assert control is not None
    control.recorder.kept_steps = 3
    for _ in range(5):
        await coordinator.call(beat("x"), None, "app")
    with pytest.raises(OperationRefused, match="since mark 0 is not kept any more; the oldest mark that is, is 3"):
        await coordinator.transcript()


# --- at random


class RandomUser:
    """Does things at random, as members and administrators do, in time and out of it."""

    def __init__(self, coordinator: GroupCoordinator, seed: int) -> None:
        self.coordinator = coordinator
        self.dice = random.Random(seed)
        self.members: dict[str, dict[str, Any]] = {}
        self.asked: list[asyncio.Task[Any]] = []
        self.away: set[int] = set()

    async def ask(self, api: str, body: dict[str, Any], client_id: str, version: int | None = None) -> Any:
        request = parse(api, body, version)
        task = asyncio.ensure_future(self.coordinator.call(request, version, client_id))
        self.asked.append(task)
        await asyncio.sleep(0)
        return task.result() if task.done() else None

    async def do_something(self) -> None:
        dice, group = self.dice, self.dice.choice(("g", "g", "h"))
        who = dice.choice(("a", "b", "c"))
        known = self.members.setdefault(f"{who}@{group}", {"id": "", "generation": -1})
        version = dice.choice((3, 5, 9, 9, 9))
        body: dict[str, Any]
        match dice.randrange(16):
            case 0 | 1 | 2 | 3:
                instance = "i-1" if who == "c" and version >= 5 else None
                topics = dice.choice((("orders",), ("orders",), ("orders", "clicks")))
                member_id = known["id"] if dice.random() < 0.9 else ""
                body = join(
                    group, member_id, topics, groupInstanceId=instance, sessionTimeoutMs=dice.choice((6_000, 45_000))
                )
                if version < 8:
                    del body["reason"]
                answer = await self.ask("JoinGroup", body, who, version)
                if answer is not None:
                    self.on_join_response(known, answer)
            case 4 | 5 | 6:
                self.look(group)
                given = {member["id"]: {"orders": [0]} for member in self.members.values() if member["id"]}
                await self.ask("SyncGroup", sync(group, known["id"], known["generation"], given), who)
            case 7 | 8:
                await self.ask(
                    "Heartbeat", {"groupId": group, "generationId": known["generation"], "memberId": known["id"]}, who
                )
            case 9:
                leaving = {"memberId": known["id"], "groupInstanceId": None, "reason": "had enough"}
                await self.ask("LeaveGroup", {"groupId": group, "members": [leaving]}, who)
            case 10:
                partition = {
                    "partitionIndex": dice.randrange(3),
                    "committedOffset": dice.randrange(99),
                    "committedMetadata": None,
                }
                body = {
                    "groupId": group,
                    "memberId": known["id"],
                    "topics": [{"name": "orders", "partitions": [partition]}],
                }
                body["generationIdOrMemberEpoch"] = known["generation"] if known["id"] else -1
                await self.ask("OffsetCommit", body, who)
            case 11:
                wanted = {"groupId": group, "topics": None}
                await self.ask("OffsetFetch", {"groups": [wanted], "requireStable": False}, who)
                await self.ask("ListGroups", {"statesFilter": [], "typesFilter": []}, who)
                await self.ask("DescribeGroups", {"groups": [group], "includeAuthorizedOperations": False}, who)
            case 12:
                await self.coordinator.advance(dice.choice((1, 1_000, 3_000, 10_000, 50_000)))
            case 13:
                await self.coordinator.advance_to_next()
            case 14:
                await self.move(group)
            case 15:
                await self.manage(group, known["id"])

    def on_join_response(self, known: dict[str, Any], answer: JoinGroupResponse) -> None:
        if answer.error_code.name in {"NONE", "MEMBER_ID_REQUIRED"}:
            known["id"] = answer.member_id
        if answer.error_code.name == "NONE":
            known["generation"] = answer.generation_id

    def look(self, group: str) -> None:
        """Learn what members were answered in the meantime."""
        view = self.coordinator.app.runtime.node.describe_group(group)
        for member in view.members if view is not None else ():
            known = self.members.get(f"{member.client_id}@{group}")
            if known is not None and view is not None:
                known.update(id=member.member_id, generation=view.generation)

    async def move(self, group: str) -> None:
        partition = 3 if group == "g" else 4
        if partition in self.away:
            await self.coordinator.elect(group=group)
            self.away.discard(partition)
        elif self.dice.random() < 0.5:
            await self.coordinator.resign(group=group)
            self.away.add(partition)

    async def manage(self, group: str, member_id: str) -> None:
        what = self.dice.choice(("expire", "kick", "delete", "grow", "produce"))
        try:
            if what == "expire":
                await self.coordinator.expire(group, member_id)
            elif what == "kick":
                await self.coordinator.kick(group, member_id)
            elif what == "delete":
                await self.ask("DeleteGroups", {"groupsNames": [group]}, "tool")
            elif what == "grow":
                await self.coordinator.set_topic("orders", self.dice.randrange(3, 9))
            else:
                await self.coordinator.produce("orders", None, 5)
        except OperationRefused:
            pass


@pytest.mark.parametrize("seed", range(60))
async def test_random_steps_can_be_played(coordinator: GroupCoordinator, seed: int) -> None:
    user = RandomUser(coordinator, seed)
    mark = 0
    for number in range(80):
        await user.do_something()
        if number == 40:
            mark = await coordinator.mark()
    for since in (0, mark):
        transcript = await coordinator.transcript(since)
        assert play(transcript).text == transcript
    for partition in user.away:
        await coordinator.elect(partition=partition)
    await coordinator.advance_until_idle()
    assert coordinator.app.runtime.node.waiting() == []
    await asyncio.gather(*user.asked)
