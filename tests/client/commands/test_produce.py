"""`rejoin produce`: lines of a file or of the standard input become records."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rejoin.client.commands.produce import ProduceOptions
from rejoin.client.commands.producing import run
from rejoin.coordinator.testing import running_in_thread
from rejoin.coordinator.testing.blocking import BlockingGroupCoordinator


@pytest.fixture(scope="module")
def coordinator() -> Iterator[BlockingGroupCoordinator]:
    with running_in_thread(topics={"orders": 3, "clicks": 1, "piped": 1}) as started:
        yield BlockingGroupCoordinator(started)


def test_lines_with_headers_and_keys(
    coordinator: BlockingGroupCoordinator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines.tsv"
    file.write_bytes(b"h:1,i:\tk\tfirst\n\tk\tNULL\r\nno separator\n\tNULL\tlast")
    code = run(
        ProduceOptions(
            topic="orders",
            file=file,
            bootstrap=coordinator.bootstrap_servers,
            header_separator="\\t",
            key_separator="\\t",
            header=["source=test"],
            null_marker="NULL",
            partition=1,
            compression="gzip",
        )
    )
    assert code == 1
    shown = capsys.readouterr()
    assert shown.err == "rejoin: line 3: 'no separator': expected headers, then '\\t' (1 record)\n"
    assert shown.out.startswith("3 of 4 records stored in orders, 43 bytes in ")
    assert "partitions 1: 3\n" in shown.out
    source = ("source", b"test")
    assert [(record.key, record.value, record.headers) for record in coordinator.records("orders")] == [
        (b"k", b"first", [source, ("h", b"1"), ("i", b"")]),
        (b"k", None, [source]),
        (None, b"last", [source]),
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"rate": 0.0}, "--rate 0: expected more than 0 records a second"),
        ({"partition": -1}, "--partition -1: expected 0 or more"),
        ({"header": ["x"]}, "--header x: expected NAME=VALUE"),
        ({"acks": "2"}, "acks"),
        ({"acks": "1", "idempotent": True}, "enable.idempotence needs acks=all"),
        ({"setting": ["linger=5"]}, "-c linger=5: there is no setting linger; is it linger.ms?"),
        ({"bootstrap": "localhost:x"}, "not a server: 'localhost:x'"),
        ({"file": Path("/nowhere/lines")}, "/nowhere/lines: No such file or directory"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    settings: dict[str, object], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(ProduceOptions(topic="orders", **settings)) == 2  # type: ignore[arg-type]
    shown = capsys.readouterr().err
    assert problem in shown
    assert len(shown.splitlines()) == 1


def test_sigterm_ends_reading_and_what_was_read_is_stored(coordinator: BlockingGroupCoordinator) -> None:
    command = [sys.executable, "-m", "rejoin", "produce", "--topic", "piped", "--bootstrap", coordinator.url]
    with subprocess.Popen(
        [*command, "--progress"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        while len(list(coordinator.records("piped"))) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        assert process.stdout is not None
        assert process.stdout.read().startswith(b"2 of 2 records stored in piped, 6 bytes in ")


def produced(capsys: pytest.CaptureFixture[str], bootstrap: str, lines: Path, **options: Any) -> tuple[int, str, str]:
    """Exit code, output and errors of a run over three lines of a topic with one partition."""
    lines.write_text("a\nb\nc\n")
    code = run(ProduceOptions(topic="clicks", file=lines, bootstrap=bootstrap, **options))
    return code, *capsys.readouterr()


def test_an_address_of_the_other_protocol_ends_it_at_the_first_connection(
    coordinator: BlockingGroupCoordinator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``max.block.ms`` is longer than this test may take."""
    over_http, over_kafka = coordinator.url, coordinator.bootstrap_servers
    for bootstrap, hint in (
        (over_http.removeprefix("http://"), f"; write {over_http} (1 record)\n"),
        (f"http://{over_kafka}", f"; write {over_kafka} (1 record)\n"),
    ):
        waits = ["max.block.ms=3600000"]
        code, out, err = produced(capsys, bootstrap, tmp_path / "lines", setting=waits)
        assert (code, err.count("\n")) == (1, 1)
        assert err.endswith(hint)
        assert out.startswith("0 of 1 records stored in clicks, ")


def test_a_partition_that_the_topic_does_not_have_is_refused(
    coordinator: BlockingGroupCoordinator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["max.block.ms=3600000"]
    servers = coordinator.bootstrap_servers
    refused = "rejoin: --partition 9: topic clicks has 1 partition; expected 0\n"
    assert produced(capsys, servers, tmp_path / "lines", partition=9, setting=settings) == (2, "", refused)


def test_lines_do_not_wait_one_after_the_other_where_nothing_answers(
    unused_tcp_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = f"127.0.0.1:{unused_tcp_port}"
    code, out, err = produced(capsys, server, tmp_path / "lines", setting=["max.block.ms=300"])
    assert code == 1
    assert err.startswith("rejoin: topic clicks not present in metadata after 300 ms (max.block.ms): ")
    assert "Connect call failed" in err
    assert out.startswith("0 of 1 records stored in clicks, ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_waiting_for_a_node_that_does_not_answer(unused_tcp_port: int, number: int) -> None:
    server = f"127.0.0.1:{unused_tcp_port}"
    command = [sys.executable, "-m", "rejoin", "produce", "--topic", "clicks", "--bootstrap", server]
    with subprocess.Popen(
        [*command, "-c", "max.block.ms=3600000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            process.stdin.write("a\nb\nc\n")
            process.stdin.flush()
            notice = process.stderr.readline()
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert notice.startswith(f"rejoin produce: topic clicks not found yet: {server}: ")
    assert notice.endswith("waiting for up to 3600 s (max.block.ms)\n")
    assert process.returncode == 1
    assert err == "rejoin produce: stopped before the answer came (1 record)\n"
    assert out.startswith("0 of 1 records stored in clicks, ")
