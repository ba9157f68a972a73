"""``rejoin conform-client`` with programs: two real consumers, and commands that are none."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rejoin.__main__ import main
from rejoin.coordinator.service import logs
from tests import paths

logs.configure("critical")

PROGRAMS = Path(__file__).parent / "programs"


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["conform-client", *words])
    return end.value.code or 0, *capsys.readouterr()


@pytest.mark.parametrize(
    ("program", "arguments", "names"),
    [
        ("own_consumer.py", [], ("sync-refused", "coordinator-moves", "new-member", "close")),
        (
            "kafka_python_consumer.py",
            ["{BOOTSTRAP_SERVERS}", "{TOPIC}", "{GROUP_ID}"],
            # After a refused SyncGroup it has hung once for a minute: that trouble is for make client-conformance.
            ("join-answer-lost", "close"),
        ),
    ],
)
def test_a_real_consumer_passes(
    program: str,
    arguments: list[str],
    names: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT / "src"))
    words = [word for name in names for word in ("--only", name)]
    files = ["--junit", str(tmp_path / "junit.xml"), "--transcripts", str(tmp_path / "lives")]
    options = [*words, *files, "--at-once", "4", "--timeout", "60"]
    code, out, _ = ended(capsys, *options, "--", sys.executable, str(PROGRAMS / program), *arguments)
    assert (code, out.splitlines()[-1]) == (0, f"{len(names)} passed"), out
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [each.get("name") for each in suite] == list(names)
    assert suite.get("failures") == "0"
    assert {each.stem for each in (tmp_path / "lives").iterdir()} == set(names)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "ended with exit code 0 before it had joined a group"),
        ("raise SystemExit('no such broker')", "ended with exit code 1 (no such broker) before it had joined a group"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL before it had joined a group"),
        ("while True: print('x' * 65536)", "printed more than 16 MiB before it had joined a group"),
    ],
)
def test_a_program_that_is_no_consumer_is_named_in_a_line(
    code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--only", "calm", "--timeout", "60"]
    found = ended(capsys, *options, "--", sys.executable, "-c", code)
    assert found == (2, f"calm  not played      the program {said}\n\n1 not played\n", "")


def test_a_program_that_does_nothing_is_ended(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended(capsys, "--only", "calm", "--timeout", "0.2", "--", "sleep", "600")
    assert code == 2
    assert "the program did not connect to BOOTSTRAP_SERVERS within 0.2 s" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "calme"], "--only calme: there is no such trouble; is it calm?; --list shows all"),
        (["--timeout", "0"], "--timeout 0: expected up to 600 seconds, and more than 0"),
        (["--at-once", "99"], "--at-once 99: expected 1 to 16"),
        ([], "expected a command after --, with its arguments: rejoin conform-client -- COMMAND"),
        (["--", "/no/such/program"], "/no/such/program: No such file or directory; expected a program after --"),
    ],
)
def test_a_wrong_command_line_is_refused_in_a_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(capsys, *words) == (2, "", f"rejoin conform-client: {said}\n")


def test_the_troubles_are_listed_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended(capsys, "--list", "--only", "fenced")
    assert code == 0
    assert out.splitlines()[0] == "fenced"
    assert "KIP-345" in out.splitlines()[-1]
