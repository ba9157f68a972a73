"""The logs of share consumers of Java 4.4 and librdkafka 2.16: what they say of members, and what follows from none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.recovered.from_written_client_logs import BASE_MS
from rejoin.client.log_writer.java_share import JavaShareLog
from rejoin.client.log_writer.rdkafka_share import RdkafkaShareLog
from rejoin.journal.events.client import (
    ConsumerClosed,
    ConsumerEvent,
    CoordinatorFound,
    GroupJoined,
    GroupLeft,
    HeartbeatFailed,
    PartitionsAssigned,
    PartitionsRevoked,
    Subscribing,
)
from rejoin.simulation.kernel import SelectiveListener
from rejoin.simulation.output.client_logs import LOGGED_EVENTS, ClientLogs, not_logged
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from tests.paths import GOLDEN
from tests.pipeline.findings.tables import findings_of
from tests.pipeline.recorded import events_of_logs

FOLDER: Final = GOLDEN / "share-group-logs"
LOGS: Final = sorted(FOLDER.glob("billing-*.log"))


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = events_of_logs(LOGS).to_pylist()
    return found


def test_members_come_and_go(events: list[dict[str, Any]]) -> None:
    came = [row["client_id"] for row in events if row["event"] == "member_joined"]
    gone = [(row["client_id"], row["cause"]) for row in events if row["event"] == "member_removed"]
    assert came == ["billing-1", "billing-1", "billing-2", "billing-3", "billing-4"]
    assert gone == [("billing-1", "left"), ("billing-2", "left"), ("billing-4", "left")]
    assert {row["kind"] for row in events if row["event"] == "member_joined"} == {"share"}


def test_an_epoch_begins_no_rebalance(events: list[dict[str, Any]]) -> None:
    names = {row["event"] for row in events}
    assert not {"rebalance_started", "join_phase_ended", "rebalance_completed", "group_emptied"} & names


def test_two_members_have_one_partition(events: list[dict[str, Any]]) -> None:
    given = {row["client_id"]: row["partitions"] for row in events if row["event"] == "partitions_assigned"}
    assert given["billing-1"] == given["billing-2"] == [{"topic": "invoices", "partition": 0}]


def test_a_member_that_waits_for_partitions_is_sent_to_the_brokers(tmp_path: Path) -> None:
    lines = LOGS[0].read_text().splitlines(keepends=True)
    ends = next(nth for nth, line in enumerate(lines) if "PREPARE_LEAVING" in line)
    (tmp_path / "a.log").write_text("".join(lines[:ends]))
    found = {row["finding"]: row for row in findings_of(events_of_logs([tmp_path / "a.log"]))}
    assert "share.coordinator.state.topic.replication.factor" in found["assigned-nothing"]["advice"]
    assert "one owner" not in found["assigned-nothing"]["text"]


@pytest.mark.parametrize("how", ["reversed", "wrapped", "cut"])
def test_other_forms_of_the_lines_claim_no_more(tmp_path: Path, how: str, events: list[dict[str, Any]]) -> None:
    for log in LOGS:
        lines = log.read_text().splitlines(keepends=True)
        made = {
            "reversed": lines[::-1],
            "wrapped": [f"app-1  | {line}" for line in lines],
            "cut": [line[: len(line) // 2] + "\n" for line in lines[1::2]],
        }[how]
        (tmp_path / log.name).write_text("".join(made))
    read = events_of_logs(sorted(tmp_path.iterdir())).to_pylist()
    known = {(row["event"], row["client_id"], row["cause"]) for row in events}
    about = ("member_joined", "member_removed", "rebalance_started", "rebalance_completed")
    assert {(row["event"], row["client_id"], row["cause"]) for row in read if row["event"] in about} <= known


WHO: Final[dict[str, Any]] = {"client_id": "worker-1", "group_id": "billing", "group_instance_id": None}
MEMBER: Final[dict[str, Any]] = WHO | {"member_id": "CNjRb4g0TUKu90JooyGGXg", "generation": 4}
LIFE: Final[tuple[ConsumerEvent, ...]] = (
    Subscribing(topics=["invoices"], pattern=None, partitions={}, **WHO),
    CoordinatorFound(node_id=1, host="127.0.0.1", port=9092, **WHO),
    GroupJoined(waited_ms=12, **MEMBER),
    PartitionsAssigned(partitions={"invoices": [0, 1]}, **MEMBER),
    PartitionsRevoked(partitions={"invoices": [1]}, **MEMBER | {"generation": 5}),
    GroupLeft(reason="the consumer is being closed", notified=True, **MEMBER | {"generation": 5}),
    ConsumerClosed(**WHO),
)


def test_what_is_written_of_a_share_consumer_is_read_again(tmp_path: Path) -> None:
    log = JavaShareLog("worker-1", "billing")
    lines = log.started(BASE_MS)
    for nth, event in enumerate(LIFE):
        lines += log.lines(event, BASE_MS + 1_000 * nth)
    (tmp_path / "worker-1.log").write_text("".join(f"{line}\n" for line in lines))
    rows = events_of_logs([tmp_path / "worker-1.log"]).to_pylist()
    assert {(row["group_id"], row["client_id"]) for row in rows} == {("billing", "worker-1")}
    came = [(row["member_id"], row["kind"]) for row in rows if row["event"] == "member_joined"]
    assert came == [(MEMBER["member_id"], "share")]
    given = [row["partitions"] for row in rows if row["event"] == "partitions_assigned"]
    assert given[0] == [{"topic": "invoices", "partition": 0}, {"topic": "invoices", "partition": 1}]
    assert [row["cause"] for row in rows if row["event"] == "member_removed"] == ["left"]
    assert not {"rebalance_started", "rebalance_completed"} & {row["event"] for row in rows}


def forms(text: str) -> set[str]:
    """Lines without their time, the member, its epoch and the port."""
    return {
        re.sub(r"(?<=Member )\S+ with epoch -?\d+|(?<=port=)\d+", "", line.partition("] ")[2])
        for line in text.splitlines()
        if " INFO " in line
    }


def test_written_lines_have_the_form_of_recorded_ones() -> None:
    log = JavaShareLog("billing-1", "billing")
    written = forms("\n".join(line for event in LIFE for line in log.lines(event, BASE_MS)))
    # A member that has partitions at once is not stable before.
    new = {each for each in written - forms(LOGS[0].read_text()) if "from JOINING to STABLE" not in each}
    assert new == set()


PLAYED: Final = """
horizon: 5m
topics:
  jobs: {partitions: 2, records_per_second: 1}
