"""``rejoin``: what its subcommands load, its help and completion, and what it says of a wrong or missing part."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import rejoin
from rejoin.__main__ import COMMANDS, EXTRAS, main
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


def without(extra: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run ``rejoin`` where an extra is not installed."""
    code = WITHOUT.format(missing=EXTRAS[extra], arguments=list(arguments))
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
    assert {name for name in loaded("--help") if name.startswith("rejoin.")} == {"rejoin.__main__"}


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


@pytest.mark.parametrize("command", ["serve", "consume", "journal-schema"])
def test_help_of_a_command_loads_no_heavy_library(command: str) -> None:
    heavy = ("aiohttp", "pydantic", "structlog", "jinja2", "pyspark", "numpy", "pyarrow")
    assert sorted(name for name in loaded(command, "--help") if name.partition(".")[0] in heavy) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_each_subcommand_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended([command, "--help"], capsys)
    assert code == 0
    assert out.lower().startswith(f"usage: rejoin {command}")


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["--version"], capsys) == (0, f"{version('rejoin')}\n", "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("grups", "rejoin: there is no command grups; is it groups?\n"),
        ("client", "rejoin: there is no command client; see rejoin --help\n"),
    ],
)
def test_an_unknown_subcommand_is_refused_with_the_nearest(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended([given, "--group", "g"], capsys) == (2, "", said)


@pytest.mark.parametrize("command", [name for name, command in COMMANDS.items() if command.extra])
def test_a_missing_extra_is_named(command: str, tmp_path: Path) -> None:
    extra = COMMANDS[command].extra
    assert extra is not None
    done = without(extra, command, "--help", home=tmp_path)
    assert done.returncode == 2
    package = EXTRAS[extra][0]
    assert done.stderr.splitlines() == [
        f"rejoin: {command} needs {package}, which is not installed: pip install 'rejoin[{extra}]'"
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_with_what_is_there(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    done = without("pipeline", "--install-completion", "--shell", shell, "--output", str(script), home=tmp_path)
    assert done.returncode == 0, done.stderr
    text = script.read_text()
    assert "consume" in text
    assert "--session-timeout-ms" in text or "session-timeout-ms" in text
    assert "sweep" not in text


def test_what_most_programs_need_can_be_imported_from_the_top() -> None:
    assert all(getattr(rejoin, name).__name__ == name for name in rejoin.__all__)
    with pytest.raises(AttributeError, match="'rejoin' has no attribute 'Producer'"):
        rejoin.Producer  # noqa: B018
