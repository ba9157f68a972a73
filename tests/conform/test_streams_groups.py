"""Scripts of streams groups: how they are packed, which broker can be asked, and names of a run in topologies."""

from __future__ import annotations

from conformance.packing_streams_groups import SETTINGS, scripts_of_streams_groups
from rejoin.conform.applicability import BrokerFeatures, why_not
from rejoin.conform.judged_broker import look
from rejoin.conform.judging import Judge
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.player.messages import api_key, newest
from rejoin.conform.player.prefix import RunPrefix
from rejoin.conform.recordings.reading import read_set
from tests.conform.own_broker import own_broker

SCRIPTS = {script.name: script for script in read_set("streams-groups")}
AT_ONCE = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
RESTARTS = "brokers are moved, stopped or started"


def test_every_recording_is_packed() -> None:
    """Otherwise: ``python -m conformance.packing streams-groups``."""
    packed = {header["script"]: lines for _, header, lines in scripts_of_streams_groups()}
    assert {name: script.lines for name, script in SCRIPTS.items()} == packed | {"restarts": []}
    assert {name: script.unplayable for name, script in SCRIPTS.items() if script.unplayable} == {"restarts": RESTARTS}


def speaking(*without: str, **settings: str) -> BrokerFeatures:
    apis = {line["api"] for script in SCRIPTS.values() for line in script.requests} - set(without)
    here = SETTINGS | AT_ONCE | {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerFeatures({api_key(api): (0, newest(api)) for api in apis}, here)


def test_a_broker_is_asked_where_its_settings_are_those_of_the_recording() -> None:
    members, standbys = SCRIPTS["two-members"], SCRIPTS["standbys"]
    assert why_not(members, speaking()) is None
    assert why_not(members, speaking("StreamsGroupHeartbeat")) == "StreamsGroupHeartbeat is not spoken"
    delay = "group.streams.initial.rebalance.delay.ms"
    assert why_not(members, speaking(group_streams_initial_rebalance_delay_ms="3000")) == (
        f"{delay} is 3000, and was 0 in the recording"
    )
    assert why_not(SCRIPTS["defaults"], speaking()) == f"{delay} is 0, and was 3000 in the recording"
    shorter = speaking(group_streams_min_session_timeout_ms="1000")
    assert why_not(members, shorter) is None, "it leaves the session timeout as it is"
    assert why_not(standbys, shorter) is not None


def test_names_of_topics_in_a_topology_are_prefixed_and_keys_of_settings_are_not() -> None:
    changelog = {"name": "c", "topicConfigs": [{"key": "cleanup.policy", "value": "compact"}]}
    subtopology = {
        "sourceTopics": ["t"],
        "repartitionSinkTopics": ["r"],
        "stateChangelogTopics": [changelog],
        "repartitionSourceTopics": [{"name": "r", "topicConfigs": []}],
        "copartitionGroups": [{"sourceTopics": [0]}],
    }
    asked = {
        "groupId": "g",
        "topology": {"subtopologies": [subtopology]},
        "clientTags": [{"key": "zone", "value": "a"}],
    }
    sent = RunPrefix("run-").outgoing("StreamsGroupHeartbeat", asked)
    (found,) = sent["topology"]["subtopologies"]
    assert (sent["groupId"], found["sourceTopics"], found["repartitionSinkTopics"]) == ("run-g", ["run-t"], ["run-r"])
    assert found["stateChangelogTopics"] == [changelog | {"name": "run-c"}]
    assert found["repartitionSourceTopics"][0]["name"] == "run-r"
    assert (found["copartitionGroups"], sent["clientTags"]) == ([{"sourceTopics": [0]}], asked["clientTags"])


async def test_scripts_are_played_and_their_members_leave() -> None:
    settings = {name.replace(".", "_"): int(value) for name, value in AT_ONCE.items()}
    async with own_broker(**settings) as address:
        judge = Judge(await look(address, BrokerAccess()))
        played = [SCRIPTS[name] for name in ("static-members", "small-things", "refused-intruder", "bad-requests")]
        outcomes = await judge.judge(played, lambda _: None)
        assert await judge.clean_up() == []
        listed = await judge.broker.ask("ListGroups", {"statesFilter": [], "typesFilter": []}, 5)
    assert {each.name: list(map(str, each.differences)) for each in outcomes} == {each.name: [] for each in played}
    assert listed["groups"] == []
