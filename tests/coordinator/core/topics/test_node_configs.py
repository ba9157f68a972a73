"""DescribeConfigs of nodes, and of what has settings in Kafka and none here. Compared with Apache Kafka 4.4.0."""

from __future__ import annotations

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Broker, ClusterSeen
from rejoin.coordinator.core.topics.broker_configs import broker_configs
from rejoin.coordinator.core.topics.brokers.dynamic_configs import DynamicConfigs
from rejoin.coordinator.core.topics.node_configs import of_node
from rejoin.protocol.brokers.listener_address import ListenerAddress
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.describe_log_dirs import DescribeLogDirsRequest
from tests.coordinator.core.driver import PARTITION, DrivenNode
from tests.coordinator.core.topics.test_configs import describe, values

NODE, LOGGERS, CLIENT_METRICS = 4, 8, 16
ADVERTISED, LISTENERS = "advertised.listeners", "listeners"
PASSWORD = 9
OTHER_VALUES = {
    *("auto.leader.rebalance.enable", "broker.id", "default.replication.factor", "group.coordinator.append.linger.ms"),
    *("group.coordinator.threads", "listeners", "log.dirs", "node.id"),
    *("process.roles", "sasl.enabled.mechanisms", "ssl.keystore.type", "ssl.truststore.type"),
}
BOUND = (ListenerAddress("PLAINTEXT", "127.0.0.1", 9092),)


@pytest.mark.parametrize(
    ("name", "kind", "synonyms"),
    [
        ("node.id", 3, [("1", 4)]),
        ("process.roles", 7, [("broker,controller", 4)]),
        ("broker.rack", 2, []),
        ("log.dirs", 7, [("/rejoin", 4)]),
        ("log.retention.hours", 3, [("168", 5)]),
        ("log.retention.minutes", 3, []),
        ("log.retention.ms", 5, []),
        ("log.roll.hours", 3, [("168", 5)]),
        ("log.roll.ms", 5, []),
        ("log.cleaner.enable", 1, [("true", 5)]),
        ("log.cleaner.backoff.ms", 5, [("15000", 5)]),
        ("log.cleaner.min.cleanable.ratio", 6, [("0.5", 5)]),
        ("delete.topic.enable", 1, [("true", 5)]),
        ("auto.leader.rebalance.enable", 1, [("false", 4), ("true", 5)]),
        ("max.request.partition.size.limit", 3, [("2000", 5)]),
        ("remote.log.storage.system.enable", 1, [("false", 5)]),
        ("transaction.two.phase.commit.enable", 1, [("false", 5)]),
        ("connections.max.reauth.ms", 5, [("0", 5)]),
        ("group.consumer.assignors", 7, [("uniform,range", 5)]),
        ("offsets.topic.replication.factor", 4, [("3", 5)]),
        ("replica.lag.time.max.ms", 5, [("30000", 5)]),
        ("ssl.keystore.location", 2, []),
        ("ssl.key.password", 9, []),
    ],
)
def test_a_node_describes_what_it_is_and_does(name: str, kind: int, synonyms: list[tuple[str, int]]) -> None:
    (found,) = describe(DrivenNode(), "1", name, kind=NODE).configs
    assert found.config_type == kind
    assert [(each.name, each.value, each.source) for each in found.synonyms] == [(name, *each) for each in synonyms]
    assert (found.value, found.config_source) == (synonyms[0] if synonyms else (None, 5))


def test_a_node_lists_all_settings_of_kafka_with_its_types_flags_and_defaults() -> None:
    listed = {each.name: each for each in describe(DrivenNode(), "1", kind=NODE).configs}
    assert len(broker_configs()) == 350
    own = listed.keys() - broker_configs().keys()
    assert {name for name in own if not name.startswith("emulator.")} == {
        "ssl.certificate.location",
        "ssl.key.location",
        # In Kafka these two are the authorizer's own.
        "super.users",
        "allow.everyone.if.no.acl.found",
        # Kafka does not show these two.
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
    }
    for name, (kind, read_only, default) in broker_configs().items():
        found = listed[name]
        assert (found.config_type, found.read_only, found.is_sensitive) == (kind, read_only, kind == PASSWORD), name
        defaults = [each.value for each in found.synonyms if each.source == 5]
        assert defaults == ([] if default is None else [default]), name
        assert found.documentation is None
    other = {each.name for each in of_node(DynamicConfigs(Settings()), None) if each.source == 4}
    assert other == OTHER_VALUES, "values that are not Kafka's defaults"


