"""Kafka's names and defaults, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rejoin.client.config import ConsumerConfig

KAFKA_DEFAULTS = {
    "session.timeout.ms": 45_000,
    "heartbeat.interval.ms": 3_000,
    "max.poll.interval.ms": 300_000,
    "max.poll.records": 500,
    "partition.assignment.strategy": ("range", "cooperative-sticky"),
    "enable.auto.commit": True,
    "auto.commit.interval.ms": 5_000,
    "auto.offset.reset": "latest",
    "metadata.max.age.ms": 300_000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
    "request.timeout.ms": 30_000,
    "default.api.timeout.ms": 60_000,
    "fetch.max.wait.ms": 500,
    "group.instance.id": None,
    "exclude.internal.topics": True,
    "allow.auto.create.topics": True,
    "isolation.level": "read_uncommitted",
    "client.rack": "",
    "group.protocol": "classic",
    "internal.leave.group.on.close": True,
}


def test_defaults_are_kafkas() -> None:
    given = ConsumerConfig().model_dump(by_alias=True)
    assert {name: given[name] for name in KAFKA_DEFAULTS} == KAFKA_DEFAULTS


def test_every_setting_is_explained_in_one_sentence() -> None:
    for name, info in ConsumerConfig.model_fields.items():
        assert info.description, name
        assert info.description.endswith("."), name


def test_names_come_with_dots_or_underscores() -> None:
    assert ConsumerConfig.model_validate({"group.id": "g", "session.timeout.ms": 10_000}) == ConsumerConfig(
        group_id="g", session_timeout_ms=10_000
    )


def test_lists_may_be_text_with_commas() -> None:
    config = ConsumerConfig.model_validate({"bootstrap.servers": "a:1, b:2", "partition.assignment.strategy": "range"})
    assert config.bootstrap_servers == ("a:1", "b:2")
    assert config.partition_assignment_strategy == ("range",)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"heartbeat.interval.ms": 45_000}, "heartbeat.interval.ms must be lower than session.timeout.ms"),
        ({"group.id": "g", "group.instance.id": ""}, "1 to 249"),
        ({"group.id": "g", "group.instance.id": ".."}, "1 to 249"),
        ({"group.id": "g", "group.instance.id": "a b"}, "1 to 249"),
        ({"group.id": "g", "group.instance.id": "x" * 250}, "1 to 249"),
        ({"group.instance.id": "i"}, "without group.id"),
        ({"auto.offset.reset": "middle"}, "auto.offset.reset"),
        ({"session.timeout": 1}, "session.timeout"),
        ({"max.poll.records": 0}, "max.poll.records"),
        ({"group.protocol": "streams"}, "group.protocol"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ConsumerConfig.model_validate(settings)
