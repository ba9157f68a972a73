"""``rejoin``: what its subcommands load, its help and completion, and what it says of a wrong or missing part."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

import rejoin
from rejoin.__main__ import main
from rejoin.client.commands.groups.options import checked, parser
from rejoin.commands import COMMANDS, EXTRAS, build
from rejoin.release import release
from tests import paths

WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
from rejoin.__main__ import main
main({arguments!r})
"""

LISTING = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, sep="\\n", file=sys.stderr))
from rejoin.__main__ import main
main({arguments!r})
"""


def ended(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code, *capsys.readouterr()


def loaded(*arguments: str) -> set[str]:
    """The modules that a run of ``rejoin`` imports."""
    done = subprocess.run(
        [sys.executable, "-c", LISTING.format(arguments=list(arguments))],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stderr.splitlines())


def without(missing: Collection[str], *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run ``rejoin`` where some packages are not installed."""
    code = WITHOUT.format(missing=tuple(missing), arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=home,
        env={**os.environ, "HOME": str(home), "PYTHONPATH": str(paths.ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_imports_no_subcommand() -> None:
    own = {name for name in loaded("--help") if name.startswith("rejoin.")}
    expected = ("__main__", "commands", "error_lines", "help_text", "lazy_names", "release")
    assert own == {f"rejoin.{each}" for each in expected}


def test_asking_about_groups_loads_no_service_and_no_spark() -> None:
    modules = loaded("groups", "--help")
    assert "rejoin.client.commands.groups.command" in modules
    unneeded = (
        "aiohttp.web",
        "pyspark",
        "pandas",
        "numpy",
        "rejoin.coordinator",
        "rejoin.simulation",
        "rejoin.pipeline",
    )
    assert sorted(name for name in modules if name.startswith(unneeded)) == []


def test_a_simulation_loads_no_network_and_no_spark() -> None:
    unneeded = ("aiohttp", "pyspark", "pandas", "asyncpg", "rejoin.coordinator.service", "rejoin.pipeline")
    assert sorted(name for name in loaded("simulate", "--help") if name.startswith(unneeded)) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_loads_no_heavy_library(command: str) -> None:
    heavy = ("aiohttp", "pydantic", "structlog", "jinja2", "pyspark", "numpy", "pyarrow")
    assert sorted(name for name in loaded(command, "--help") if name.partition(".")[0] in heavy) == []


def test_a_value_of_a_hundred_thousand_digits_is_refused_in_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, problem = ended(["simulate", "cold_start", "--seed", "9" * 100_000], capsys)
    assert code == 2
    assert problem.startswith("rejoin simulate: --seed 9999")
    assert len(problem) < 1_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("serve foo --port 1 bar", "rejoin serve: unexpected foo bar; rejoin serve --help shows what can be given"),
        (
            "transcript play a b",
            "rejoin transcript play: unexpected b; rejoin transcript play --help shows what can be given",
        ),
        ("serve --port abc", "rejoin serve: --port abc: expected a whole number"),
        ("report a", "rejoin report: --out DIR is missing; rejoin report --help describes it"),
        ("report a --out", "rejoin report: --out: the value is missing; rejoin report --help describes it"),
        ("serve --ports 1", "rejoin serve: there is no option --ports; is it --port? rejoin serve --help lists all"),
        ("--versoin", "rejoin: there is no option --versoin; is it --version? rejoin --help lists all"),
        ("log dum", "rejoin log: there is no command dum; is it dump? expected one of dump, verify, export, import"),
        ("serve --log-level no", "rejoin serve: --log-level no: expected debug, info, warning, error or critical"),
        (
            "topics --list --topicc t",
            "rejoin topics: there is no option --topicc; is it --topic? rejoin topics --help lists all",
        ),
        ("groups --timeout 1s", "rejoin groups: --timeout 1s: expected a whole number"),
        (
            "groups --bootstrap",
            "rejoin groups: --bootstrap-server: the value is missing; rejoin groups --help describes it",
        ),
        ("groups --list x", "rejoin groups: unexpected x; rejoin groups --help shows what can be given"),
    ],
)
def test_a_wrong_command_line_is_answered_in_words(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, problem = ended(given.split(), capsys)
    assert code == 2
    assert problem == f"{said}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_subcommand_has_help_with_examples_and_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ended([command, "--help"], capsys)
    assert code == 0
    assert out.lower().startswith(f"usage: rejoin {command}")
    shown = COMMANDS[command]
    assert [line for line in out.splitlines() if line.startswith("  rejoin ")] == [
        f"  {each}" for each in shown.examples
    ]
    assert all(f"  {number:<4} {meaning}" in out for number, meaning in shown.exit_codes.items())


def test_the_commands_of_a_subcommand_show_its_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert "1    the log is damaged" in ended(["log", "verify", "--help"], capsys)[1]


@pytest.mark.parametrize("example", [each for command in COMMANDS.values() for each in command.examples])
def test_the_examples_of_the_help_are_valid_command_lines(example: str) -> None:
    _, name, *arguments = shlex.split(example.partition(" > ")[0])
    if name == "groups":
        assert checked(parser().parse_args(arguments)) is not None
    else:
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        build().parse_args([name, *options], exit_on_error=False)


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["--version"], capsys) == (0, f"{release()}\n", "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("grups", f"rejoin: there is no command grups; is it groups? expected one of {', '.join(COMMANDS)}\n"),
        ("kafka", f"rejoin: there is no command kafka; expected one of {', '.join(COMMANDS)}\n"),
    ],
)
def test_an_unknown_subcommand_is_refused_with_the_known_ones(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended([given, "--group", "g"], capsys) == (2, "", said)


@pytest.mark.parametrize("command", [name for name, command in COMMANDS.items() if command.extra])
def test_a_missing_extra_is_named(command: str, tmp_path: Path) -> None:
    extra = COMMANDS[command].extra
    assert extra is not None
    line = shlex.split(COMMANDS[command].examples[0])[1:]
    done = without(EXTRAS[extra], *line, home=tmp_path)
    assert done.returncode == 2
    package = EXTRAS[extra][0]
    assert done.stderr.splitlines() == [
        f"rejoin {command}: this command needs {package}, which is not installed: pip install 'rejoin-kafka[{extra}]'"
    ]


def test_a_small_report_needs_no_spark(tmp_path: Path) -> None:
    journals = str(paths.ROOT / "tests" / "golden" / "journals" / "simulation")
    missing = ("pyspark", "py4j")
    done = without(missing, "report", journals, "--out", "why", home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "why" / "report.html").is_file()
    done = without(missing, "report", journals, "--out", "spark", "--master", "local[1]", home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("needs pyspark, which is not installed: pip install 'rejoin-kafka[pipeline]'\n")


@pytest.mark.parametrize("arguments", [["gallery", "list"], ["simulate", "cold_start"], ["journal-schema"]])
def test_a_reader_that_goes_away_is_no_traceback(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "rejoin", *arguments],
            cwd=paths.ROOT,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_with_what_is_there(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    done = without(EXTRAS["pipeline"], "--install-completion", "--shell", shell, "--output", str(script), home=tmp_path)
    assert done.returncode == 0, done.stderr
    text = script.read_text()
    assert "consume" in text
    assert "--session-timeout-ms" in text or "session-timeout-ms" in text
    assert "sweep" not in text
    assert f"wrote {script}" in done.stdout


@pytest.mark.parametrize(("shell", "name"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_completion_prints_what_it_adds_to_the_startup_file(shell: str, name: str, tmp_path: Path) -> None:
    startup = tmp_path / name
    startup.write_text("alias ll='ls -l'\n")
    install = ("--install-completion", "--shell", shell, "--output", str(tmp_path / "completion"))
    first = without(EXTRAS["pipeline"], *install, home=tmp_path)
    added = [line for line in startup.read_text().splitlines() if not line.startswith("alias")]
    assert "\n".join([f"added to {startup}:", *added]) in first.stdout
    assert f"{startup} loads it already" in without(EXTRAS["pipeline"], *install, home=tmp_path).stdout
    startup.write_text("")
    without(EXTRAS["pipeline"], *install, "--no-startup-file", home=tmp_path)
    assert startup.read_text() == ""


def test_what_most_programs_need_can_be_imported_from_the_top() -> None:
    assert all(getattr(rejoin, name).__name__ == name for name in rejoin.__all__)
    with pytest.raises(AttributeError, match="'rejoin' has no attribute 'AdminClient'"):
        rejoin.AdminClient  # noqa: B018
