"""Whether a classic group can move to the consumer protocol, by what its clients say of themselves."""

from __future__ import annotations

from typing import Any, Final

import pytest

from benchmarks.recovered_from_logs import read, run
from rejoin.pipeline.findings.clients import table
from rejoin.pipeline.findings.clients.table import CLIENTS, TABLE
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.rules import judge
from rejoin.simulation.scenario.reading import scenario_from
from tests.pipeline.findings.rules.test_advice_by_client import check
from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, found, rebalance, session

Row = dict[str, Any]
NAME: Final = "ready-for-the-consumer-protocol"
JAVA: Final = "apache-kafka-java 4.1.0"


def group(**more: Any) -> dict[str, list[Row]]:
    about = {"protocols": ["range", "cooperative-sticky"], "software": JAVA} | more
    members = [session(name, MARCH_3, None, "open", name, **about) for name in ("m1", "m2", "m3")]
    first = rebalance(1, MARCH_3, "join-new", "m1", initial=True)
    return {"session": members, "rebalance": [first, rebalance(2, MARCH_3 + MINUTE, "join-new", "m2")]}


def test_a_group_whose_clients_are_new_enough_could_move() -> None:
    ready = found(**group())[NAME]
    assert (ready["setting"], ready["severity"], ready["numbers"]["obstacles"]) == ("group.protocol", "low", 0)
    assert ready["title"] == "orders could use the consumer protocol"
    assert JAVA in ready["text"]
    assert "Take out of the clients' settings" not in ready["advice"]


@pytest.mark.parametrize(
    ("more", "title", "advice"),
    [
        ({"software": "apache-kafka-java 3.9.0"}, "apache-kafka-java 3.9.0 is too old", "Update it to 4.0 or newer."),
        ({"software": "librdkafka v2.6.1"}, "librdkafka v2.6.1 is too old", "Update it to 2.12 or newer."),
        ({"software": "sarama 1.43"}, "sarama 1.43 is not known to have the consumer protocol", "newer sarama has"),
        ({"protocols": ["range", "of-our-own"]}, "the assignor of-our-own is none of Kafka's", "user data"),
        ({"protocols": ["stream"]}, "the assignor stream is none of Kafka's", "group.protocol=streams"),
    ],
)
def test_what_stands_in_the_way_is_named_with_what_to_do(more: Row, title: str, advice: str) -> None:
    blocked = found(**group(**more))[NAME]
    assert blocked["title"] == f"orders is not ready for the consumer protocol: {title}"
    assert advice in blocked["advice"]
    assert blocked["members"] == ["m1", "m2", "m3"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_told_of_its_own_settings_alone(client: str) -> None:
    for software in (JAVA, "sarama 1.43"):
        rows = group(software=software, session_timeout_ms=20_000, protocols=["range"])
        history = GroupHistory.of(RunContext("run", MARCH_3 + 60 * MINUTE), "orders", rows)
        if software == JAVA and table.PROTOCOL not in TABLE[client]:
            continue
        assert list(check(history, client)) == []


def test_the_user_data_of_librdkafkas_cooperative_assignor_stands_in_the_way() -> None:
    software = {"software": "librdkafka v2.16.0", "protocols": ["cooperative-sticky"]}
    rows = group(**software)
    for each in rows["rebalance"]:
        each["protocol"] = "cooperative-sticky"
    blocked = found(**rows)[NAME]
    assert blocked["numbers"]["obstacles"] == 1
    assert "hands out user data" in blocked["title"]
    assert "Stop all members and start them with group.protocol=consumer" in blocked["advice"]
    alone = rows | {"session": rows["session"][:1]}
    assert found(**alone)[NAME]["numbers"]["obstacles"] == 0, "an only member is upgraded"
    java = group(**software | {"software": JAVA})
    for each in java["rebalance"]:
        each["protocol"] = "cooperative-sticky"
    assert found(**java)[NAME]["numbers"]["obstacles"] == 0


def test_settings_that_clients_must_have_set_are_to_be_taken_out() -> None:
    ready = found(**group(session_timeout_ms=10_000, protocols=["cooperative-sticky"], group_instance_id="i-1"))[NAME]
    assert "session.timeout.ms (10 s: the group's consumer.session.timeout.ms holds instead" in ready["advice"]
    assert ready["advice"].endswith("limits), partition.assignment.strategy; a client refuses to start with them.")
    assert "ooperative" not in ready["advice"], "the group is cooperative already"
    assert "Static members keep their group.instance.id (i-1)." in ready["text"]


@pytest.mark.parametrize("more", [{"software": None}, {"group_protocol": "consumer"}], ids=["unknown", "moved"])
def test_nothing_is_said_where_nothing_is_known_or_the_group_has_moved(more: Row) -> None:
    assert NAME not in found(**group(**more))


SCENARIO = """
horizon: 1m
topics: {orders: {partitions: 4, records_per_second: 0.1}}
groups: {orders: {topics: orders, consumers: 2, session_timeout: 10s, start: {every: 1s}}}
"""


@pytest.mark.parametrize(("version", "obstacles"), [(b"4.1.0", 0), (b"3.9.1", 1)])
def test_a_request_log_has_what_it_takes(version: bytes, obstacles: int) -> None:
    """Played by the laboratory; the request log of a broker has names and versions of the clients."""
    unknown = b'"softwareName":"unknown","softwareVersion":"unknown"'
    logs = run("ready", scenario_from(SCENARIO)).requests
    assert all(unknown in b"".join(lines) for lines in logs.values())
    said = {
        node: [
            line.replace(unknown, b'"softwareName":"apache-kafka-java","softwareVersion":"%s"' % version)
            for line in lines
        ]
        for node, lines in logs.items()
    }
    events, broken = read({}, said)
    assert broken == 0
    joined = {each["member_id"]: each for each in events if each["event"] == "member_joined"}
    sessions = [each | {"joined_at_ms": each["at_ms"], "end": "open"} for each in joined.values()]
    history = GroupHistory.of(RunContext("run", max(each["at_ms"] for each in events)), "orders", {"session": sessions})
    (ready,) = (each for each in judge(history) if each.finding == NAME)
    assert (ready.numbers["members"], ready.numbers["obstacles"]) == (2, obstacles)
    assert "session.timeout.ms (10 s" in (ready.advice or "")
