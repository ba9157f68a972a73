"""Offsets that kafka-consumer-groups.sh and exporters wrote down, and what is found in them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rejoin.client.admin.admin import MemberDescription
from rejoin.client.commands.groups import tables
from rejoin.pipeline.commands.parser import why
from rejoin.pipeline.kafka_cluster.offset_files import BadOffsets, snapshots_of_files
from rejoin.pipeline.kafka_cluster.snapshots import PartitionOffsets
from rejoin.protocol.types import TopicPartition
from tests.pipeline.kafka_cluster.snapshots import START

P0, P1, P2 = (TopicPartition("orders", index) for index in range(3))


def described(second: int, *, epochs: bool = False) -> str:
    """What the tool prints: a reads on, b stands, and one partition has no owner."""
    a, b = (MemberDescription(f"{name}-1-uuid", None, name, "/10.0.0.1", ()) for name in "ab")
    rows = [
        tables.OffsetRow("orders-app", P0, second, second + 3, a),
        tables.OffsetRow("orders-app", P1, 7, 50 + second, b),
        tables.OffsetRow("orders-app", P2, None, 9, None),
    ]
    return tables.offsets(rows, epochs=epochs)


def scrape(second: int) -> str:
    labels = 'consumergroup="orders-app",partition="{}",topic="orders"'
    return "\n".join(
        [
            "# HELP kafka_consumergroup_lag Lag",
            'kafka_consumergroup_members{consumergroup="orders-app"} 2',
            f"kafka_consumergroup_current_offset{{{labels.format(0)}}} {second}",
            f"kafka_consumergroup_lag{{{labels.format(0)}}} 3",
            f"kafka_consumergroup_current_offset{{{labels.format(1)}}} 7",
            f'kafka_topic_partition_current_offset{{partition="1",topic="orders"}} {50 + second} {START}',
            "kafka_brokers 3",
        ]
    )


def instant(second: int) -> str:
    return f"{datetime.fromtimestamp(START / 1_000 + second, UTC):%Y-%m-%dT%H:%M:%S+00:00}"


def written(folder: Path, text: str) -> Path:
    file = folder / "offsets.txt"
    file.write_text(text)
    return file


@pytest.mark.parametrize("epochs", [False, True])
def test_a_table_of_the_tool(epochs: bool, tmp_path: Path) -> None:
    (snapshot,) = snapshots_of_files([written(tmp_path, f"{instant(5)}\n{described(5, epochs=epochs)}")])
    assert (snapshot.at_ms, snapshot.group_id) == (START + 5_000, "orders-app")
    assert {member.client_id: member.partitions for member in snapshot.members} == {"a": (P0,), "b": (P1,)}
    assert snapshot.offsets == {
        P0: PartitionOffsets(5, 8),
        P1: PartitionOffsets(7, 55),
        P2: PartitionOffsets(None, 9),
    }


def test_a_table_without_an_instant_is_of_when_the_file_was_changed(tmp_path: Path) -> None:
    file = written(tmp_path, described(0))
    os.utime(file, (START / 1_000, START / 1_000))
    assert [snapshot.at_ms for snapshot in snapshots_of_files([file])] == [START]


def test_a_scrape(tmp_path: Path) -> None:
    (snapshot,) = snapshots_of_files([written(tmp_path, f"# {instant(5)}\n{scrape(5)}")])
    assert snapshot.offsets == {P0: PartitionOffsets(5, 8), P1: PartitionOffsets(7, 55)}
    assert sorted(member.name for member in snapshot.members) == ["the owner of orders-0", "the owner of orders-1"]


@pytest.mark.parametrize(("make", "owner"), [(described, "b"), (scrape, "the owner of orders-1")])
def test_owned_but_not_moving_is_found_in_them(
    make: object, owner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    written(tmp_path, "\n".join(f"{instant(second)}\n{make(second)}" for second in range(0, 121, 10)))
    assert why("orders-app", tmp_path) == 0
    assert f"high: {owner} owns 1 partition and reads none of it: lag 163" in " ".join(capsys.readouterr().out.split())


def test_files_are_put_in_order(tmp_path: Path) -> None:
    for number, second in enumerate((20, 0, 10)):
        (tmp_path / f"{number}.txt").write_text(f"{instant(second)}\n{described(second)}")
    snapshots = snapshots_of_files(sorted(tmp_path.iterdir()))
    assert [snapshot.at_ms - START for snapshot in snapshots] == [0, 10_000, 20_000]


def test_several_tables_without_instants_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, f"{described(0)}\n{described(1)}")
    with pytest.raises(BadOffsets, match="a second time; expected outputs of kafka-consumer-groups"):
        snapshots_of_files([file])
    assert why("orders-app", tmp_path) == 2
    assert "date -Is" in capsys.readouterr().err


def test_lines_of_no_table_are_passed_over(tmp_path: Path) -> None:
    noise = "Consumer group 'x' has no active members.\nkafka_consumergroup_lag{half\n\x00\n"
    assert snapshots_of_files([written(tmp_path, f"{instant(0)}\n{noise}{described(0)}")]) != []
