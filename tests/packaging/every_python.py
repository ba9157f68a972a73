"""Builds the release, checks it, and installs it outside the clone as users do: by pip, pipx, uv tool and uvx.

    python -m tests.packaging.every_python            # make installs: each Python from 3.11 to 3.14 that is found
    python -m tests.packaging.every_python 3.12       # this one alone

The commands of README's section about installing are carried out first, where the index has this release as well.
In each environment ``rejoin`` serves, lets a client of another library through, explains its group, simulates, and
reports. A row of the table is one environment; the first failure ends the run with exit code 1 and its output.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from rejoin.release import DISTRIBUTION, release
from tests.packaging.environment import install_lines
from tests.paths import ROOT

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
EXTRA: Final = "tables"
"""A report of a small journal needs no more."""

PATIENCE_S: Final = 600
GROUP: Final = "orders-app"
"""The client's group, and that of the simulated scenario."""


class Failed(Exception):
    """A command that did not end as it should, with its output."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder outside the clone, which is also the home directory of its programs."""

    folder: Path
    more: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment beside those that this process has."""

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return kept | {"HOME": str(self.folder), **self.more}

    def run(self, *command: object) -> str:
        """The standard output of a command. Raises :class:`Failed`."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{' '.join(words)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


@dataclass(frozen=True, slots=True)
class Built:
    """The files of a release, and the tools that built, checked and install them."""

    tools: Path
    wheel: Path
    sdist: Path

    @property
    def requirement(self) -> str:
        """The wheel with the extra, as all installers take it."""
        return f"{DISTRIBUTION}[{EXTRA}] @ {self.wheel.as_uri()}"


def build(place: Place) -> Built:
    """Build sdist and wheel, and check both as the package index and its readers do."""
    place.run(sys.executable, "-m", "venv", "tools")
    tools = place.folder / "tools" / "bin"
    pip = (tools / "python", "-m", "pip", "--quiet", "install", "--constraint", ROOT / "constraints.txt")
    place.run(*pip, "pip")  # the one of a fresh environment may know no groups
    place.run(*pip, "--group", f"{ROOT / 'pyproject.toml'}:release")
    place.run(tools / "python", "-m", "build", "--outdir", place.folder / "dist", ROOT)
    [wheel] = (place.folder / "dist").glob("*.whl")
    [sdist] = (place.folder / "dist").glob("*.tar.gz")
    place.run(tools / "twine", "check", "--strict", wheel, sdist)
    place.run(tools / "check-wheel-contents", wheel)
    return Built(tools, wheel, sdist)


def interpreters(wanted: Sequence[str]) -> dict[str, Path]:
    """The wanted Pythons that run, from the path or from pyenv, by version."""
    found = {}
    for version in wanted:
        beside = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        named = shutil.which(f"python{version}")
        for path in (*beside, *([Path(named)] if named else [])):
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            if said.returncode == 0 and said.stdout.startswith(f"Python {version}."):
                found[version] = path
                break
    return found


def by_pip(place: Place, built: Built, python: Path) -> list[object]:
    place.run(python, "-m", "venv", "venv")
    place.run(place.folder / "venv/bin/python", "-m", "pip", "--quiet", "install", built.requirement)
    return [place.folder / "venv/bin/rejoin"]


def by_pipx(place: Place, built: Built, python: Path) -> list[object]:
    place.run(built.tools / "pipx", "install", "--quiet", "--python", python, built.requirement)
    return [place.folder / ".local/bin/rejoin"]


def by_uv_tool(place: Place, built: Built, python: Path) -> list[object]:
    place.run(built.tools / "uv", "--quiet", "tool", "install", "--python", python, built.requirement)
    return [place.folder / ".local/bin/rejoin"]


def by_uvx(place: Place, built: Built, python: Path) -> list[object]:
    command = [built.tools / "uvx", "--quiet", "--python", python, "--from", built.requirement, "rejoin"]
    place.run(*command, "--version")
    return command


INSTALLERS: Final[dict[str, Callable[[Place, Built, Path], list[object]]]] = {
    "pip": by_pip,
    "pipx": by_pipx,
    "uv tool": by_uv_tool,
    "uvx": by_uvx,
}


@contextmanager
def served(place: Place, rejoin: Sequence[object]) -> Iterator[tuple[dict[str, Any], float]]:
    """A broker with its addresses, and the seconds until it was ready; it must end in order."""
    ready = place.folder / "ready.json"
    options = ("serve", "--control", "--port", "0", "--topic", "orders:3", "--ready-file", ready)
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in (*rejoin, *options)],
        cwd=place.folder,
        env=place.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        took = time.perf_counter() - began
        if not line or json.loads(line) != (addresses := json.loads(ready.read_bytes())):
            raise Failed("rejoin serve did not print the addresses that it wrote to its file")
        yield addresses, took
    finally:
        process.terminate()
        code = process.wait(timeout=PATIENCE_S)
    if code not in {0, -15}:
        raise Failed(f"rejoin serve ended with {code} after SIGTERM")


