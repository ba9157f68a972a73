"""Prints the packages that ``pip install rejoin-kafka`` brings: ``python -m tests.packaging.dependencies``.

Sizes are those of the installed files without bytecode. A package is loaded by ``rejoin serve`` if one of its modules
is there once both protocols are served, without any request.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from benchmarks.start_up import modules_when_listening
from rejoin.release import DISTRIBUTION
from tests.paths import ROOT

_LATER: Final = {
    "cramjam": "with the first compressed batch",
    "google-re2": "with the first regular expression",
    "jinja2": "with the first page",
    "markupsafe": "with the first page",
    "prometheus-client": "with the first request for metrics",
    "pyyaml": "with `--users-file`",
    "xxhash": "with the first consumer group of KIP-848",
}
"""Packages that a running node loads when they are needed; those neither here nor loaded at the start are for other
commands, and for options that are not plain."""


@dataclass(slots=True)
class Package:
    """An installed package, with the names of those that need it."""

    name: str
    megabytes: float
    needed_by: set[str] = field(default_factory=set)


def closure() -> dict[str, Package]:
    """Every package of an installation without extras, by name."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, Package] = {}
    pending = [(requirement, DISTRIBUTION) for requirement in metadata["dependencies"]]
    while pending:
        text, by = pending.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = _normalized(requirement.name)
        if name not in found:
            installed = distribution(name)
            found[name] = Package(name, _megabytes(installed))
            pending += [(each, name) for each in installed.requires or ()]
        found[name].needed_by.add(by)
    return found


def loaded_by_serve(packages: Iterable[str]) -> set[str]:
    """The packages that ``rejoin serve`` has loaded when it listens."""
    with tempfile.TemporaryDirectory() as folder:
        modules = {name.partition(".")[0] for name in modules_when_listening(Path(folder))}
    distributions = packages_distributions()
    names = {_normalized(name) for module in modules for name in distributions.get(module, ())}
    return names & set(packages)


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _megabytes(installed: Distribution) -> float:
    files = [Path(str(each.locate())) for each in installed.files or () if each.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1_000_000


def _when(name: str, loaded: set[str]) -> str:
    return "at the start" if name in loaded else _LATER.get(name, "no")


def main() -> int:
    """Print the table as Markdown, the largest package first."""
    packages = closure()
    loaded = loaded_by_serve(packages)
    print("| package | MB | needed by | loaded by `rejoin serve` |\n|---|---|---|---|")
    for each in sorted(packages.values(), key=lambda package: (-package.megabytes, package.name)):
        by = ", ".join(sorted(each.needed_by))
        print(f"| {each.name} | {each.megabytes:.2f} | {by} | {_when(each.name, loaded)} |")
    sizes = [each.megabytes for each in packages.values()]
    of_start = sum(packages[name].megabytes for name in loaded)
    print(f"\n{len(sizes)} packages, {sum(sizes):.1f} MB; loaded at the start: {len(loaded)}, {of_start:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
