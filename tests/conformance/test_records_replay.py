"""What Kafka was asked about records, asked here: every field of every answer, and when it came."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.records_replay import Replay, is_offered, recordings


@pytest.mark.parametrize("path", [path for path in recordings() if is_offered(path)], ids=lambda path: path.stem)
def test_answers_are_those_of_kafka(path: Path) -> None:
    assert Replay(path).differences() == []
