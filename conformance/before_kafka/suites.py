"""Test suites of client libraries on a real Kafka, directly and through ``rejoin proxy``.

    python -m conformance.before_kafka.suites [--aiokafka FOLDER] [--kafka-python FOLDER]

A folder is a copy of the library's sources, of which only the tests are used: the library itself comes from PyPI. Tests
that need other listeners than an open one, or brokers that they start, are left out. What failed is repeated once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from conformance.before_kafka.results import ProxiedResult, keep
from conformance.before_kafka.stand import HERE, USER, ProxiedKafka
from conformance.clients.programs import BUILT, run
from conformance.kafka.broker import class_path, kafka_version

SECONDS: Final = 2_400.0
PACKAGES: Final = (
    *("pytest", "pytest-asyncio", "pytest-mock", "pytest-timeout", "py"),
    *("cramjam", "crc32c", "lz4", "python-snappy", "xxhash", "zstandard"),
)
"""Packages that the tests need beside the library."""


@dataclass(frozen=True)
class LibrarySuite:
    """The tests of a library: their folder, which of them, and the settings that its own brokers have."""

    library: str
    tests: str
    chosen: tuple[str, ...]
    options: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)

    def environment(self, servers: str) -> dict[str, str]:
        """The environment of its process: where the broker is."""
        known = {"BROKER": servers, "KAFKA_URI": f"kafka://{servers}", "KAFKA_VERSION": kafka_version()}
        return {**os.environ, **known, "KAFKA_ROOT": str(BUILT), "PYTHONPATH": str(HERE)}


_OWN: Final = {
    "auto.create.topics.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": f"User:ANONYMOUS;User:{USER}",
}
SUITES: Final = (
    LibrarySuite(
        "aiokafka",
        "tests",
        tuple(
            f"tests/test_{name}.py"
            for name in (
                *("admin", "client", "conn", "consumer", "coordinator", "pep492", "producer", "sender"),
                *("transactional_consumer", "transactional_producer"),
            )
        ),
        ("-p", "suite_plugin", "-o", "asyncio_mode=auto", "-k", "not ssl", f"--docker-image=kafka:{kafka_version()}"),
        _OWN | {"num.partitions": "2"},
    ),
    LibrarySuite(
        "kafka-python",
        "test",
        tuple(f"test/integration/test_{name}_integration.py" for name in ("admin", "consumer", "producer")),
        (),
        _OWN | {"num.partitions": "4"},
    ),
)


def environment() -> Path:
    """The interpreter with the libraries and what their tests need."""
    folder = BUILT / "suites"
    python = folder / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", str(folder))
    wanted = [f"{suite.library}=={version(suite.library)}" for suite in SUITES]
    run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted, *PACKAGES)
    return python


def outcomes(report: Path) -> Iterator[tuple[str, str]]:
    """Each test of a report with its problem, empty where it passed; those that were skipped are left out."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '').replace('.', '/')}::{case.get('name')}"
        kinds = {child.tag: child for child in case}
        if "skipped" in kinds:
            continue
        found = kinds.get("failure", kinds.get("error"))
        yield name, "" if found is None else " ".join((found.get("message") or "failed").split())[:160]


def _pytest(python: Path, suite: LibrarySuite, folder: Path, servers: str, chosen: Iterable[str]) -> dict[str, str]:
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    # A thread that a test left behind may keep the process from its end.
    timeouts = ("--timeout=180", "--timeout-method=thread") if suite.library == "aiokafka" else ("--timeout=180",)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *timeouts]
    with (folder / "output").open("ab") as out:
        subprocess.run(
            [*command, *chosen],
            cwd=folder,
            env=suite.environment(servers),
            stdout=out,
            stderr=out,
            check=False,
            timeout=SECONDS,
        )
    if not report.exists():
        raise RuntimeError(f"{suite.library}: {(folder / 'output').read_text(errors='replace')[-2000:]}")
    return dict(outcomes(report))


def _played(python: Path, suite: LibrarySuite, sources: Path, servers: str, failed: list[str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="suite-") as made:
        folder = Path(made)
        shutil.copytree(sources / suite.tests, folder / suite.tests)
        chosen = ("-k", _named(failed)) if failed else ()
        return _pytest(python, suite, folder, servers, [*suite.options, *chosen, *suite.chosen])


def _named(tests: list[str]) -> str:
    """An expression for ``-k`` that chooses these tests; parameters are left out."""
    return " or ".join(dict.fromkeys(name.rpartition("::")[2].partition("[")[0] for name in tests))


async def _on_kafka(python: Path, suite: LibrarySuite, sources: Path, jars: str, *, behind: bool) -> ProxiedResult:
    """The tests, and on another broker those that failed."""
    found: dict[str, str] = {}
    defects: list[str] = []
    for _ in range(2):
        failed = [name for name, problem in found.items() if problem]
        if found and not failed:
            break
        async with ProxiedKafka(jars, settings=suite.settings) as kafka:
            servers = kafka.proxy.bootstrap_servers if behind else kafka.direct
            played = await asyncio.to_thread(_played, python, suite, sources, servers, failed)
            found |= {name: problem for name, problem in played.items() if name in failed or not failed}
            defects += await kafka.defects()
            if behind:
                print(f"{suite.library}: {kafka.proxy.counts()}", flush=True)
    return ProxiedResult(
        f"suite of {suite.library}",
        version(suite.library),
        {} if behind else found,
        found if behind else {},
        defects if behind else [],
    )


async def main() -> int:
    """Play the suites whose folders are given; 1 where the proxy made a difference."""
    parser = argparse.ArgumentParser(prog="python -m conformance.before_kafka.suites", description=__doc__)
    for suite in SUITES:
        parser.add_argument(f"--{suite.library}", type=Path, metavar="FOLDER", help="a copy of its sources")
    given = vars(parser.parse_args())
    python = await asyncio.to_thread(environment)
    jars = await class_path()
    differing = 0
    for suite in SUITES:
        sources = given[suite.library.replace("-", "_")]
        if sources is None:
            continue
        both = (_on_kafka(python, suite, sources, jars, behind=behind) for behind in (False, True))
        direct, behind = await asyncio.gather(*both)
        result = ProxiedResult(direct.name, direct.version, direct.directly, behind.behind, behind.defects)
        for line in result.lines():
            print(f"{result.name} {line}", flush=True)
        keep(result)
        differing += not result.is_alike
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
