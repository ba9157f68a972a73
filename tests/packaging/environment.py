"""Fresh environments without a network: the dependencies of this one, and nothing of Rejoin."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path


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
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        program, *arguments = command
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def pip_install(self, *what: str | Path) -> None:
        """Install offline, with the setuptools that is there."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check", "install"]
        offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]
        done = subprocess.run([*pip, *offline, *what], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr


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
