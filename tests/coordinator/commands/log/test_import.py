"""``rejoin log export`` and ``import``: a copy is a copy, and what cannot be one is refused."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from rejoin.coordinator.commands.log.command import dump, export, import_, verify
from rejoin.coordinator.core.runtime.shard import ShardState
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from tests.coordinator.commands.log.logs import ONE_RECORD, RECORDS, Run, asked, filled, read
from tests.coordinator.storage.helpers import PATIENCE, Postgres, Sqlite, offset

# --- export and import


@pytest.mark.parametrize("kinds", ["sqlite sqlite", "sqlite postgres sqlite", "postgres sqlite"])
def test_a_copy_is_a_copy(tmp_path: Path, run: Run, kinds: str, postgres: str) -> None:
    first, *others = kinds.split()
    original = Sqlite(tmp_path / "0") if first == "sqlite" else Postgres(postgres)
    filled(original)
    store_options = {"data": tmp_path / "0"} if first == "sqlite" else {"store": postgres}
    code, text, _ = run(export, **store_options)
    assert code == 0
    for number, kind in enumerate(others, 1):
        (tmp_path / "export").write_text(text)
        store_options = {"data": tmp_path / str(number)} if kind == "sqlite" else {"store": postgres}
        code, said, _ = run(import_, str(tmp_path / "export"), **store_options)
        assert code == 0
        assert said.startswith(f"{sum(map(len, RECORDS.values()))} records from")
        assert run(verify, **store_options)[0] == 0
        assert run(export, **store_options)[1] == text
    copy = Postgres(postgres) if others[-1] == "postgres" else Sqlite(tmp_path / str(len(others)))
    assert read(copy) == RECORDS


def test_a_store_that_has_a_log_is_not_filled(data: Path, postgres: str, tmp_path: Path, run: Run) -> None:
    run(export, data=data, out=tmp_path / "export")
    before = run(export, data=data)[1]
    code, _, err = run(import_, str(tmp_path / "export"), data=data)
    assert code == 2
    assert "has a log already: expected an empty directory" in err
    assert run(export, data=data)[1] == before
    assert run(import_, str(tmp_path / "export"), store=postgres)[0] == 0
    assert run(import_, str(tmp_path / "export"), store=postgres)[0] == 2


def test_tables_with_topics_are_not_filled(data: Path, postgres: str, tmp_path: Path, run: Run) -> None:
    run(export, data=data, out=tmp_path / "export")
    filled(Postgres(postgres))
    asyncio.run(asked(postgres, "DELETE FROM log", "INSERT INTO topics_log VALUES (1, '[]')"))
    code, out, err = run(import_, str(tmp_path / "export"), store=postgres)
    assert (code, out) == (2, "")
    assert err.startswith(f"rejoin: {postgres} has topics already: expected tables without records and topics")
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM log")) == [0]


def test_what_the_server_says_against_an_import_is_reported_in_one_line(
    data: Path, postgres: str, tmp_path: Path, run: Run
) -> None:
    run(export, data=data, out=tmp_path / "export")
    filled(Postgres(postgres))
    asyncio.run(asked(postgres, "DELETE FROM log", "ALTER TABLE log ADD CHECK (position < 2)"))
    code, out, err = run(import_, str(tmp_path / "export"), store=postgres)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{postgres} cannot be filled: new row for relation" in err
    assert "nothing was imported" in err
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM log")) == [0]


def test_tables_that_a_node_uses_are_not_filled(data: Path, postgres: str, tmp_path: Path, run: Run) -> None:
    """It would go on with what it has loaded, and its leases would be of older epochs than the log."""
    run(export, data=data, out=tmp_path / "export")
    filled(Postgres(postgres))
    node = "INSERT INTO nodes (node_id, incarnation, host, port, expires_at) VALUES "
    alive = "(1, '00000000-0000-0000-0000-000000000001', 'one.example', 9092, now() + interval '1 hour')"
    ended = "(2, '00000000-0000-0000-0000-000000000002', 'two.example', 9092, now() - interval '1 second')"
    asyncio.run(asked(postgres, "DELETE FROM log", f"{node} {alive}, {ended}"))
    epochs = asyncio.run(asked(postgres, "SELECT epoch FROM leases ORDER BY partition"))
    code, out, err = run(import_, str(tmp_path / "export"), store=postgres)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(r" is in use: node 1 \(one.example:9092, for \d+ s\). Stop these nodes first", err)
    assert asyncio.run(asked(postgres, "SELECT epoch FROM leases ORDER BY partition")) == epochs
    asyncio.run(asked(postgres, "UPDATE nodes SET expires_at = now()"))
    assert run(import_, str(tmp_path / "export"), store=postgres)[0] == 0
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM leases WHERE node_id IS NOT NULL")) == [0]
    assert run(export, store=postgres)[1] == run(export, data=data)[1]


def test_an_import_that_is_refused_leaves_an_empty_store(data: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "export"
    run(export, data=data, out=path)
    lines = path.read_text().splitlines(keepends=True)
    for text, said in (
        ("".join(lines[:-1]), "is cut off: its last line is missing"),
        ("".join([*lines[:-2], lines[-1]]), "the checksum does not fit the lines before"),
        ("".join(lines).replace('"offset":100', '"offset":"x"'), "it is no record"),
        ("".join(lines).replace('"version":2}', '"version":3}', 1), "expected version 2 or older, found 3"),
        ("nonsense", ":1: not JSON; expected a JSON object on each line"),
        ("[" * 100_000, ":1: not JSON; expected a JSON object on each line"),
        (lines[0] + '{"topic":"orders","partition":0,"newestEpoch":1}', ":2: expected topic __consumer_offsets"),
        (lines[0] + '{"partition":0,"newestEpoch":"1"}', ":2: expected a whole number up to 2147483647 as newest"),
        (lines[0] + '{"topicsVersion":1,"topics":[7]}', ":2: these are no topics"),
        ("".join(lines).replace('"epoch":', '"epoch":1e9,"was":'), "as epoch, found 1000000000.0"),
        (json.dumps({"key": {"version": 1, "data": {"group": 1}}, "value": None}), "expected the name of a group"),
        (json.dumps({"key": {"version": 1, "data": {"group": "\ud800"}}, "value": None}), ":1: it is no record"),
    ):
        path.write_text(text)
        code, _, err = run(import_, str(path), data=tmp_path / "new")
        assert code == 2
        assert said in err
        assert not (tmp_path / "new").exists()


def test_an_import_says_how_many_records_later_ones_replaced(tmp_path: Path, run: Run) -> None:
    key = {"version": 1, "data": {"group": "g", "topic": "orders", "partition": 0}}
    values = [{"version": 3, "data": {"offset": each, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}}
              for each in range(2_000)]  # fmt: skip
    (tmp_path / "printed").write_text("".join(json.dumps({"key": key, "value": value}) for value in values))
    code, out, _ = run(import_, str(tmp_path / "printed"), data=tmp_path / "new")
    assert code == 0
    assert out.endswith(", 1999 of them replaced by later ones\n")
    assert run(verify, data=tmp_path / "new")[1] == f"{tmp_path / 'new'}{ONE_RECORD}"


def printed_offsets(path: Path, *topics: str) -> str:
    """Commits of one group to two partitions of each topic, as the console consumer prints them."""
    lines = [
        {
            "key": {"version": 1, "data": {"group": "g", "topic": topic, "partition": partition}},
            "value": {"version": 3, "data": {"offset": 40 + partition, "metadata": "", "leaderEpoch": -1,
                                             "commitTimestamp": 1}},
        }
        for topic in topics
        for partition in (0, 2)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) for line in lines))
    return str(path)


def test_an_import_without_topics_says_which_offsets_a_start_would_delete(tmp_path: Path, run: Run) -> None:
    code, out, err = run(import_, printed_offsets(tmp_path / "printed", "refunds", "orders"), data=tmp_path / "new")
    assert (code, out) == (0, f"4 records from {tmp_path / 'printed'}\n")
    assert err == (
        "rejoin: a coordinator that starts with this store deletes the committed offsets of topics that do not exist: "
        "orders, refunds; import with --create-topics to keep them\n"
    )


async def test_topics_that_an_import_creates_keep_their_offsets(tmp_path: Path, run: Run) -> None:
    file = printed_offsets(tmp_path / "printed", "orders")
    code, out, err = await asyncio.to_thread(run, import_, file, data=tmp_path / "new", create_topics=True)
    assert (code, err) == (0, "")
    assert out.endswith("\ntopics created: orders\n")
    async with App(Options(data=tmp_path / "new", listen=False)) as app:
        node = app.runtime.node
        async with asyncio.timeout(PATIENCE):
            while not all(partition.state == ShardState.ACTIVE for partition in node.describe().partitions):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        ends = [(each.partition, each.offset, each.lag) for each in node.describe_offsets("g", 0)]
    assert ends == [(0, 40, 0), (2, 42, 0)]
    dumped = await asyncio.to_thread(run, dump, data=tmp_path / "new")
    assert dumped[1].count("\n") == 2, "nothing was deleted"


def test_what_is_salvaged_of_topics_is_what_a_node_starts_with(tmp_path: Path, run: Run) -> None:
    async def topics_of(folder: Path, *created: str) -> list[str]:
        topics = tuple(InitialTopic(name, 1, None) for name in created)
        async with App(Options(data=folder, topics=topics, listen=False)) as app:
            return [view.topic for view in app.runtime.node.describe_topics(app.runtime.clock.now())]

    asyncio.run(topics_of(tmp_path / "lost", "orders", "payments", "refunds"))
    with sqlite3.connect(tmp_path / "lost" / DATABASE) as connection:
        assert connection.execute("DELETE FROM topics_log WHERE version = 2").rowcount == 1
    connection.close()
    assert run(verify, data=tmp_path / "lost")[0] == 1
    assert run(export, data=tmp_path / "lost", salvage=True, out=tmp_path / "export")[0] == 0
    assert run(import_, str(tmp_path / "export"), data=tmp_path / "new")[0] == 0
    assert run(verify, data=tmp_path / "new")[0] == 0
    assert asyncio.run(topics_of(tmp_path / "new")) == ["orders", "refunds"]


@pytest.mark.parametrize(
    ("topic", "partition", "said"),
    [("a/b", 0, "'a/b' cannot be a topic's name"), ("orders", 2**31 - 1, "expected at most 100000 partitions")],
)
def test_a_topic_that_cannot_be_is_not_created(tmp_path: Path, run: Run, topic: str, partition: int, said: str) -> None:
    file = tmp_path / "printed"
    printed_offsets(file, topic)
    file.write_text(file.read_text().replace('"partition": 2', f'"partition": {partition}'))
    code, _, err = run(import_, str(file), data=tmp_path / "new", create_topics=True)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert not (tmp_path / "new").exists()


def test_what_a_console_consumer_printed_can_be_imported(data: Path, tmp_path: Path, run: Run) -> None:
    """Kafka 4 puts no line ends between the objects; records of other kinds of groups are left out."""
    printed = run(dump, data=data, partition=(0,))[1].replace("\n", "")
    other = '{"key":{"version":3,"data":"unknown"},"value":{"version":0,"data":"unknown"}}'
    (tmp_path / "printed").write_text(printed + other + "\n")
    code, said, _ = run(import_, str(tmp_path / "printed"), data=tmp_path / "new", partitions=50)
    assert (code, said) == (0, f"3 records from {tmp_path / 'printed'}, 1 of unknown kinds left out\n")
    assert run(dump, data=tmp_path / "new", partition=(partition_for("group-id", 50),))[1].replace("\n", "") == printed


def test_records_of_consumer_groups_are_imported_and_printed(tmp_path: Path, run: Run) -> None:
    """Kafka: CoordinatorRecordMessageFormatter. Since 4.1 a key has a type, where it had a version before."""
    printed = (
        '{"key":{"type":3,"data":{"groupId":"g"}},"value":{"version":0,"data":{"epoch":2,"metadataHash":-5}}}\n'
        '{"key":{"type":7,"data":{"groupId":"g","memberId":"m"}},"value":{"version":0,"data":{"topicPartitions":[]}}}\n'
    )
    (tmp_path / "printed").write_text(printed)
    code, said, _ = run(import_, str(tmp_path / "printed"), data=tmp_path / "new")
    assert (code, said) == (0, f"2 records from {tmp_path / 'printed'}\n")
    assert run(dump, data=tmp_path / "new")[1] == printed.replace('"type"', '"version"')


def test_tables_filled_with_what_a_console_consumer_printed_have_all_partitions(
    data: Path, tmp_path: Path, postgres: str, run: Run
) -> None:
    """A node whose settings say how many there are refuses to start with fewer."""
    (tmp_path / "printed").write_text(run(dump, data=data, partition=(0,))[1])
    assert run(import_, str(tmp_path / "printed"), store=postgres, partitions=12)[0] == 0
    assert asyncio.run(asked(postgres, "SELECT partition FROM leases ORDER BY 1")) == list(range(12))
    asyncio.run(asked(postgres, "DELETE FROM log"))
    for partitions in (5, 50):
        code, _, err = run(import_, str(tmp_path / "printed"), store=postgres, partitions=partitions)
        assert code == 2
        assert f"{postgres} was made for 12 offsets partitions, and this log has {partitions}: expected as many" in err
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM leases")) == [12]
    assert run(import_, str(tmp_path / "printed"), store=postgres, partitions=12)[0] == 0


def test_what_has_one_record_is_reported_in_the_singular(tmp_path: Path, run: Run) -> None:
    async def fill() -> None:
        store = Sqlite(tmp_path / "one")
        await store.start()
        assert await store.append(0, await store.elect(0), offset(1)) is ErrorCode.NONE
        await store.close()

    asyncio.run(fill())
    assert run(verify, data=tmp_path / "one")[1] == f"{tmp_path / 'one'}{ONE_RECORD}"
    code, out, err = run(export, data=tmp_path / "one", out=tmp_path / "export")
    assert (code, out, err) == (0, "", f"1 record to {tmp_path / 'export'}\n")
    code, out, _ = run(import_, str(tmp_path / "export"), data=tmp_path / "two")
    assert (code, out) == (0, f"1 record from {tmp_path / 'export'}\n")


def test_an_export_that_has_no_place_to_go_leaves_nothing_behind(data: Path, tmp_path: Path, run: Run) -> None:
    before = sorted(tmp_path.iterdir())
    for out, said in (
        (tmp_path, "not a regular file; expected a file to write"),
        (
            tmp_path / "nope" / "x",
            f"there is no directory {tmp_path / 'nope'}; make the directory, or name another file",
        ),
        (Path("/proc/export"), "cannot be written: "),
    ):
        code, _, err = run(export, data=data, out=out)
        assert code == 2
        assert err.startswith(f"rejoin: --out {out}: {said}")
        assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
    assert not tmp_path.with_name(tmp_path.name + ".new").exists()


def test_a_directory_that_cannot_be_locked_or_read_is_refused_in_one_line(
    data: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "lock").unlink()
    (data / "lock").mkdir()
    code, out, err = run(verify, data=data)
    assert (code, out) == (2, "")
    assert err == (
        f"rejoin: the data directory {data} cannot be used: lock: Is a directory; expected a directory to write "
        "to, and a file lock in it or none\n"
    )

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    code, out, err = run(verify, data=data)
    assert (code, out) == (2, "")
    assert err.startswith(f"rejoin: {data}")
    assert "Permission denied; expected" in err


def test_the_command_line_reads_standard_input_and_says_what_is_wrong_with_it(data: Path) -> None:
    def ask(*words: object, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rejoin", "log", *map(str, words)]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    exported = ask("export", "--data", data)
    assert exported.returncode == 0
    dumped = ask("dump", "-", text=exported.stdout)
    assert dumped.stdout == ask("dump", "--data", data).stdout
    wrong = ask("dump")
    assert wrong.returncode == 2
    assert (
        wrong.stderr == "rejoin log dump: expected one of FILE, --data DIR and --store postgresql://..., and no more\n"
    )
    wrong = ask("export")
    assert wrong.stderr == "rejoin log export: expected either --data DIR or --store postgresql://..., and not both\n"
    wrong = ask("export", "--store", "postgresql://me:geheim@127.0.0.1:1/x")
    assert wrong.stderr.startswith("rejoin log export: --store: expected an address without a password")
    assert ask("dump", "/nowhere").stderr == (
        "rejoin log dump: /nowhere cannot be read: No such file or directory; expected a file of log export\n"
    )
