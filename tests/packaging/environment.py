"""Fresh environments without a network: the dependencies of this one, and nothing of Rejoin. How README installs it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder)}))

    def run(self, *command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs in a folder."""
        program, *arguments = command
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=folder,
            env=_variables(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def pip_install(self, *what: str | Path) -> None:
        """Install offline, with the setuptools that is there."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check", "install"]
        offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]
        command = [*pip, *offline, *what]
        done = subprocess.run(command, env=_variables(), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}


def install_lines() -> list[list[str]]:
    """The commands of README's section about installing, word by word and without their comments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## Install.*?^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, "README has no section with commands that install"
    return [shlex.split(line, comments=True) for line in found[1].splitlines()]


def fresh(folder: Path) -> Environment:
    """An environment that has our dependencies only."""
    dependencies = folder / "dependencies"
    dependencies.mkdir(parents=True)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "rejoin" not in entry.name:
            (dependencies / entry.name).symlink_to(entry)
    venv.create(folder / "venv", symlinks=True)
    made = Environment(folder / "venv")
    (made.site_packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return made
