"""Advice names settings as the client at hand does, in its units and with the defaults of its version."""

from __future__ import annotations

import pytest

from rejoin.pipeline.findings.clients import table
from rejoin.pipeline.findings.clients.libraries import client_of
from rejoin.pipeline.findings.clients.settings import (
    SMALLER_BATCHES,
    by_default,
    default_in,
    has_setting,
    in_words_of,
    name_for,
    value_for,
)
from rejoin.pipeline.findings.clients.table import CLIENTS, SETTINGS, TABLE
from rejoin.pipeline.findings.observed_rows import MemberSession
from tests.pipeline.findings.test_findings_rules import session


@pytest.mark.parametrize(
    ("clients", "text", "said"),
    [
        (["aiokafka"], "Raise session.timeout.ms.", "Raise session_timeout_ms."),
        (["aiokafka"], "lower rebalance.timeout.ms", "lower rebalance_timeout_ms"),
        (["KafkaJS"], "Raise session.timeout.ms above 30 s", "Raise sessionTimeout above 30 s"),
        (["librdkafka"], f"or {SMALLER_BATCHES}", "or fewer messages in one consume call"),
        (["kafka-python"], f"or {SMALLER_BATCHES}", "or a smaller max_poll_records"),
        (["sarama"], "set group.instance.id,", "set Consumer.Group.InstanceId,"),
        (["Java"], "lower rebalance.timeout.ms", "lower max.poll.interval.ms"),
        (["Connect worker"], "lower rebalance.timeout.ms", "lower rebalance.timeout.ms"),
        (["Kafka Streams"], "a group.id of its own", "an application.id of its own"),
        # A name in brackets goes where there is none.
        (["brod"], "automatic commits (enable.auto.commit) of", "automatic commits of"),
        (["KafkaJS"], "automatic commits (enable.auto.commit) of", "automatic commits (autoCommit) of"),
        (["Connect sink"], "raise session.timeout.ms", "raise consumer.override.session.timeout.ms"),
        (["SmallRye"], "raise session.timeout.ms", "raise mp.messaging.incoming.CHANNEL.session.timeout.ms"),
        (["Spring Boot"], SMALLER_BATCHES, "a smaller spring.kafka.consumer.max-poll-records"),
        (["KafkaJS"], "Work in onPartitionsRevoked.", "Work in the handler."),
        # A broker's setting keeps its name.
        (["aiokafka"], "group.min.session.timeout.ms must allow it", "group.min.session.timeout.ms must allow it"),
        (["aiokafka"], "group.consumer.session.timeout.ms", "group.consumer.session.timeout.ms"),
        # Several clients: the first mention has all names.
        (
            ["Java", "kafka-python"],
            "Raise session.timeout.ms; session.timeout.ms is short.",
            "Raise session.timeout.ms (kafka-python: session_timeout_ms); session.timeout.ms is short.",
        ),
        (["Java", "librdkafka"], "Raise session.timeout.ms.", "Raise session.timeout.ms."),
    ],
)
def test_a_setting_is_called_what_the_client_calls_it(clients: list[str], text: str, said: str) -> None:
    assert in_words_of(text, clients) == said


@pytest.mark.parametrize(
    ("client", "ms", "said"),
    [
        ("Java", 60_000, "60000 (60 s)"),
        ("KafkaJS", 60_000, "60000 (60 s)"),
        ("brod", 60_000, "60 (seconds)"),
        ("ruby-kafka", 1_500, "1.5 (seconds)"),
        ("sarama", 60_000, "60*time.Second"),
        ("franz-go", 500, "500*time.Millisecond"),
    ],
)
def test_a_value_is_in_the_unit_of_the_setting(client: str, ms: int, said: str) -> None:
    assert value_for(table.SESSION_TIMEOUT, [client], ms) == said


@pytest.mark.parametrize(
    ("client", "version", "said"),
    [
        ("Java", None, "45 s by default since 3.0, 10 s before"),
        ("Java", "2.8.1", "10 s by default in 2.8.1"),
        ("librdkafka", "1.6.2", "10 s by default in 1.6.2"),
        ("librdkafka", "1.7.0", "45 s by default in 1.7.0"),
        ("kafka-python", "2.3.0", "10 s by default in 2.3.0"),
        ("brod", None, "30 s by default since 3.6, 10 s before"),
        ("sarama", None, "10 s by default"),
    ],
)
def test_a_default_is_that_of_the_version(client: str, version: str | None, said: str) -> None:
    assert by_default(table.SESSION_TIMEOUT, client, version) == said


