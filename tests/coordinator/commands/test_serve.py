"""The command line, and the process that it starts."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from rejoin.__main__ import main
from rejoin.atomic_file import FileNotWritten, atomic_file, check_writable
from rejoin.coordinator.commands.journal_schema import journal_schema
from rejoin.coordinator.commands.serve import options_from, topic_from
from rejoin.coordinator.commands.serve_options import ServeOptions
from rejoin.coordinator.config import DEFAULTS, Settings, WrongSetting, settings_from
from rejoin.coordinator.service.options import InitialTopic
from rejoin.coordinator.testing import running as coordinator_running
from rejoin.journal.reader import read_journal
from rejoin.journal.segments import segments
from tests import paths
from tests.coordinator.ports import free_port
from tests.coordinator.service.helpers import join


def test_settings_go_by_kafkas_names() -> None:
    settings = settings_from(["group.max.size=5", "auto.create.topics.enable=false"], {})
    assert settings == Settings(group_max_size=5, auto_create_topics_enable=False)
    assert settings_from([], {}) == DEFAULTS


def test_the_environment_counts_where_the_command_line_is_silent() -> None:
    environment = {"REJOIN_GROUP_MAX_SIZE": "5", "REJOIN_BROKER_ID": "7", "NUM_PARTITIONS": "9", "HOME": "/"}
    settings = settings_from(["group.max.size=9"], environment)
    assert (settings.group_max_size, settings.broker_id, settings.num_partitions) == (9, 7, 1)


def test_variables_that_are_no_settings_are_left_alone() -> None:
    environment = {"REJOIN_STORE": "postgresql://db", "REJOIN_SPARK_MASTER": "local[2]", "REJOIN_HOME": "/opt"}
    assert settings_from([], environment) == DEFAULTS


def test_a_list_is_given_with_commas() -> None:
    settings = settings_from(["emulator.deny=User:*:READ:group=a, User:bob:ALL:topic=*"], {})
    assert settings.emulator_deny == ("User:*:READ:group=a", "User:bob:ALL:topic=*")


@pytest.mark.parametrize(
    ("given", "environment", "words"),
    [
        (["group.max.sise=5"], {}, ["group.max.sise", "is it group.max.size?"]),
        (["group.max.size"], {}, ["expected NAME=VALUE"]),
        (["group.max.size=many"], {}, ["-c group.max.size", "integer", "many"]),
        (["group.max.size=0"], {}, ["greater than or equal to 1"]),
        (["group_max_size=5"], {}, ["is it group.max.size?"]),
        ([], {"REJOIN_BROKER_ID": "one"}, ["REJOIN_BROKER_ID: ", "integer", "'one'"]),
        ([], {"REJOIN_GROUP_MAX_SISE": "5"}, ["REJOIN_GROUP_MAX_SISE in the env", "is it REJOIN_GROUP_MAX_SIZE?"]),
        (["emulator.member.order=random"], {}, ["emulator.member.order", "join"]),
    ],
)
def test_a_wrong_setting_is_reported_in_full(given: list[str], environment: dict[str, str], words: list[str]) -> None:
    with pytest.raises(WrongSetting) as raised:
        settings_from(given, environment)
    for word in words:
        assert word in str(raised.value)


def test_topics_are_given_with_partitions_and_a_rate() -> None:
    assert topic_from("orders:12") == InitialTopic("orders", 12, None)
    assert topic_from("orders:3:0.5") == InitialTopic("orders", 3, 0.5)


@pytest.mark.parametrize("text", ["orders", "orders:", "orders:x", "orders:0", ":3", "orders:3:-1", "orders:3:1:1"])
def test_a_topic_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(WrongSetting, match=r"NAME:PARTITIONS.*at least 1 partition, and 0 or more records a second"):
        topic_from(text)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["-c", "group.max.sise=1"], "group.max.size"),
        (["--topic", "orders"], "NAME:PARTITIONS"),
        (["-c", "emulator.deny=nobody"], "cannot read the denial"),
        (["--port", "0", "--topic", "a b:1"], "INVALID_TOPIC_EXCEPTION"),
        (
            ["--topic", "orders:99999999999"],
            "--topic orders:99999999999: topic orders with 99999999999 partitions: expected at most 100000 of them",
        ),
        (["--topic", "orders:3:inf"], "NAME:PARTITIONS:RECORDS_PER_SECOND"),
        (["--max-body-bytes", "0"], "--max-body-bytes 0: expected 1 or more"),
        (["--max-body-bytes", "-1"], "--max-body-bytes -1: expected a number of bytes, or a size such as 64MiB"),
        (["--max-body-bytes", "64MIX"], "--max-body-bytes 64MIX: expected a number of bytes, or a size such as 64MiB"),
        (["--port", "0", "--journal", __file__], f"{__file__}: this is no directory; expected a directory to write"),
        (["--data", ""], "--data '': expected the name of a directory, as . for this one"),
        (["--store", ""], "--store '': expected the address of a database"),
        (["--data="], "--data '': expected the name of a directory"),
        (["--journal", ""], "--journal '': expected the name of a directory"),
        (["--port-file", "/proc"], "--port-file /proc: not a regular file; expected a file to write"),
        (["--port-file", "/nope/port"], "--port-file /nope/port: there is no directory /nope; make the directory"),
        (["--port", "0", "--port-file", "/proc/port"], "--port-file /proc/port: cannot be written: "),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1:9095: "),
        (
            ["--advertised-host", "a/b"],
            "--advertised-host: 'a/b' is no host; expected a host name or an IP address",
        ),
        (["--advertised-host", ""], "--advertised-host: '' is no host"),
        (
            ["--advertised-host", "0.0.0.0"],
            "--advertised-host: 0.0.0.0 stands for every address of this machine",
        ),
        (
            ["-c", "advertised.listeners=PLAINTEXT://0.0.0.0:1"],
            "-c advertised.listeners: 0.0.0.0 stands for every address of this machine",
        ),
        (
            ["-c", "listeners=A://127.0.0.1:25098,B://127.0.0.1:25098"],
            "-c listeners: A and B have the same port, 25098; expected a port of its own for each listener",
        ),
        (
            ["--kafka-port", "25093", "-c", "listeners=PLAINTEXT://127.0.0.1:25099"],
            "--kafka-port 25093: expected --kafka-port or listeners=PLAINTEXT://127.0.0.1:25099, not both",
        ),
        (
            ["--kafka-port", "off", "-c", "listeners=A://127.0.0.1:0"],
            "--kafka-port off: expected --kafka-port or listeners=A:",
        ),
    ],
)
def test_what_cannot_be_started_says_why_and_ends_with_2(
    arguments: list[str], word: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["rejoin", "serve", "--log-level", "critical", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capfd.readouterr().err
    assert word in error
    assert "Traceback" not in error


def refused(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    level = () if "--log-level" in arguments else ("--log-level", "critical")
    monkeypatch.setattr(sys, "argv", ["rejoin", "serve", *level, *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capfd.readouterr().err


def test_a_port_in_use_is_named(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(capfd, monkeypatch, "--port", str(port))
    assert said == (
        f"rejoin serve: cannot listen on 127.0.0.1:{port}: Address already in use; expected an address of this machine "
        "and a free port, or port 0, which takes any\n"
    )


def test_one_port_for_both_protocols_is_in_use(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = str(free_port())
    said = refused(capfd, monkeypatch, "--port", port, "--kafka-port", port)
    assert f"Kafka's protocol: cannot listen on 127.0.0.1:{port}: Address already in use; expected" in said
    assert said.endswith("(--kafka-port)\n")
    listeners = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    assert refused(capfd, monkeypatch, "--port", port, "-c", listeners).endswith("(listeners)\n")


def test_brokers_listen_on_all_their_ports_or_on_none(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = free_port()
    with socket.create_server(("127.0.0.1", first + 1)):
        options = ["--brokers", "3", "--port", "0", "--kafka-port", str(first), "--log-level", "info"]
        said = refused(capfd, monkeypatch, *options)
    assert f"cannot listen on 127.0.0.1:{first + 1}: Address already in use" in said
    assert '"event":"listening"' not in said
    with socket.create_server(("127.0.0.1", first)):
        pass  # what the first broker had is free again


def test_a_store_is_not_confused_with_one_that_the_environment_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    given = refused(capfd, monkeypatch, "--data", str(tmp_path), "--store", url)
    assert given == f"rejoin serve: --data {tmp_path}: expected --data or --store, not both\n"
    monkeypatch.setenv("REJOIN_STORE", url)
    found = refused(capfd, monkeypatch, "--data", str(tmp_path))
    assert found == f"rejoin serve: --data {tmp_path}: expected --data or REJOIN_STORE in the environment, not both\n"


@pytest.mark.parametrize("url", ["postgresql://me:geheim@db/x", "postgresql://db/x?user=me&password=geheim"])
def test_a_password_on_the_command_line_is_refused(
    url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refused(capfd, monkeypatch, "--store", url)
    assert "set REJOIN_STORE to the whole address, or PGPASSWORD to the password, or PGPASSFILE" in said
    assert "geheim" not in said


async def test_a_topic_that_fits_into_no_request_is_refused_before_anything_starts() -> None:
    with pytest.raises(ValueError, match=r"topic t with 1000000000000 partitions: expected at most 100000"):
        async with coordinator_running(topics={"t": 10**12}):
            raise AssertionError("it runs")


async def test_a_topic_of_the_command_line_may_be_larger_than_one_of_a_client() -> None:
    async with coordinator_running(topics={"t": 20_000}) as node:
        assert (await node.set_topic("t", 20_000)).partitions == 20_000, "it has as many"


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def fail(problem: Exception) -> None:
        with atomic_file("--out", path) as handle:
            handle.write("half of it")
            raise problem

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotWritten, match=r"pipe: not a regular file"):
        check_writable("--out", tmp_path / "pipe")
    (tmp_path / "pipe").unlink()
    with pytest.raises(RuntimeError):
        fail(RuntimeError())
    with pytest.raises(FileNotWritten, match=r"--out .*/file: cannot be written: No space left on device; expected"):
        fail(OSError(errno.ENOSPC, "No space left on device"))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "before")]
    with atomic_file("--out", path) as handle:
        handle.write("after")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "after")]


def test_the_journals_schema_can_be_printed(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["coordinator", "journal-schema"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert json.loads(capfd.readouterr().out) == journal_schema().json_schema()


# --- as a process of its own

PATIENCE = 60.0
"""Seconds that a busy machine may take."""


class Process:
    """A coordinator process on a port of its own choosing."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        port_file = directory / "port"
        self.log = directory / "log"
        command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--port-file", str(port_file), *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=paths.ROOT)
        wait_for(lambda: port_file.exists() or self.process.poll() is not None)
        assert port_file.exists(), f"it did not start: {self.log.read_text()}"
        self.ports = [int(line) for line in port_file.read_text().splitlines()]
        self.port = self.ports[0]

    def get(self, path: str) -> dict[str, object]:
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE) as answer:
            found: dict[str, object] = json.load(answer)
            return found

    def call(self, path: str, body: dict[str, object]) -> dict[str, object]:
        request = Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), method="POST")
        request.add_header("Content-Type", "application/json")
        with urlopen(request, timeout=PATIENCE) as answer:
            found: dict[str, object] = json.load(answer)
            return found

    def send(self, path: str, body: dict[str, object]) -> socket.socket:
        """A request whose answer is read later."""
        data = json.dumps(body).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.sendall(
            b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % (path.encode(), len(data))
            + data
        )
        return connection


