"""The settings that a group has of its own: changed, described, kept, and obeyed by the next heartbeat."""

from __future__ import annotations

import pytest

from rejoin.coordinator.core.inputs import TopicsChanged
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.topics import TOPICS_RECORDS
from tests.coordinator.core.driver import GROUP, DrivenNode
from tests.coordinator.core.groups.test_consumer_writes import described, heartbeat
from tests.coordinator.core.topics.test_configs import DELETE, alter, describe, values

KIND = 32
ASSIGNMENT, HEARTBEAT = "consumer.assignment.interval.ms", "consumer.heartbeat.interval.ms"
SESSION = "consumer.session.timeout.ms"
LOCK, RESET = "share.record.lock.duration.ms", "share.auto.offset.reset"
OF_SHARE_GROUPS = {
    "errors.deadletterqueue.copy.record.enable": "false",
    "errors.deadletterqueue.topic.name": "",
    "share.assignment.interval.ms": "1000",
    "share.assignor.offload.enable": "true",
    RESET: "latest",
    "share.delivery.count.limit": "5",
    "share.heartbeat.interval.ms": "5000",
    "share.isolation.level": "read_uncommitted",
    "share.partition.max.record.locks": "2000",
    LOCK: "30000",
    "share.renew.acknowledge.enable": "true",
    "share.session.timeout.ms": "45000",
}
"""The defaults, in the order of their names."""
OF_STREAMS_GROUPS = {
    "streams.acceptable.recovery.lag": "10000",
    "streams.assignment.interval.ms": "1000",
    "streams.assignor.name": "",
    "streams.assignor.offload.enable": "true",
    "streams.heartbeat.interval.ms": "5000",
    "streams.initial.rebalance.delay.ms": "3000",
    "streams.num.standby.replicas": "0",
    "streams.num.warmup.replicas": "2",
    "streams.rack.aware.assignment.tags": "",
    "streams.session.timeout.ms": "45000",
    "streams.task.offset.interval.ms": "60000",
}


def test_a_group_without_settings_of_its_own_has_those_of_the_broker() -> None:
    node = DrivenNode(group_consumer_session_timeout_ms=50_000)
    described_configs = describe(node, "any", kind=KIND).configs
    assert [(each.name, each.value, each.config_source) for each in described_configs] == [
        (ASSIGNMENT, "1000", 5),
        (HEARTBEAT, "5000", 5),
        (SESSION, "50000", 4),
        *((name, value, 5) for name, value in (OF_SHARE_GROUPS | OF_STREAMS_GROUPS).items()),
    ]


def test_the_settings_that_a_group_s_come_from_are_the_broker_s_by_their_names() -> None:
    node = DrivenNode(group_consumer_session_timeout_ms=50_000)
    alter(node, GROUP, SESSION, "60000", kind=KIND)
    session, heartbeats = (describe(node, GROUP, name, kind=KIND).configs[0] for name in (SESSION, HEARTBEAT))
    assert [(each.name, each.value, each.source) for each in session.synonyms] == [
        (SESSION, "60000", 8),
        (f"group.{SESSION}", "50000", 4),
        (f"group.{SESSION}", "45000", 5),
    ]
    assert [(each.name, each.value, each.source) for each in heartbeats.synonyms] == [(f"group.{HEARTBEAT}", "5000", 5)]


def test_a_change_takes_effect_with_the_next_heartbeat_of_a_member_that_has_nothing_new_to_say() -> None:
    node = DrivenNode()
    node.ask(heartbeat("a"), 1)
    assert [node.ask(heartbeat("a", 2), 1).heartbeat_interval_ms for _ in range(2)] == [5_000, 5_000]
    assert alter(node, GROUP, HEARTBEAT, "7000", kind=KIND).error_code is ErrorCode.NONE
    assert alter(node, GROUP, SESSION, "60000", kind=KIND).error_code is ErrorCode.NONE
    assert node.ask(heartbeat("a", 2), 1).heartbeat_interval_ms == 7_000
    node.elapse(59_000)
    assert len(described(node).members) == 1
    node.elapse(1_000)
    assert described(node).members == ()
    (interval,) = describe(node, GROUP, HEARTBEAT, kind=KIND).configs
    assert (interval.value, interval.config_source) == ("7000", 8)
    alter(node, GROUP, HEARTBEAT, None, kind=KIND, operation=DELETE)
    assert values(node, GROUP, HEARTBEAT, SESSION, kind=KIND) == {HEARTBEAT: "5000", SESSION: "60000"}
    assert values(node, "other", SESSION, kind=KIND) == {SESSION: "45000"}