groups:
  workers: {protocol: share, topics: jobs, consumers: 3, max_poll_interval: 60s}
events:
  - {at: 30s, stop: {who: workers-1, down: 5s}}
  - {at: 1m, pause: {who: workers-2, for: 80s}}
  - {at: 3m, stuck: {who: workers-3, for: 70s}}
"""


OF_A_LATE_POLL: Final = {"max-poll-exceeded": "workers-3 did not poll in time, once"}
OF_BOTH: Final = OF_A_LATE_POLL | {"session-expired": "workers-2 lost its session, once"}


@pytest.mark.parametrize(
    ("library", "findings"), [("java", OF_BOTH), ("rdkafka-debug", OF_BOTH), ("rdkafka", OF_A_LATE_POLL)]
)
def test_share_consumers_of_a_simulation_log_what_became_of_them(
    library: str, findings: dict[str, str], tmp_path: Path
) -> None:
    scenario = scenario_from(PLAYED)
    assert not_logged(library, scenario) is None
    logs = ClientLogs(library)
    play(scenario, listeners=[SelectiveListener(logs.on_event, LOGGED_EVENTS)])
    logs.write(tmp_path)
    events = events_of_logs(sorted((tmp_path / "workers").iterdir()))
    rows = events.to_pylist()
    # A member that joins again keeps its id; a process that starts again has another.
    came = [row["client_id"] for row in rows if row["event"] == "member_joined"]
    known = [] if library == "rdkafka" else ["workers-1", "workers-1", "workers-2", "workers-3"]
    assert sorted(came) == known
    assert "rebalance_started" not in {row["event"] for row in rows}
    assert {row["finding"]: row["title"] for row in findings_of(events)} == findings


def test_a_library_without_a_share_consumer_logs_none() -> None:
    assert "share group" in (not_logged("kafka-python", scenario_from(PLAYED)) or "")


OF_RDKAFKA: Final = FOLDER / "librdkafka-debug.log"


def test_librdkafkas_heartbeats_show_members_and_epochs() -> None:
    rows = events_of_logs([OF_RDKAFKA]).to_pylist()
    members = [(row["event"], row["kind"], row["cause"]) for row in rows if row["event"].startswith("member_")]
    assert members == [("member_joined", "share", None), ("member_removed", None, "left")]
    assert not {"rebalance_started", "rebalance_completed", "topic_grown"} & {row["event"] for row in rows}
    assert [row["generation"] for row in rows if row["event"] == "generation_joined"] == [7, 16]
    assert [row["error"] for row in rows if row["event"] == "heartbeat_failed"] == ["UNKNOWN_MEMBER_ID"]


def test_librdkafka_logs_late_polls_alone_by_default() -> None:
    rows = events_of_logs([FOLDER / "librdkafka.log"]).to_pylist()
    assert [(row["event"], row["timeout_ms"]) for row in rows] == [("poll_timeout_exceeded", 6_000)]


def forms_of_rdkafka(lines: list[str]) -> set[str]:
    """Facilities and texts, without numbers, names and addresses."""
    parts = [line.split("|", 4) for line in lines]
    texts = [(each[2], each[4].partition("]: ")[2] or each[4]) for each in parts]
    named = r'"[^"]*"|(?:\S+/)?-?\d+(?=:)|(?<=add )\S+|(?<=delete )\S+|(?<=waiting for ).*(?= before)|-?\d+ -> \d+'
    return {f"{facility} {re.sub(r'[0-9]+', 'N', re.sub(named, '_', text))}" for facility, text in texts}


def test_lines_written_for_librdkafka_have_the_form_of_recorded_ones() -> None:
    log = RdkafkaShareLog("worker-1", "billing")
    written = [line for event in LIFE for line in log.lines(event, BASE_MS)]
    written += log.lines(HeartbeatFailed(problem="UNKNOWN_MEMBER_ID", **MEMBER), BASE_MS)
    recorded = forms_of_rdkafka([line for line in OF_RDKAFKA.read_text().splitlines() if line.startswith("%")])
    assert forms_of_rdkafka(written) - recorded == set()
