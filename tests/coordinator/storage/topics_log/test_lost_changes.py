"""A log of topics that has lost a change: a node does not start, since it would delete what it knows no topic of."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.coordinator.storage.topics_log.base import as_text, changed, whole_as_text
from rejoin.protocol.records.topics import TopicData, TopicRecord

TOPICS = tuple(
    TopicRecord(data=TopicData(name=name, topic_id=name[0] * 22, records_per_second=None))
    for name in ("orders", "payments", "refunds")
)


def rows(*versions: int) -> list[tuple[int, str]]:
    return [(version, as_text((TOPICS[version % 3],))) for version in versions]


@pytest.mark.parametrize(
    ("after", "found", "missing", "follows"),
    [(0, (1, 3), 2, 3), (0, (2, 3), 1, 2), (4, (6,), 5, 6), (4, (5, 6, 9), 7, 9)],
)
def test_a_change_that_is_missing_is_noticed(after: int, found: tuple[int, ...], missing: int, follows: int) -> None:
    with pytest.raises(ValueError, match=f"change {missing} of the topics is missing; {follows} follows"):
        changed(after, rows(*found))


def test_a_row_that_has_everything_stands_for_those_before() -> None:
    whole = (7, whole_as_text(TOPICS))
    assert changed(0, [whole, *rows(8, 9)]).version == 9
    assert changed(4, [whole]).changes == ((7, TOPICS),)
    with pytest.raises(ValueError, match="change 8 of the topics is missing; 9 follows"):
        changed(0, [whole, *rows(9)])


async def test_a_node_does_not_start_with_half_of_its_topics(tmp_path: Path) -> None:
    def node() -> App:
        topics = tuple(InitialTopic(name, 1, None) for name in ("orders", "payments", "refunds"))
        return App(Options(settings=Settings(), data=tmp_path, topics=topics, listen=False))

    async with node():
        pass
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        (newest,) = connection.execute("SELECT max(version) FROM topics_log").fetchone()
        kept = connection.execute("SELECT count(*) FROM data_partitions").fetchone()
        assert connection.execute("DELETE FROM topics_log WHERE version = ?", (newest - 1,)).rowcount == 1
    connection.close()
    missing = f"the topics cannot be read from the store: change {newest - 1} of the topics is missing"
    with pytest.raises(StoreProblem, match=missing):
        async with node():
            pass
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        assert connection.execute("SELECT count(*) FROM data_partitions").fetchone() == kept
    connection.close()