def test_a_version_before_a_setting_does_not_have_it() -> None:
    assert has_setting("kafka-python", table.INSTANCE_ID)
    assert not has_setting("kafka-python", table.INSTANCE_ID, "2.2.20")
    assert has_setting("kafka-python", table.INSTANCE_ID, "2.3.0")
    assert default_in(TABLE["librdkafka"][table.POLL_INTERVAL], "0.11.6") is None


def test_the_table_is_complete_in_itself() -> None:
    lengths = {table.SESSION_TIMEOUT, table.HEARTBEAT_INTERVAL, table.POLL_INTERVAL, table.REBALANCE_TIMEOUT}
    lengths |= {table.COMMIT_INTERVAL, table.METADATA_AGE}
    for client, settings in TABLE.items():
        # Each has a session, sends heartbeats and joins; of a client without, no advice could be given.
        assert {table.SESSION_TIMEOUT, table.HEARTBEAT_INTERVAL, table.REBALANCE_TIMEOUT} <= set(settings), client
        assert set(settings) <= set(SETTINGS), client
        for key, setting in settings.items():
            assert (setting.unit != table.PLAIN) == (key in lengths), (client, key)
            versions = list(setting.defaults)
            assert versions == sorted(versions, key=lambda each: [int(part) for part in each.split(".") if part])
        # A client that cannot bound the records of a poll says what else makes the work between two polls less.
        assert table.POLL_RECORDS in settings or client in table.BATCHES, client
    assert set(table.REVOKED) | set(table.POLL) | set(table.BATCHES) | set(table.COOPERATIVE_ASSIGNOR) <= set(CLIENTS)


def test_the_unit_fits_the_name() -> None:
    """``…ms`` is in ms and ``…seconds`` in seconds; Go has durations."""
    for client, settings in TABLE.items():
        for setting in settings.values():
            if setting.unit != table.PLAIN and setting.name.endswith(("ms", "_ms")):
                assert setting.unit == table.MS, (client, setting)
            if setting.name.endswith("_seconds"):
                assert setting.unit == table.S, (client, setting)
        if client in ("franz-go", "sarama"):
            assert {each.unit for each in settings.values()} == {table.DURATION, table.PLAIN}


def test_a_setting_that_is_none_of_consumers_keeps_its_name() -> None:
    assert name_for("offsets.retention.minutes", ["KafkaJS"]) == "offsets.retention.minutes"
    assert name_for(table.INSTANCE_ID, ["KafkaJS"]) is None


@pytest.mark.parametrize(
    ("about", "client"),
    [
        ({"client": "app-1-StreamThread-2-consumer"}, "Kafka Streams"),
        ({"client": "connector-consumer-sink-0"}, "Connect sink"),
        ({"client": "connect-1"}, "Connect worker"),
        ({"client": "worker", "protocols": ["sessioned", "compatible"]}, "Connect worker"),
        ({"client": "connector"}, None),
        ({"client": "mailer", "protocols": ["RoundRobinAssigner"]}, "KafkaJS"),
        ({"client": "mailer", "protocols": ["roundrobin_v2"]}, "brod"),
        ({"client": "kafkajs"}, "KafkaJS"),
        ({"client": "sarama"}, "sarama"),
        ({"client": "kgo"}, "franz-go"),
        ({"client": "racecar"}, "racecar"),
        ({"client": "mailer", "software": "sarama 1.43.2"}, "sarama"),
        ({"client": "mailer", "software": "apache-kafka-java 3.9.0"}, "Java"),
        ({"client": "mailer"}, None),
    ],
)
def test_ids_and_the_request_log_show_the_client(about: dict[str, object], client: str | None) -> None:
    row = session(f"{about['client']}-0b1c", 0, None, "open", **about)  # type: ignore[arg-type]
    names = MemberSession.__dataclass_fields__
    assert client_of(MemberSession(**{name: row.get(name) for name in names})) == client  # type: ignore[arg-type]