def test_settings_of_groups_are_kept_with_the_topics() -> None:
    node, after = DrivenNode(), DrivenNode()
    alter(node, GROUP, HEARTBEAT, "7000", kind=KIND)
    written = TOPICS_RECORDS.validate_json(TOPICS_RECORDS.dump_json(node.node.topics_records()))
    alter(after, "gone", HEARTBEAT, "8000", kind=KIND)
    after.step(TopicsChanged(((9, written),), 9, whole=True))
    assert after.ask(heartbeat("a"), 1).heartbeat_interval_ms == 7_000
    assert values(after, "gone", HEARTBEAT, kind=KIND) == {HEARTBEAT: "5000"}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (SESSION, "44999", "at least 45000"),
        (SESSION, "60001", "at most 60000"),
        (HEARTBEAT, "4999", "at least 5000"),
        (HEARTBEAT, "15001", "at most 15000"),
        (ASSIGNMENT, "15001", "at most 15000"),
        (ASSIGNMENT, "soon", "a whole number of type INT"),
        ("retention.ms", "1000", "is not a setting of a group"),
        (LOCK, "14999", "at least 15000"),
        (LOCK, "60001", "at most 60000"),
        ("share.delivery.count.limit", "11", "at most 10"),
        ("share.partition.max.record.locks", "99", "at least 100"),
        ("share.session.timeout.ms", "1000", "at least 45000"),
        ("share.isolation.level", "READ_COMMITTED", "expected one of read_committed, read_uncommitted"),
        ("share.renew.acknowledge.enable", "yes", "true or false"),
        ("streams.session.timeout.ms", "60001", "at most 60000"),
        ("streams.num.standby.replicas", "3", "at most 2"),
        ("streams.initial.rebalance.delay.ms", "-1", "at least 0"),
        ("streams.task.offset.interval.ms", "14999", "at least 15000"),
        ("streams.num.warmup.replicas", "21", "at most 20"),
        ("streams.acceptable.recovery.lag", "-1", "at least 0"),
        ("streams.rack.aware.assignment.tags", "zone,zone", "expected each tag once"),
        ("streams.assignor.name", "uniform", "expected one of"),
        (RESET, "Latest", "expected earliest, latest or by_duration:PnDTnHnMnS"),
        (RESET, "by_duration", "by_duration:PnDTnHnMnS"),
        (RESET, "by_duration:-PT5S", "by_duration:PnDTnHnMnS"),
    ],
)
def test_what_no_group_can_have_is_refused(name: str, value: str, says: str) -> None:
    node = DrivenNode()
    refused = alter(node, GROUP, name, value, kind=KIND)
    assert refused.error_code is ErrorCode.INVALID_CONFIG
    assert says in refused.error_message
    assert values(node, GROUP, kind=KIND) == {
        ASSIGNMENT: "1000",
        HEARTBEAT: "5000",
        SESSION: "45000",
        **OF_SHARE_GROUPS,
        **OF_STREAMS_GROUPS,
    }


@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:P1DT2H", "by_duration:PT0.5S"])
def test_a_share_group_begins_by_a_policy(policy: str) -> None:
    node = DrivenNode()
    assert alter(node, GROUP, RESET, policy, kind=KIND).error_code is ErrorCode.NONE
    assert values(node, GROUP, RESET, kind=KIND) == {RESET: policy}


def test_a_session_is_longer_than_the_interval_of_its_heartbeats() -> None:
    node = DrivenNode(group_consumer_max_heartbeat_interval_ms=50_000)
    refused = alter(node, GROUP, HEARTBEAT, "45000", kind=KIND)
    assert refused.error_code is ErrorCode.INVALID_CONFIG
    assert "must be more than" in refused.error_message


def test_a_list_operation_an_empty_name_and_a_denial_are_refused() -> None:
    node = DrivenNode(emulator_deny=("User:*:ALTER_CONFIGS:group=g", "User:*:DESCRIBE_CONFIGS:group=g"))
    assert alter(node, GROUP, SESSION, "50000", kind=KIND).error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert describe(node, GROUP, kind=KIND).error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert alter(node, "", SESSION, "50000", kind=KIND).error_code is ErrorCode.INVALID_REQUEST
    assert describe(node, "", kind=KIND).error_code is ErrorCode.INVALID_REQUEST
    assert alter(node, "h", SESSION, "1", kind=KIND, operation=2).error_code is ErrorCode.INVALID_CONFIG
