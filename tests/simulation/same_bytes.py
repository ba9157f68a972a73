"""``python -m tests.simulation.same_bytes [PYTHON ...]``: the same seed gives the same bytes in every Python.

Each interpreter gets an environment of its own under ``build/same_bytes``, plays scenarios of the gallery and random
ones under two hash seeds, and hashes their journals. Without arguments all from 3.11 on that are found are taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import paths

ROOT = paths.ROOT
GALLERY = (
    "autoscaler_thrash",
    "coordinator_failover_in_mid_rebalance",
    "flapping_consumer",
    "static_id_used_twice",
    "topic_growth",
)
SEEDS = range(20)
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def play() -> dict[str, str]:
    """By scenario: the hash of its journal. Runs in the interpreter that is looked at."""
    from rejoin.simulation.run import play as play_scenario  # noqa: PLC0415
    from rejoin.simulation.scenario.model import Scenario  # noqa: PLC0415
    from rejoin.simulation.scenario.reading import read_scenario  # noqa: PLC0415 (not there yet where environments are made)
    from rejoin.simulation.search.schedules import failover_scenario, random_scenario  # noqa: PLC0415

    scenarios = {name: read_scenario(ROOT / "simulation" / "gallery" / f"{name}.yaml") for name in GALLERY}
    for seed in SEEDS:
        scenarios[f"faults {seed}"] = Scenario.model_validate(random_scenario(seed))
        scenarios[f"failovers {seed}"] = Scenario.model_validate(failover_scenario(seed))
    hashes = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, scenario in scenarios.items():
            path = Path(directory) / "journal.jsonl"
            lines: list[str] = []
            play_scenario(scenario, journal=path, print_line=lines.append)
            hashes[name] = hashlib.sha256(path.read_bytes() + "\n".join(lines).encode()).hexdigest()
    return hashes


def interpreters() -> list[str]:
    """Every Python of a version we know that is on the PATH or was installed by pyenv."""
    found = []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        installed = sorted(pyenv.glob(f"{version}.*/bin/python"))
        path = str(installed[-1]) if installed else shutil.which(f"python{version}")
        if path is not None:
            found.append(path)
    return found


def environment(python: str) -> Path:
    """The interpreter of an environment in which the laboratory runs; made when it is first asked for."""
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    place = ROOT / "build" / "same_bytes" / version
    inside = place / "bin" / "python"
    if not (place / "made").exists():
        print(f"making an environment of Python {version} ...", flush=True)
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", str(place)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(inside), "--quiet", "--disable-pip-version-check"]
        install = [*pip, "install", "--constraint", str(ROOT / "constraints.txt"), "pydantic", "PyYAML"]
        subprocess.run(install, check=True)
        (place / "made").touch()
    return inside


def main(pythons: list[str]) -> int:
    """Compare all of them with the first."""
    first: dict[str, str] | None = None
    wrong = 0
    for python in pythons or interpreters():
        inside = environment(python)
        for hash_seed in ("0", "4711"):
            done = subprocess.run(
                [str(inside), "-m", "tests.simulation.same_bytes", "--play"],
                capture_output=True,
                text=True,
                check=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
            )
            played = json.loads(done.stdout)
            first = played if first is None else first
            differ = [name for name in first if played[name] != first[name]]
            wrong += len(differ)
            result = f"differ: {', '.join(differ)}" if differ else f"{len(played)} runs, the same bytes"
            print(f"{python}, hash seed {hash_seed}: {result}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--play"]:
        print(json.dumps(play()))
    else:
        sys.exit(main(sys.argv[1:]))
