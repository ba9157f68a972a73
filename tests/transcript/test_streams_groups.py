"""Streams groups in transcripts: a recorded life plays again, and the grammar reads what it writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rejoin.coordinator.testing import running
from rejoin.protocol.message import Request
from rejoin.transcript.grammar.base import Scope
from rejoin.transcript.grammar.table import BY_REQUEST
from rejoin.transcript.grammar.words import NotExpressible
from rejoin.transcript.members import MemberContext
from rejoin.transcript.player import TranscriptError, play
from tests.coordinator.control.samples import parse
from tests.coordinator.core.groups.streams.word_count import LINES
from tests.coordinator.testing.streams_member import APPLICATION, AT_ONCE, TOPICS, running_threads
from tests.transcript.test_share_groups import NoMembers

STANDBYS = AT_ONCE | {"group.streams.num.standby.replicas": 1}


async def recorded_life() -> str:
    """Two threads: tasks move, one is fenced by its session, a topic goes and comes back, a shutdown."""
    async with running(clock="virtual", topics=TOPICS, settings=STANDBYS, socket=False) as coordinator:
        a, b = await running_threads(coordinator, "a", "b")
        await coordinator.advance(30_000)
        for each in (a, b):
            await each.beat()
        await coordinator.call(
            parse("StreamsGroupDescribe", {"groupIds": [APPLICATION], "includeAuthorizedOperations": False})
        )
        await coordinator.expire(APPLICATION, "a")
        await b.beat()
        await coordinator.delete_topic(LINES)
        await b.beat()
        await coordinator.set_topic(LINES, 2)
        await b.beat()
        await a.beat()
        await a.join()
        await coordinator.shut_down_application(APPLICATION)
        await coordinator.advance(45_000)
        return await coordinator.transcript(claim="The life of two threads.")


async def test_a_recorded_life_plays_again_with_equal_answers() -> None:
    text = await recorded_life()
    assert "not expressible" not in text
    assert play(text).text == text


async def test_commands_and_answers_of_a_life_stand_in_its_transcript() -> None:
    lines = (await recorded_life()).splitlines()
    for line in (
        f"group {APPLICATION}",
        "client-a streams-heartbeat 0:source=lines 0:sink=app-words-repartition 1:repartition=app-words-repartition",
        "client-b streams-heartbeat active=0:1+1:1 standby=1:0 warmup=-",
        "client-a  StreamsGroupHeartbeat -> epoch 2, runs -, MISSING_INTERNAL_TOPICS",
        "expire client-a",
        f"{APPLICATION}  a removed (no heartbeat in time)",
        "client-a  StreamsGroupHeartbeat -> UNKNOWN_MEMBER_ID",
        "topic lines gone",
    ):
        assert any(line == each or each.startswith((f"{line} ", f"{line},")) for each in lines), line
    assert any("MISSING_SOURCE_TOPICS" in each for each in lines)


INFO = {
    "name": "c",
    "partitions": 3,
    "replicationFactor": 1,
    "topicConfigs": [{"key": "cleanup.policy", "value": "compact,delete"}],
}
PART: dict[str, Any] = {
    "subtopologyId": "0",
    "sourceTopics": ["t", "u"],
    "sourceTopicRegex": [],
    "stateChangelogTopics": [INFO],
    "repartitionSinkTopics": ["s"],
    "repartitionSourceTopics": [],
    "copartitionGroups": [{"sourceTopics": [0, 1], "sourceTopicRegex": [], "repartitionSourceTopics": []}],
}
NOTHING = PART | {name: [] for name in PART if name != "subtopologyId"} | {"subtopologyId": "1"}
JOIN: dict[str, Any] = {
    "groupId": "g",
    "memberId": "a-1",
    "memberEpoch": 0,
    "endpointInformationEpoch": 0,
    "rebalanceTimeoutMs": 60_000,
    "topology": {"epoch": 0, "subtopologies": [PART, NOTHING]},
    "activeTasks": [],
    "standbyTasks": [],
    "warmupTasks": [],
}
WORDS = [
    "0:source=t",
    "0:source=u",
    "0:sink=s",
    "0:changelog=c/3/1/cleanup.policy=compact,delete",
    "0:copartition=s0+s1",
    "1:",
]
TASKS = [{"subtopologyId": "0", "partitions": [0, 2]}, {"subtopologyId": "1", "partitions": [1]}]
LATER = {"groupId": "g", "memberId": "a-1", "memberEpoch": 4, "endpointInformationEpoch": 2}
OFFSETS = [{"subtopologyId": "0", "partition": 2, "offset": 57}]


def scope() -> Scope:
    return Scope("g", MemberContext(name="a", member_id="a-1"), NoMembers())


@pytest.mark.parametrize(
    ("api", "body", "version", "words"),
    [
        ("StreamsGroupHeartbeat", JOIN, 1, WORDS),
        (
            "StreamsGroupHeartbeat",
            JOIN
            | {"processId": "p", "userEndpoint": {"host": "h", "port": 80}, "clientTags": [{"key": "z", "value": "1"}]},
            1,
            [*WORDS, "tags=z:1", "process=p", "endpoint=h:80"],
        ),
        ("StreamsGroupHeartbeat", JOIN | {"topology": {"epoch": 2, "subtopologies": []}}, 0, ["topology=2", "v=0"]),
        (
            "StreamsGroupHeartbeat",
            LATER | {"activeTasks": TASKS, "standbyTasks": [], "taskOffsets": OFFSETS, "taskEndOffsets": []},
            1,
            ["active=0:0,2+1:1", "standby=-", "offsets=0:2=57", "ends=-", "epoch=4", "endpoints=2"],
        ),
        ("StreamsGroupHeartbeat", LATER | {"shutdownApplication": True}, 1, ["epoch=4", "endpoints=2", "shutdown=yes"]),
        ("StreamsGroupDescribe", {"groupIds": ["g"], "includeAuthorizedOperations": False}, 1, ["g"]),
        (
            "StreamsGroupTopologyDescriptionUpdate",
            {
                "groupId": "g",
                "memberId": "a-1",
                "topologyEpoch": 3,
                "topologyDescription": {"subtopologies": [], "globalStores": []},
            },
            0,
            ["epoch=3"],
        ),
    ],
)
def test_the_grammar_reads_what_it_writes(api: str, body: dict[str, object], version: int, words: list[str]) -> None:
    request: Request = type(parse(api, body)).parse(json.dumps(body), version)
    command = BY_REQUEST[type(request)]
    assert command.write(request, version, scope()) == words
    assert command.read(words, scope()) == (request, version)


@pytest.mark.parametrize(
    "topology",
    [[PART, PART], [PART | {"subtopologyId": "a/b"}], [PART | {"sourceTopics": ["a=b"]}]],
)
def test_topologies_that_no_words_stand_for_are_refused(topology: list[Any]) -> None:
    request = parse("StreamsGroupHeartbeat", JOIN | {"topology": {"epoch": 0, "subtopologies": topology}})
    with pytest.raises(NotExpressible):
        BY_REQUEST[type(request)].write(request, 1, scope())


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("a streams-heartbeat 0:source=", "expected SUBTOPOLOGY:source"),
        ("a streams-heartbeat 0:sauce=t", "cannot read '0:sauce=t'"),
        ("a streams-heartbeat 0:copartition=q0", "expected places as s0"),
        ("a streams-heartbeat 0:changelog=c/1/2/3", "expected TOPIC/PARTITIONS/REPLICAS"),
        ("a streams-heartbeat active=0", "expected an assignment as t:0,1"),
        ("a streams-heartbeat tags=x", "expected tags as KEY:VALUE"),
        ("a streams-heartbeat shutdown=now", "shutdown=: expected yes or no"),
        ("a streams-heartbeet", "is it streams-heartbeat"),
    ],
)
def test_a_wrong_line_names_what_was_expected(command: str, problem: str) -> None:
    with pytest.raises(TranscriptError, match=problem) as found:
        play(f"topic t 1\n{command}\n")
    assert found.value.line.number == 2


def test_threads_can_send_heartbeats_by_themselves_and_a_look_shows_tasks() -> None:
    at_once = "group.streams.initial.rebalance.delay.ms=0 group.streams.assignment.interval.ms=0"
    commands = ["a streams-heartbeat 0:source=t process=p", "beating a", "advance 60000", "look", "written", "----"]
    got = play("\n".join([f"set {at_once}", "topic t 2", *commands]) + "\n").blocks[-1].got
    assert "g  Stable, epoch 2, target 2; a at 2; 0_0 a; 0_1 a" in got
    assert "log  g  a: epoch 2, has 0_0 0_1" in got