def wait_for(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.02)


@contextlib.contextmanager
def running(directory: Path, *arguments: str) -> Iterator[Process]:
    started = Process(directory, *arguments)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_answers_who_is_parked(tmp_path: Path, number: signal.Signals) -> None:
    journal = tmp_path / "journal"
    with running(tmp_path, "--journal", str(journal), "--topic", "orders:12:5") as node:
        assert node.get("/topics/orders")["partitions"] == 12
        answer = node.call("/v1/join-group", join("g"))
        parked = node.send("/v1/join-group", join("g", str(answer["memberId"])))
        wait_for(lambda: bool(node.get("/groups/g")["members"]))
        idle = socket.create_connection(("127.0.0.1", node.port))
        used = cpu_seconds(node.process.pid)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        node.process.send_signal(number)
        assert b"Kafka-Error: NOT_COORDINATOR" in parked.recv(65_536)
        assert node.process.wait(PATIENCE / 2) == 0, "the idle connection holds nothing up"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        in_all = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert in_all - used < 2, "stopping costs little CPU"
        for connection in (parked, idle):
            connection.close()
    rows = list(read_journal(journal, journal_schema()))
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert not any(segment.is_open for segment in segments(journal))
    assert rows[-1].event.name == "partition_resigned"
    lines = [json.loads(line) for line in node.log.read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert {"listening", "member_id_handed_out", "member_joined", "shutting_down"} <= {line["event"] for line in lines}


def test_a_killed_process_leaves_a_journal_that_reads_and_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with running(tmp_path, "--journal", str(journal), "--log-level", "critical") as node:
        node.call("/v1/join-group", join("before"))
        wait_for(
            lambda: any(row.event.name == "member_id_handed_out" for row in read_journal(journal, journal_schema()))
        )
        _assert_refused(journal)
        node.process.kill()
        node.process.wait()
    before = list(read_journal(journal, journal_schema()))
    (tmp_path / "port").unlink()
    with running(tmp_path, "--journal", str(journal), "--log-level", "critical") as node:
        node.call("/v1/join-group", join("after"))
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(PATIENCE) == 0
    rows = list(read_journal(journal, journal_schema()))
    assert rows[: len(before)] == before
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert len({row.envelope.run_id for row in rows}) == 2


def _assert_refused(journal: Path) -> None:
    """A second process on the same journal does not start."""
    command = [
        sys.executable,
        "-m",
        "rejoin",
        "serve",
        "--port",
        "0",
        "--journal",
        str(journal),
        "--log-level",
        "critical",
    ]
    ended = subprocess.run(command, capture_output=True, cwd=paths.ROOT, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert b"another process writes this stream" in ended.stderr


def test_of_two_processes_on_the_same_ports_one_listens(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rejoin", "serve", "--port", str(free_port()), "--kafka-port", str(free_port())]
    started = []
    for name in ("one", "two"):
        with (tmp_path / name).open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=paths.ROOT))
    try:
        wait_for(lambda: any(each.poll() is not None for each in started))
        logs = [(tmp_path / name).read_text() for name in ("one", "two")]
        (loser,) = [index for index, each in enumerate(started) if each.poll() is not None]
        assert started[loser].returncode == 2
        assert "Address already in use" in logs[loser]
        assert '"event":"listening"' not in logs[loser]
        wait_for(lambda: '"event":"listening"' in (tmp_path / ("one", "two")[1 - loser]).read_text())
    finally:
        for each in started:
            each.kill()
            each.wait()


def test_a_variable_that_is_no_setting_is_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_NOPE", "1")
    with running(tmp_path) as node:
        (line,) = [json.loads(line) for line in node.log.read_text().splitlines() if "REJOIN_NOPE" in line]
    assert (line["event"], line["level"], line["variables"]) == ("variables_ignored", "warning", ["REJOIN_NOPE"])


def test_requests_are_logged_at_debug_only(tmp_path: Path) -> None:
    with running(tmp_path, "--log-level", "debug") as node:
        node.call("/v1/heartbeat", {"groupId": "g", "generationId": 1, "memberId": "m"})
        wait_for(lambda: b'"event":"heartbeat"' in node.log.read_bytes())
    lines = [json.loads(line) for line in node.log.read_text().splitlines()]
    (beat,) = [line for line in lines if line["event"] == "heartbeat"]
    assert (beat["level"], beat["error"], beat["version"]) == ("debug", "UNKNOWN_MEMBER_ID", 4)


@pytest.mark.parametrize(
    ("given", "port"),
    [
        (ServeOptions(), 9092),
        (ServeOptions(port=0), 0),
        (ServeOptions(kafka_port="19092"), 19_092),
        (ServeOptions(port=0, kafka_port="9092"), 9092),
        (ServeOptions(kafka_port="off"), None),
    ],
)
def test_the_port_of_kafkas_protocol(given: ServeOptions, port: int | None) -> None:
    assert options_from(given).kafka_port == port


@pytest.mark.parametrize("text", ["-1", "70000", "http", "9092.0"])
def test_a_port_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WrongSetting, match=r"--kafka-port .*: expected 0 to 65535, or off"):
        options_from(ServeOptions(kafka_port=text))


def test_a_release_to_pass_for() -> None:
    assert options_from(ServeOptions(as_kafka="2.8")).settings.emulator_as_kafka == "2.8"
    with pytest.raises(WrongSetting, match=r"^--as-kafka: there is no release '2\.81': expected .* or 4\.0 to 4\.4$"):
        options_from(ServeOptions(as_kafka="2.81"))
