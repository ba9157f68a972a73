"""A sample of the recordings against a node over real HTTP: the same answers as through the core."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.conformance.golden import PATHS, differing, name_of, recording, unexplained
from tests.conformance.http_replay import OverHttp

EVERY: Final = 6
NAMES_ITS_PORT: Final = {"DescribeCluster", "FindCoordinator", "Metadata"}
"""Answers with the port, which differs each time."""


def fit(path: Path) -> bool:
    played = recording(path)
    needs_more = played.brokers > 1 or played.deny or "message.max.bytes" in played.settings
    return not needs_more and not any(asked.api in NAMES_ITS_PORT | {"EndTxn"} for asked in played.exchanges)


SAMPLE: Final = [path for path in PATHS if fit(path)][::EVERY]


@pytest.mark.parametrize("path", SAMPLE, ids=name_of)
async def test_the_service_answers_as_kafka_did(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = recording(path)
    assert unexplained(differing(played, await OverHttp(played, monkeypatch).play())) == []


def test_the_sample_has_something_of_everything() -> None:
    assert len(SAMPLE) >= 40
    assert {path.parent.name for path in SAMPLE} >= {"joining", "syncing", "leaving", "static", "commits", "timeouts"}
