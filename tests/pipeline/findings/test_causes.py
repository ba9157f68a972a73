"""Causes apart from each other: several at a time in one group, and what each finding then says of them."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.rules import judge
from rejoin.pipeline.findings.rules.brokers import one_for_each_event
from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, rebalance, session

SECOND = 1_000
Rows = dict[str, list[dict[str, Any]]]


class Group:
    """Rows of a group, made of what its members do; ``settings`` are those of every session."""

    def __init__(self, clients: list[str], protocol: str | None = "range", **settings: Any) -> None:
        self.protocol, self.settings = protocol, {"session_timeout_ms": 10_000, **settings}
        self.events: list[dict[str, Any]] = []
        self.rebalances: list[dict[str, Any]] = []
        self.sessions: list[dict[str, Any]] = []
        self._open: dict[str, dict[str, Any]] = {}
        self._ids = 0
        for client in clients:
            self._join(client, MARCH_3)
        self.began(MARCH_3, "join-new", f"{clients[0]}-1", initial=True)

    def _join(self, client: str, at_ms: int, **more: Any) -> str:
        self._ids += 1
        row = session(f"{client}-{self._ids}", at_ms, None, "open", client, **{**self.settings, **more})
        self.sessions.append(row)
        self._open[client] = row
        return str(row["member_id"])

    def began(self, at_ms: int, cause: str, member: str | None, **more: Any) -> None:
        number = len(self.rebalances)
        row = rebalance(number, at_ms, cause, member, **{"protocol": self.protocol, **more})
        self.rebalances.append(row)

    def leaves(self, client: str, at_s: float, cause: str = "leave", end: str = "left", **more: Any) -> None:
        at_ms = MARCH_3 + round(at_s * SECOND)
        row = self._open.pop(client)
        row.update({"ended_at_ms": at_ms, "end": end, **more})
        self.began(at_ms, cause, row["member_id"])

    def joins(self, client: str, at_s: float, **more: Any) -> None:
        at_ms = MARCH_3 + round(at_s * SECOND)
        self.began(at_ms, "join-new", self._join(client, at_ms, **more))

    def restarts(self, client: str, at_s: float, away_s: float = 6) -> None:
        self.leaves(client, at_s)
        self.joins(client, at_s + away_s)

    def is_silent(self, client: str, at_s: float, back_s: float, **more: Any) -> None:
        """Its session ends at this second, and it is back so much later."""
        self.leaves(client, at_s, "session-expiry", "session-expiry")
        self.joins(client, at_s + back_s, **more)

    def found(self, **run: Any) -> dict[str, list[dict[str, Any]]]:
        chained: list[dict[str, Any]] = []
        ordered = sorted(self.rebalances, key=lambda row: row["prepared_at_ms"])
        chain = 0
        for number, row in enumerate(ordered, 1):
            if not chained or row["prepared_at_ms"] - chained[-1]["ended_at_ms"] > 60_000:
                chain = number
            chained.append({**row, "chain": chain})
        rows: Rows = {"session": self.sessions, "rebalance": chained, "event": self.events}
        context = RunContext("run", MARCH_3 + 60 * MINUTE, **{"brokers": 1, "joins_reported": True, **run})
        found: dict[str, list[dict[str, Any]]] = {}
        for finding in judge(GroupHistory.of(context, "orders", rows)):
            found.setdefault(finding.finding, []).append(finding.row())
        return found


SIX = [f"orders-{number}" for number in range(1, 7)]


def mixed(deploy_every_s: int = 17, crash_every_s: int = 34) -> Group:
    """A rolling restart of four members while a fifth one crashes again and again."""
    group = Group(SIX)
    for nth in range(6):
        group.is_silent("orders-4", 30 + nth * crash_every_s, 2)
    for nth, client in enumerate(("orders-1", "orders-2", "orders-3", "orders-5")):
        group.restarts(client, 40 + nth * deploy_every_s)
    return group


@pytest.mark.parametrize(("deploy_every_s", "crash_every_s"), [(17, 34), (40, 20), (120, 60), (9, 150)])
def test_a_rolling_restart_and_a_crash_loop_at_one_time_are_two_findings(
    deploy_every_s: int, crash_every_s: int
) -> None:
    found = mixed(deploy_every_s, crash_every_s).found()
    assert found["rolling-restart"][0]["members"] == ["orders-1", "orders-2", "orders-3", "orders-5"]
    assert found["rolling-restart"][0]["numbers"]["rebalances"] == 8
    assert [row["members"] for row in found["flapping-member"]] == [["orders-4"]]
    assert found["flapping-member"][0]["numbers"]["returns"] == 6
    assert not {"session-too-short", "died-without-leaving"} & set(found)


def test_a_storm_names_its_parts_with_their_numbers_and_comes_behind_them() -> None:
    found = mixed().found()
    assert "12 by orders-4, 8 by a rolling restart" in found["storm"][0]["text"]
    order = list(found)
    assert order.index("storm") > max(order.index("rolling-restart"), order.index("flapping-member"))


def test_two_clients_that_crash_do_not_hide_each_other() -> None:
    group = Group(SIX)
    for nth in range(6):
        group.is_silent("orders-4", 30 + nth * 30, 2)
    for nth in range(4):
        group.is_silent("orders-2", 45 + nth * 30, 2)
    assert {row["members"][0] for row in group.found()["flapping-member"]} == {"orders-2", "orders-4"}


def test_three_deploys_within_half_an_hour_are_no_crash_loops() -> None:
    group = Group(SIX)
    for deploy in range(3):
        for nth, client in enumerate(SIX):
            group.restarts(client, 60 + deploy * 480 + nth * 20)
    found = group.found()
    assert found["rolling-restart"][0]["numbers"]["deploys"] == 3
    assert found["rolling-restart"][0]["numbers"]["rebalances"] == 36
    assert "flapping-member" not in found


def test_a_client_that_crashes_is_part_of_a_deploy_as_well() -> None:
    group = Group(SIX)
    for nth in range(5):
        group.is_silent("orders-4", 30 + nth * 30, 2)
    for nth, client in enumerate(SIX):
        group.restarts(client, 400 + nth * 15)
    found = group.found()
    assert found["rolling-restart"][0]["members"] == SIX
    assert found["flapping-member"][0]["numbers"]["returns"] == 5


def test_a_deploy_by_kill_is_one_deploy_and_neither_pauses_nor_flapping() -> None:
    group = Group(SIX[:3])
    for nth, client in enumerate(SIX[:3]):
        group.is_silent(client, 100 + nth * 25, 5)
    found = group.found()
    assert found["rolling-restart"][0]["members"] == SIX[:3]
    assert "3 of them silently" in found["rolling-restart"][0]["text"]
    assert not {"session-too-short", "flapping-member"} & set(found)


def test_pauses_of_processes_that_went_on_are_no_deploy() -> None:
    group = Group(SIX[:3])
    for nth, client in enumerate(SIX[:3]):
        group.is_silent(client, 100 + nth * 25, 5, same_process_as=f"{client}-{nth + 1}")
    found = group.found()
    assert "rolling-restart" not in found
    row = found["session-too-short"][0]
    assert "shorter than the pause" in row["text"]
    assert "If these were restarts" not in row["advice"]


def test_a_new_process_after_a_kill_would_not_be_helped_by_a_longer_session() -> None:
    group = Group(SIX)
    group.is_silent("orders-2", 100, 20, same_process_as="")
    found = group.found()
    assert "session-too-short" not in found
    assert "orders-2 was started again" in found["died-without-leaving"][0]["title"]


def test_static_restarts_that_are_too_slow_are_no_matter_of_an_initial_delay() -> None:
    group = Group(SIX[:3], group_instance_id=None)
    for row in group.sessions:
        row["group_instance_id"] = row["client_id"]
    for nth, client in enumerate(SIX[:3]):
        group.is_silent(client, 100 + nth * 30, 15, group_instance_id=client)
    found = group.found()
    assert found["storm"][0]["setting"] is None
    assert "initial.rebalance.delay" not in str(found)
    assert "6 by sessions that were missed" in found["storm"][0]["text"]
    assert found["session-too-short"][0]["members"] == SIX[:3]


def test_a_static_member_is_not_advised_to_leave() -> None:
    group = Group(SIX)
    for row in group.sessions:
        row["group_instance_id"] = row["client_id"]
    group.leaves("orders-2", 100, "session-expiry", "session-expiry")
    advice = group.found()["died-without-leaving"][0]["advice"]
    assert "sends no LeaveGroup when it is closed" in advice
    assert "SIGTERM" not in advice


def test_the_name_of_a_deployment_s_pod_is_no_instance_id() -> None:
    advice = mixed().found()["rolling-restart"][0]["advice"]
    assert "StatefulSet" in advice
    assert "the name of a Deployment's pod changes with each rollout" in advice


def test_six_deliberate_changes_are_no_storm() -> None:
    group = Group(SIX[:2])
    for nth, client in enumerate(("orders-7", "orders-8", "orders-9")):
        group.joins(client, 100 + nth * 50)
        group.leaves(client, 400 + nth * 50)
    found = group.found()
    assert "storm" not in found
    row = found["membership-changed"][0]
    assert "3 added and 3 taken away" in row["title"]
    assert row["members"] == ["orders-7", "orders-8", "orders-9"]
    assert row["severity"] == "low"


def cooperative(protocol: str | None, reason: str | None) -> Group:
    group = Group(SIX, protocol)
    for nth, client in enumerate(SIX):
        group.restarts(client, 100 + nth * 20)
        at = MARCH_3 + (100 + nth * 20 + 6 + 2) * SECOND + 10
        group.began(at, "rejoin-metadata", "orders-1-1", client_reason=reason, protocol=protocol)
    return group


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ("cooperative-sticky", None),
        (None, "need to revoke partitions and re-join"),
        # A log alone, of clients that give no reasons: members come back right after completed generations.
        (None, None),
    ],
)
def test_a_group_that_is_cooperative_already_is_known_as_such(protocol: str | None, reason: str | None) -> None:
    found = cooperative(protocol, reason).found()
    assert "ooperative" not in str(found["storm"][0]["advice"])
    assert "eager-assignor" not in found
    assert found["rolling-restart"][0]["score"] == 0, "members kept what they had"
    assert found["rolling-restart"][0]["numbers"]["rebalances"] == 18, "with the second halves"
    assert "12 by a rolling restart" in found["storm"][0]["text"]


def test_members_of_the_consumer_protocol_cannot_set_a_session_timeout() -> None:
    group = Group(SIX, "uniform", group_protocol="consumer", session_timeout_ms=None)
    member = group.sessions[1]["member_id"]
    group.is_silent("orders-2", 100, 11)
    group.sessions[-1]["member_id"] = member
    group.rebalances[-1]["cause_member_id"] = member
    row = group.found()["session-too-short"][0]
    assert row["setting"] == "group.consumer.session.timeout.ms"
    assert "cannot set it themselves" in row["advice"]
    assert " session.timeout.ms" not in row["text"]


@pytest.mark.parametrize(
    ("software", "named", "not_named"),
    [
        ("apache-kafka-java 4.4.0", ["CooperativeStickyAssignor", "two rolling restarts"], ["librdkafka refuses"]),
        ("confluent-kafka-python 2.16.1-rdkafka-2.16.0", ["librdkafka refuses"], ["org.apache", "two rolling"]),
        ("librdkafka 2.4.0", ["stop all members"], ["org.apache", "two rolling"]),
        (None, ["librdkafka refuses", "two rolling restarts"], ["org.apache"]),
    ],
)
def test_the_way_to_cooperative_rebalances_depends_on_the_client(
    software: str | None, named: list[str], not_named: list[str]
) -> None:
    group = Group(SIX, software=software)
    for nth, client in enumerate(SIX):
        group.restarts(client, 100 + nth * 20)
    advice = group.found()["eager-assignor"][0]["advice"]
    assert all(text in advice for text in [*named, "group.protocol=consumer"])
    assert not any(text in advice for text in not_named)


def test_a_member_id_shows_the_library_where_no_request_does() -> None:
    group = Group(["rdkafka"] * 1 + ["rdkafka-b", "rdkafka-c", "rdkafka-d"])
    for nth, client in enumerate(("rdkafka-b", "rdkafka-c", "rdkafka-d")):
        group.restarts(client, 100 + nth * 20)
    assert "org.apache" not in group.found()["eager-assignor"][0]["advice"]


def event(name: str, at_s: float, **more: Any) -> dict[str, Any]:
    row = {"source": "broker-log", "node": "1", "seq": round(at_s), "at_ms": MARCH_3 + round(at_s * SECOND)}
    return {**row, "event": name, "confidence": "exact", **more}


def away() -> Group:
    group = Group(SIX)
    group.events += [event("broker_stopped", 100), event("broker_started", 146), event("group_loaded", 147)]
    return group


def test_a_broker_that_was_away_is_counted_and_did_not_move() -> None:
    group = away()
    group.began(MARCH_3 + 160 * SECOND, "session-expiry", "orders-3-3")
    group.sessions[2].update({"ended_at_ms": MARCH_3 + 160 * SECOND, "end": "session-expiry"})
    group._open.pop("orders-3")
    group.joins("orders-3", 162)
    found = group.found()
    row = found["coordinator-failover"][0]
    assert "Broker 1 was away for 47 s" in row["title"]
    assert row["numbers"]["away_ms"] == 47_000
    assert row["score"] >= 6 * 47
    assert "moved" not in row["title"] + row["text"]
    assert row["numbers"]["rebalances_after"] == 2
    assert not {"session-too-short", "died-without-leaving"} & set(found), "its session ended by the outage"


def test_with_several_brokers_the_coordinator_was_away_and_consumers_went_on() -> None:
    row = away().found(brokers=3)["coordinator-failover"][0]
    assert "The coordinator was away for 47 s" in row["title"]
    assert row["score"] == 0
    assert "Consumers go on" in row["text"]


def test_one_event_of_a_broker_is_one_finding_with_all_its_groups() -> None:
    rows = [
        {"run_id": "run", "group_id": name, "groups": [name], **away().found()["coordinator-failover"][0]}
        for name in ("orders", "mail", "search")
    ]
    other = {**rows[0], "group_id": "mail", "finding": "storm"}
    joined = one_for_each_event([*rows, other])
    assert [row["finding"] for row in joined] == ["storm", "coordinator-failover"]
    row = joined[1]
    assert (row["group_id"], row["groups"]) == (None, ["mail", "orders", "search"])
    assert "Broker 1 was away for 47 s: 3 groups" in row["title"]
    assert row["score"] == pytest.approx(3 * rows[0]["score"])


def test_two_events_of_a_broker_are_two_findings() -> None:
    group = away()
    group.events += [event("broker_stopped", 900), event("group_loaded", 960)]
    rows = [{"run_id": "run", "group_id": "g", "groups": ["g"], **row} for row in group.found()["coordinator-failover"]]
    assert len(one_for_each_event(rows)) == 2


def test_growth_in_the_log_is_named_where_the_group_noticed_it() -> None:
    def grown(known: bool, notices: bool) -> dict[str, list[dict[str, Any]]]:
        group = Group(SIX, topics=["orders"] if known else None)
        group.events.append(event("topic_grown", 100, topic="orders", partition_count=16, previous_partition_count=12))
        if notices:
            group.began(MARCH_3 + 108 * SECOND, "rejoin-leader", "orders-1-1")
        return group.found()

    for known in (True, False):
        row = grown(known, notices=True)["topic-growth"][0]
        assert "orders grew from 12 to 16 partitions" in row["title"]
        assert row["title"].startswith("Probably") is not known
        assert row["rebalances"] == ["run/orders/1"]
    assert "topic-growth" in grown(known=True, notices=False)
    assert "topic-growth" not in grown(known=False, notices=False), "it may read another topic"


def test_what_is_read_with_the_requests_does_not_ask_for_them() -> None:
    group = Group(SIX)
    group.leaves("orders-2", 100, "session-expiry", "session-expiry")
    for row in group.sessions:
        row["joined_at_ms"] = None
    for row in group.rebalances:
        row["source"] = "broker-log"
    silent = group.found(joins_reported=False)["fell-silent"][0]
    assert "kafka-request.log" in silent["advice"]
    assert "kafka-request.log" not in group.found(joins_reported=False, requests_read=True)["fell-silent"][0]["advice"]
    assert "fell-silent" not in group.found(joins_reported=True)


def test_a_late_poll_that_only_its_connection_shows() -> None:
    group = Group(SIX, "range", rebalance_timeout_ms=14_000)
    group.restarts("orders-2", 100, 10)
    group.events.append(
        event("poll_timeout_exceeded", 100, member_id="orders-2-2", client_id="orders-2", timeout_ms=14_000)
        | {"source": "request-log", "confidence": "inferred"}
    )
    row = group.found()["max-poll-exceeded"][0]
    assert row["members"] == ["orders-2"]
    assert row["title"].startswith("Probably")
    assert row["numbers"]["rebalances"] == 2
    assert row["numbers"]["longest_batch_ms"] == 24_000


def test_a_late_poll_is_as_long_as_the_client_itself_measured_where_it_pushes_metrics() -> None:
    def found(client_id: str, member_id: str, longest_ms: int | None) -> dict[str, Any]:
        group = Group(SIX, "range", rebalance_timeout_ms=14_000)
        group.restarts("orders-2", 100, 10)
        group.events.append(
            event("poll_timeout_exceeded", 100, member_id="orders-2-2", client_id="orders-2", timeout_ms=14_000)
        )
        report = event("client_metrics_reported", 130, client_id=client_id, member_id=member_id)
        group.events.append(report | {"more": {"poll_interval_max_ms": longest_ms}})
        row: dict[str, Any] = group.found()["max-poll-exceeded"][0]
        return row

    row = found("orders-2", "orders-2-3", 340_000)
    assert "Its longest poll took 5.7 min, as the client itself measured." in row["text"]
    assert row["numbers"]["measured_poll_ms"] == 340_000
    assert "client_metrics_reported" in {each["event"] for each in row["evidence"]}
    for other in (
        ("orders-3", "orders-3-3", 340_000),
        ("orders-2", "orders-2-3", 12_000),
        ("orders-2", "orders-2-3", None),
    ):
        row = found(*other)
        assert "measured" not in row["text"]
        assert "measured_poll_ms" not in row["numbers"]


def test_a_group_whose_topics_are_not_known_noticed_the_growth_nearest_before() -> None:
    group = Group(SIX, topics=None)
    for at, topic in ((100, "mail"), (160, "orders")):
        group.events.append(event("topic_grown", at, topic=topic, partition_count=16, previous_partition_count=12))
    group.began(MARCH_3 + 163 * SECOND, "rejoin-leader", "orders-1-1")
    assert ["orders grew" in row["title"] for row in group.found()["topic-growth"]] == [True]


def test_a_kill_and_a_pause_of_two_members_are_no_deploy() -> None:
    group = Group(SIX[:4])
    group.is_silent("orders-2", 100, 11, same_process_as="")
    group.is_silent("orders-3", 130, 7)
    found = group.found()
    assert "rolling-restart" not in found
    named = {row["finding"]: row["members"] for rows in found.values() for row in rows}
    assert named["died-without-leaving"] == ["orders-2"]
    assert named["session-too-short"] == ["orders-3"]


def test_two_kills_in_a_group_of_four_are_no_deploy_however_alike_they_are() -> None:
    group = Group(SIX[:4])
    group.is_silent("orders-2", 100, 5)
    group.is_silent("orders-3", 130, 5)
    assert "rolling-restart" not in group.found()


def test_a_member_that_is_in_each_of_three_deploys_does_not_flap() -> None:
    group = Group(SIX)
    for deploy in range(3):
        of_this = ["orders-1", *SIX[1 + deploy :: 2]]
        for nth, client in enumerate(of_this):
            group.restarts(client, 60 + deploy * 400 + nth * 20)
    assert "flapping-member" not in group.found()