CLIENT: Final = """
import sys
from kafka import KafkaConsumer, KafkaProducer
servers, group = sys.argv[1:]
producer = KafkaProducer(bootstrap_servers=servers)
for number in range(3):
    producer.send("orders", b"%d" % number, partition=number).get(timeout=30)
consumer = KafkaConsumer(
    "orders", bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest", consumer_timeout_ms=30_000
)
found = sorted(next(consumer).value for _ in range(3))
assert found == [b"0", b"1", b"2"], found
consumer.close()
"""


def live_through(place: Place, rejoin: Sequence[object]) -> float:
    """Serve, consume, explain, simulate and report, and return the seconds until the broker was ready."""
    if place.run(*rejoin, "--version").strip() != release():
        raise Failed("rejoin --version is not the release that was built")
    with served(place, rejoin) as (addresses, took):
        # The client's library is in the environment of the tests, and not in the one that is tried.
        place.run(sys.executable, "-c", CLIENT, addresses["bootstrap_servers"], GROUP)
        said = place.run(*rejoin, "why", GROUP, "--bootstrap-server", addresses["url"])
        if GROUP not in said:
            raise Failed(f"rejoin why does not name the group:\n{said}")
    place.run(*rejoin, "simulate", "cold_start", "--quiet", "--journal", "journal")
    place.run(*rejoin, "report", "journal", "--out", "report")
    if GROUP not in (place.folder / "report/report.html").read_text(encoding="utf-8"):
        raise Failed("rejoin report wrote no page about the simulated group")
    return took


def follow_readme(place: Place, built: Built, python: Path) -> None:
    """Carry out what README says, with a folder beside the index that has the release. Raises :class:`Failed`."""
    place.run(python, "-m", "venv", "venv")
    found = {"PIP_FIND_LINKS": str(built.wheel.parent), "UV_FIND_LINKS": str(built.wheel.parent)}
    place = Place(place.folder, found | {"PATH": f"{place.folder}/venv/bin:{built.tools}:{os.environ['PATH']}"})
    for line in install_lines():
        place.run(*line)
    place.run("pipx", "run", "--python", python, DISTRIBUTION, "simulate", "cold_start")
    # The GitHub Action installs by itself.
    files = {name: f"{place.folder}/{name}" for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    action = Place(place.folder, {**place.more, **files, "RUNNER_TEMP": str(place.folder)})
    action.run(ROOT / "action/rejoin.sh", "install")
    action.run(ROOT / "action/rejoin.sh", "start")
    action.run(ROOT / "action/rejoin.sh", "explain")


def size_mb(folder: Path) -> float:
    """The size of the files below a folder in megabytes; what several environments share counts once in each."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 1_000_000


def main(wanted: Sequence[str]) -> int:
    """The exit code; prints one row for each environment."""
    if importlib.util.find_spec("kafka") is None:
        print("expected kafka-python beside the tests, as make setup installs it")
        return 1
    console = Console(width=None if sys.stdout.isatty() else 110)
    pythons = interpreters(wanted or PYTHONS)
    for absent in [version for version in wanted or PYTHONS if version not in pythons]:
        console.print(f"Python {absent} is not on this machine, and was not tried")
    table = Table("Python", "by", "installed in", "size", "ready after", title=f"{DISTRIBUTION} {release()}")
    with tempfile.TemporaryDirectory(prefix="rejoin-release-") as name:
        try:
            built = build(Place(Path(name)))
            for version, python in list(pythons.items())[:1]:
                place = Place(Path(name) / "readme")
                place.folder.mkdir()
                follow_readme(place, built, python)
                console.print(f"README's section about installing and the GitHub Action, with Python {version}: well")
            for file in (built.wheel, built.sdist):
                console.print(f"{file.name}: {file.stat().st_size / 1_000_000:.1f} MB, checked")
            for version, python in pythons.items():
                for installer, install in INSTALLERS.items():
                    place = Place(Path(name) / f"{installer.replace(' ', '-')}-{version}")
                    place.folder.mkdir()
                    began = time.perf_counter()
                    rejoin = install(place, built, python)
                    installed = time.perf_counter() - began
                    size = size_mb(place.folder)
                    ready = live_through(place, rejoin)
                    table.add_row(version, installer, f"{installed:.0f} s", f"{size:.0f} MB", f"{ready:.2f} s")
                    console.print(f"Python {version} by {installer}: well")
                    shutil.rmtree(place.folder)
        except Failed as problem:
            console.print(str(problem), markup=False)
            return 1
    console.print(table)
    return 0 if pythons else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
