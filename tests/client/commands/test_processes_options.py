"""Options that cannot work are refused in one line, before anything starts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from rejoin.__main__ import main
from rejoin.client.commands.consumer_processes import _without_processes
from rejoin.journal.writer import JournalWriter


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--assignor", "stiky"], "unknown assignor 'stiky'; is it sticky? known are range, roundrobin"),
        (["--assignor", "coop"], "rejoin consume: unknown assignor 'coop'; is it cooperative-sticky?"),
        (["--pattern", "("], "--pattern (: not a regular expression"),
        (["--bootstrap-server", "localhost:abc"], "not a server: 'localhost:abc'; expected HOST:PORT"),
        (["--bootstrap-server", "localhost:99999"], "not a server: 'localhost:99999'"),
        (["--bootstrap-server", "ftp://x", "--processes", "2"], "not a server: 'ftp://x'"),
        (["-c", "bootstrap.servers=http://[::1"], "not a server: 'http://[::1'"),
        (["--duration", "-1"], "--duration -1: expected a length of time with its unit"),
        (["--duration", "nan"], "--duration nan: expected a length of time"),
        (["--processing-time", "uniform(9,1)"], "'uniform(9,1)': expected the shorter time before the longer one"),
        (["--journal", __file__], f"{__file__}: this is no directory; expected a directory to write the journal to"),
        (["--journal", __file__, "--processes", "2"], f"{__file__}: this is no directory"),
        (["--journal", "/proc/journal"], "/proc/journal: cannot be used: "),
    ],
)
def test_is_refused_in_one_line(options: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    topics = [] if "--pattern" in options else ["--topic", "t"]
    assert said in refusal(["--group", "g", *topics, *options], capfd)


def refusal(options: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """The one line with which ``rejoin consume`` refuses options."""
    with pytest.raises(SystemExit) as ended:
        main(["consume", *options])
    assert ended.value.code == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    return line


def test_a_journal_with_another_writer_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with contextlib.closing(JournalWriter(tmp_path, "run", "client", "g-1")):
        said = refusal(["--group", "g", "--topic", "t", "--journal", str(tmp_path)], capfd)
    assert "another process writes this stream" in said


@pytest.mark.parametrize("form", [["--processes", "2"], ["--processes=2"], ["-p", "2"], ["-p2"], ["-p=2"]])
def test_a_child_starts_no_processes(form: list[str]) -> None:
    others = ["--group", "g", "--pattern", "p.*", "-c", "fetch.max.wait.ms=100"]
    assert _without_processes([*others, *form]) == others
    assert _without_processes([*form, *others]) == others


def test_the_console_script_finds_an_assignor_in_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from rejoin.client.assignors.range import RangeAssignor\n\n\nclass Mine(RangeAssignor):\n    name = 'mine'\n"
    )
    script = "import sys; sys.path[:] = [p for p in sys.path if p]; from rejoin.__main__ import main; main()"
    command = [sys.executable, "-c", script, "assign", "--topics", "t:2", "--members", "a,b", "--assignor", "mine:Mine"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 each" in done.stdout