def test_a_setting_of_a_node_is_set_where_it_is_no_default() -> None:
    driven = DrivenNode(num_partitions=7, broker_id=1)
    (found,) = describe(driven, "1", "num.partitions", kind=NODE).configs
    assert [(each.value, each.source) for each in found.synonyms] == [("7", 4), ("1", 5)]
    assert not describe(driven, "1", "group.consumer.regex.refresh.interval.ms", kind=NODE).configs


def test_a_retention_that_is_set_wins_over_hours() -> None:
    driven = DrivenNode(log_retention_ms=1_000)
    (found,) = describe(driven, "1", "log.retention.ms", kind=NODE).configs
    assert [(each.name, each.value, each.source) for each in found.synonyms] == [
        ("log.retention.ms", "1000", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert values(driven, "1", "log.retention.hours", kind=NODE) == {"log.retention.hours": "168"}


def test_the_directory_of_logs_is_the_one_that_is_described() -> None:
    driven = DrivenNode()
    (result,) = driven.ask(DescribeLogDirsRequest(topics=None), 5).results
    assert values(driven, "1", "log.dirs", kind=NODE) == {"log.dirs": result.log_dir}


def test_listeners_are_those_that_were_bound_unless_a_setting_names_them() -> None:
    seen = ClusterSeen((Broker(1, "one", 1, endpoints=BOUND),), {PARTITION: 1})
    driven = DrivenNode()
    driven.step(seen)
    address = "PLAINTEXT://127.0.0.1:9092"
    assert values(driven, "1", ADVERTISED, LISTENERS, kind=NODE) == {ADVERTISED: address, LISTENERS: address}
    advertised, listeners = describe(driven, "1", ADVERTISED, LISTENERS, kind=NODE).configs
    assert (advertised.read_only, listeners.read_only) == (True, False)
    assert [(each.value, each.source) for each in advertised.synonyms] == [(address, 4)], "it has no default"
    assert [(each.value, each.source) for each in listeners.synonyms] == [(address, 4), ("PLAINTEXT://:9092", 5)]
    given = "PLAINTEXT://0.0.0.0:9092"
    driven = DrivenNode(listeners=given)
    driven.step(seen)
    assert values(driven, "1", ADVERTISED, LISTENERS, kind=NODE) == {ADVERTISED: address, LISTENERS: given}


def test_a_node_has_loggers_with_their_levels() -> None:
    found = describe(DrivenNode(), "1", "root", kind=LOGGERS)
    assert (found.error_code, found.resource_type, found.resource_name) == (ErrorCode.NONE, 8, "1")
    assert [(each.name, each.value, each.config_source) for each in found.configs] == [("root", "INFO", 6)]


def test_a_subscription_to_client_metrics_has_the_defaults() -> None:
    found = describe(DrivenNode(), "any", kind=CLIENT_METRICS)
    assert found.error_code is ErrorCode.NONE
    assert [(each.name, each.value, each.config_source, each.config_type) for each in found.configs] == [
        ("interval.ms", "300000", 5, 3),
        ("match", "", 5, 7),
        ("metrics", "", 5, 7),
    ]
    assert not any(each.read_only or each.synonyms for each in found.configs)


@pytest.mark.parametrize(("kind", "name"), [(LOGGERS, "9"), (LOGGERS, "x"), (LOGGERS, ""), (CLIENT_METRICS, "")])
def test_a_name_that_cannot_be_is_refused(kind: int, name: str) -> None:
    assert describe(DrivenNode(), name, kind=kind).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("kind", [NODE, LOGGERS, CLIENT_METRICS])
def test_settings_of_the_cluster_need_the_right(kind: int) -> None:
    driven = DrivenNode(emulator_deny=("User:ANONYMOUS:DESCRIBE_CONFIGS:cluster=kafka-cluster",))
    assert describe(driven, "1", kind=kind).error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
