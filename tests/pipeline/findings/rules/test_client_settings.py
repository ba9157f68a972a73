"""Advice names settings as the client at hand does."""

from __future__ import annotations

import pytest

from rejoin.pipeline.findings.clients.settings import LIBRARIES, NAMES, in_words_of, name_for


@pytest.mark.parametrize(
    ("library", "text", "said"),
    [
        ("aiokafka", "Raise session.timeout.ms.", "Raise session_timeout_ms."),
        ("KafkaJS", "Raise session.timeout.ms above 30 s", "Raise sessionTimeout above 30 s"),
        ("librdkafka", "a smaller max.poll.records", "a smaller batch (librdkafka has no max.poll.records)"),
        ("sarama", "set group.instance.id,", "set Consumer.Group.InstanceId,"),
        # A broker's setting keeps its name.
        ("aiokafka", "group.min.session.timeout.ms must allow it", "group.min.session.timeout.ms must allow it"),
        ("aiokafka", "group.consumer.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ],
)
def test_a_setting_is_called_what_the_library_calls_it(library: str, text: str, said: str) -> None:
    assert in_words_of(text, library) == said


def test_each_setting_has_an_entry_for_each_library() -> None:
    assert {len(names) for names in NAMES.values()} == {len(LIBRARIES)}


def test_a_library_that_is_not_known_keeps_the_names_of_java() -> None:
    assert name_for("session.timeout.ms", "another") == "session.timeout.ms"
