"""Paths of free clients on which Rejoin once differed from Kafka, as Kafka's own coordinator answered them."""

from __future__ import annotations

import pytest

from conformance.explored.recording import RecordedPath, difference, recorded_paths


@pytest.mark.parametrize("path", recorded_paths(), ids=lambda path: f"{path.world}: {' > '.join(path.labels)}")
def test_a_recorded_path_is_answered_as_by_kafka(path: RecordedPath) -> None:
    assert difference(path) is None
