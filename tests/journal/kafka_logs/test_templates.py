"""Each line of the table, written as each version prints it, is read with its kind and its fields."""

from __future__ import annotations

import pytest

from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog
from rejoin.journal.events.coordinator import Cause, RebalanceStarted
from rejoin.journal.kafka_logs.lines import LINES, line
from rejoin.journal.kafka_logs.reasons import CLIENT_REASON, REASONS, WITH_CLIENT_REASON, reason_line
from rejoin.journal.kafka_logs.template import NEWEST, OLDEST, VERSIONS, Template, Version
from rejoin.pipeline.reading.broker_logs.messages import read_message
from rejoin.pipeline.reading.broker_logs.reasons import read_reason
from tests.suite.cases import for_each

VALUES = {
    "group": "a group [of] 2.0 (mine)",
    "member": "consumer-1-f0e1 (a)",
    "old": "consumer-1-old",
    "current": "consumer-1-new",
    "leader": "leader-1",
    "instance": "instance 7",
    "scala_instance": "Some(instance 7)",
    "state": "PreparingRebalance",
    "generation": "-1",
    "partition": "49",
    "topic": "__consumer_offsets",
    "epoch": "12",
    "members": "3",
    "capacity": "2",
    "static_members": "1",
    "set": "Set(a, b)",
    "several": "a, b",
    "list": "g",
    "offsets": "8",
    "groups": "2",
    "records": "100",
    "load_ms": "17",
    "took_ms": "0",
    "scheduler_ms": "0",
    "bytes": "0",
    "client_id": "consumer-1",
    "client_host": "/10.0.0.1",
    "client_reason": "the consumer is being closed",
    "session_timeout_ms": "45000",
    "rebalance_timeout_ms": "300000",
    "protocols": "range, sticky",
    "operation": "syncGroup",
    "protocol": "consumer",
    "member_protocol": "classic",
    "metadata_hash": "-77",
    "member_epoch": "3",
    "local_epoch": "2",
    "topology_epoch": "-1",
    "described": "StreamsGroupMember[memberId=m]",
    "assigned": "(active=[0-1@3], standby=[], warmup=[])",
    "pending": "(active=[], standby=[], warmup=[])",
    "settings": "{num.standby.replicas=1}",
    "request": " memberEpoch=0",
    "problem": "No value present.",
    "topics": "orders, mail",
    "assignor": "uniform",
    "why": "the member session expired",
    "reason": "Adding new member m with group instance id None; client reason: not provided",
    "error": "COORDINATOR_NOT_AVAILABLE",
}


def rows(table: tuple[Template, ...]) -> list[tuple[Template, Version]]:
    return [(template, version) for template in table for version in VERSIONS if template.is_in(version)]


def name(row: tuple[Template, Version]) -> str:
    template, version = row
    return f"{template.kind}-{template.variant}-{version}"


@for_each("template, version", rows(LINES), ids=name)
def test_a_line_is_read_as_it_was_written(template: Template, version: Version) -> None:
    found = read_message(template.format(version, VALUES))
    assert found is not None
    fields = [field for field in template.fields(version) if field != "group"]
    expected = {"instance" if field == "scala_instance" else field: VALUES[field] for field in fields}
    assert (found.kind, found.values) == (template.kind, expected)
    assert found.group == (VALUES["group"] if "group" in template.fields(version) else None)


@pytest.mark.parametrize("client_reason", [None, "any words; client reason: again"])
@for_each("template, version", rows(REASONS), ids=name)
def test_a_reason_is_read_as_it_was_written(template: Template, version: Version, client_reason: str | None) -> None:
    text = template.format(version, VALUES)
    if client_reason is not None and template.kind in WITH_CLIENT_REASON:
        text += f"{CLIENT_REASON}{client_reason}"
    found = read_reason(text)
    fields = template.fields(version)
    assert found.cause == template.kind
    assert found.client_reason == (client_reason if template.kind in WITH_CLIENT_REASON else None)
    assert found.group_instance_id == (VALUES["instance"] if "instance" in fields else None)
    assert found.state == (VALUES["state"] if "state" in fields else None)
    assert found.error == (VALUES["error"] if "error" in fields else None)
    if "several" in fields or "set" in fields:
        assert found.members == ("a", "b")
    elif "member" in fields:
        assert found.member_id == VALUES["member"]


def test_no_version_has_two_lines_for_one_purpose() -> None:
    for version in VERSIONS:
        names = [(each.kind, each.variant) for each in LINES if each.is_in(version)]
        assert len(names) == len(set(names)), version


def test_every_version_has_a_reason_for_every_cause() -> None:
    # Older brokers have no consumer groups that could become classic ones.
    for cause in {each.kind for each in REASONS} - {"downgrade"}:
        for version in VERSIONS:
            if version >= (2, 2):
                assert reason_line(cause, version).is_in(version)


def test_parts_are_there_in_their_versions() -> None:
    template = Template("kind", "<3.0-:Leader|leader> {member}<2.8-3.5: of {group?}<3.0-:!>><-2.0:.>")
    values = {"member": "m", "group": "g"}
    printed = {version: template.format(version, values) for version in ((1, 1), (2, 7), (2, 8), (3, 0), (3, 5))}
    assert list(printed.values()) == ["leader m.", "leader m", "leader m of g", "Leader m of g!", "Leader m"]
    assert template.fields((2, 7)) == ["member"]


@pytest.mark.parametrize(
    ("version", "where"), [((3, 9), "group is over capacity (2)."), ((4, 0), "group g (size 3) is over capacity 2.")]
)
def test_a_group_over_capacity_is_reported_with_its_size_and_the_limit(version: Version, where: str) -> None:
    log = BrokerLog(version, 1, 1, group_max_size=2)
    started = RebalanceStarted(
        group_id="g",
        generation=4,
        previous_state="Stable",
        cause=Cause(cause="over-capacity"),
        initial=False,
        join_timeout_ms=60_000,
        members=["a", "b", "c"],
    )
    (text,) = log.lines(started, 0)
    assert f"Freshly-loaded {where} Rebalancing in order to give a chance for consumers to commit offsets" in text


def test_a_version_that_is_silent_has_no_line() -> None:
    assert line("elected", (2, 7)) is None
    assert line("elected", (2, 8)) is not None
    assert (VERSIONS[0], VERSIONS[-1]) == (OLDEST, NEWEST)
