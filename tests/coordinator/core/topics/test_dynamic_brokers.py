"""Settings that a running broker was given: they take effect at once, and are read again from the log."""

from __future__ import annotations

from rejoin.coordinator.core.groups.consumer.group_settings import GroupSettings
from rejoin.coordinator.core.inputs import TopicsChanged
from rejoin.coordinator.core.topics.brokers.changes import MOST_SETTINGS
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from rejoin.protocol.records.topics import TOPICS_RECORDS
from tests.coordinator.core.driver import TOPIC, DrivenNode
from tests.coordinator.core.partitions.real_topic import RealTopic, batch
from tests.coordinator.core.topics.test_configs import DELETE, alter, create, describe

BROKER, GROUP = 4, 32
MAX_BYTES, RETENTION, ASSIGNMENT = "message.max.bytes", "log.retention.ms", "group.consumer.assignment.interval.ms"
LARGE = batch("x" * 500)


def give(driven: DrivenNode, name: str, value: str, broker: str = "1") -> None:
    answer = alter(driven, broker, name, value, kind=BROKER)
    assert answer.error_code is ErrorCode.NONE, answer.error_message


def take_back(driven: DrivenNode, name: str, broker: str = "1") -> None:
    assert alter(driven, broker, name, None, kind=BROKER, operation=DELETE).error_code is ErrorCode.NONE


def sources(driven: DrivenNode, resource: str, name: str, kind: int) -> list[tuple[str, str | None, int]]:
    (found,) = describe(driven, resource, name, kind=kind).configs
    return [(each.name, each.value, each.source) for each in found.synonyms]


def test_a_topic_obeys_the_default_of_its_broker_as_it_is_now_unless_it_has_its_own() -> None:
    driven = RealTopic(broker_id=1)
    create(driven, "own", max_message_bytes="2000")
    assert driven.produce(LARGE).error_code is ErrorCode.NONE
    give(driven, MAX_BYTES, "400", "")
    assert driven.produce(LARGE).error_code is ErrorCode.MESSAGE_TOO_LARGE
    assert driven.produce(LARGE, topic="own").error_code is ErrorCode.NONE
    create(driven, "later")
    assert driven.produce(LARGE, topic="later").error_code is ErrorCode.MESSAGE_TOO_LARGE
    give(driven, MAX_BYTES, "1000")
    assert driven.produce(LARGE).error_code is ErrorCode.NONE, "the broker's own is nearer"
    take_back(driven, MAX_BYTES)
    assert driven.produce(LARGE).error_code is ErrorCode.MESSAGE_TOO_LARGE
    take_back(driven, MAX_BYTES, "")
    assert driven.produce(LARGE, topic="later").error_code is ErrorCode.NONE


def test_any_negative_retention_is_for_ever() -> None:
    driven = RealTopic(broker_id=1)
    give(driven, RETENTION, "-9")
    assert driven.partition().config.retention_ms == -1


def test_groups_obey_the_interval_of_assignments_as_it_is_now() -> None:
    driven = DrivenNode(broker_id=1)
    of_groups = GroupSettings(driven.node._ctx, {"own": {"consumer.assignment.interval.ms": "7"}})
    give(driven, ASSIGNMENT, "5000", "")
    assert of_groups.assignment_interval_ms("any") == 5_000
    assert of_groups.assignment_interval_ms("own") == 7
    assert sources(driven, "any", "consumer.assignment.interval.ms", GROUP) == [
        (ASSIGNMENT, "5000", 3),
        (ASSIGNMENT, "1000", 5),
    ]


def test_a_setting_of_the_start_stands_between_what_was_given_and_the_default() -> None:
    driven = DrivenNode(broker_id=1, message_max_bytes=700)
    give(driven, MAX_BYTES, "400")
    expected = [(MAX_BYTES, "400", 2), (MAX_BYTES, "700", 4), (MAX_BYTES, "1048588", 5)]
    assert sources(driven, "1", MAX_BYTES, BROKER) == expected
    assert sources(driven, TOPIC, "max.message.bytes", 2) == expected
    give(driven, "num.io.threads", "10")
    assert sources(driven, "1", "num.io.threads", BROKER) == [("num.io.threads", "10", 2), ("num.io.threads", "8", 5)]


def test_what_was_given_is_read_from_the_log_by_each_node_and_counts_for_the_named_one() -> None:
    first = DrivenNode(broker_id=1)
    give(first, MAX_BYTES, "400")
    give(first, "max.connections", "7", "")
    records = TOPICS_RECORDS.validate_json(TOPICS_RECORDS.dump_json(first.node.topics_records()))
    for broker, largest in ((1, 400), (2, 1_048_588)):
        node = DrivenNode(broker_id=broker)
        node.step(TopicsChanged(((1, records),), 1, whole=True))
        assert node.node.effective_settings.message_max_bytes == largest
        assert node.node.effective_settings.max_connections == 7
        node.step(TopicsChanged((), 2, whole=True))
        assert node.node.effective_settings == node.node.settings, "the log is another"


def test_alter_configs_takes_back_what_it_does_not_name() -> None:
    driven = DrivenNode(broker_id=1)
    give(driven, MAX_BYTES, "400")
    configs = (AlterableConfig(name="max.connections", value="7"),)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=configs)
    driven.ask(AlterConfigsRequest(resources=(resource,), validate_only=False), 2)
    changed = driven.node.effective_settings
    assert (changed.max_connections, changed.message_max_bytes) == (7, 1_048_588)


def test_so_many_settings_are_kept_and_no_more() -> None:
    driven = DrivenNode(broker_id=1)
    for number in range(MOST_SETTINGS):
        give(driven, f"unknown.{number}", "1")
    assert alter(driven, "1", "one.more", "1", kind=BROKER).error_code is ErrorCode.POLICY_VIOLATION
    give(driven, "unknown.0", "2")
    take_back(driven, "unknown.0")
    give(driven, "one.more", "1")
