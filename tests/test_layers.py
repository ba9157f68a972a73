"""Who may import whom, as a table. Read from the source, so that an import inside a function counts, too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGES = ("protocol", "journal", "transcript", "coordinator", "client", "simulation", "pipeline")
BESIDE = ("benchmarks", "examples", "conformance", "tests")

CONSUMER_BASE = (
    "protocol",
    "journal.events",
    "client.assignors",
    *(
        f"client.core.{module}"
        for module in (
            "effects",
            "errors",
            "inputs",
            "metadata",
            "reactions",
            "requests",
            "sending",
            "state",
            "step_context",
            "subscription",
        )
    ),
)
"""What every room of the consumer's core stands on: its state, its vocabulary, and sending requests."""

SERVICE = (
    "protocol",
    "journal",
    "coordinator.service",
    "coordinator.core",
    "coordinator.config",
    "coordinator.leadership",
    "coordinator.pending",
    "coordinator.storage",
)

MAY_IMPORT = {
    "protocol": ("protocol",),
    "protocol.errors": (),
    "protocol.types": (),
    "protocol.fields": ("protocol.errors", "protocol.types"),
    "protocol.message": ("protocol.errors", "protocol.fields"),
    # A message knows no other; what is in common between them is in the base and the types.
    "protocol.messages": ("protocol.errors", "protocol.message", "protocol.types"),
    "protocol.records": ("protocol.message", "protocol.records", "protocol.types"),
    "protocol.embedded": ("protocol.java", "protocol.types"),
    "journal": ("protocol", "journal"),
    "transcript": ("protocol", "journal", "transcript", "coordinator.core", "coordinator.config"),
    "transcript.grammar": ("protocol", "journal.formatting", "transcript.grammar", "transcript.members"),
    "coordinator.config": (),
    "coordinator.core": ("protocol", "journal.events", "coordinator.core", "coordinator.config"),
    # What every shard needs knows no groups.
    "coordinator.core.runtime": (
        "protocol",
        "journal.events",
        "coordinator.config",
        "coordinator.core.effects",
        "coordinator.core.inputs",
        "coordinator.core.runtime",
        "coordinator.core.step_context",
    ),
    # Offsets ask what any kind of group answers.
    "coordinator.core.offsets": (
        "protocol",
        "journal.events",
        "coordinator.config",
        "coordinator.core.groups.group",
        "coordinator.core.groups.routing",
        "coordinator.core.groups.shard",
        "coordinator.core.inputs",
        "coordinator.core.offsets",
        "coordinator.core.runtime",
        "coordinator.core.step_context",
        "coordinator.core.topics.topics",
    ),
    "coordinator.leadership.view": ("protocol", "coordinator.core.inputs"),
    "coordinator.leadership.leases": ("protocol", "coordinator.leadership.view", "coordinator.core.inputs"),
    "coordinator.storage": ("protocol", "journal.file_lock", "coordinator.storage", "coordinator.core"),
    "coordinator.leadership": ("protocol", "coordinator.leadership", "coordinator.core", "coordinator.storage"),
    "coordinator.pending": ("protocol",),
    "coordinator.control": (
        "protocol",
        "journal",
        "transcript.recording",
        "coordinator.control",
        "coordinator.core",
        "coordinator.config",
        "coordinator.pending",
        "coordinator.storage",
    ),
    "coordinator.control.evidence": ("journal", "transcript", "coordinator.control", "coordinator.config"),
    "coordinator.service": SERVICE,
    # The service knows the control only where it puts it together and where it serves it.
    "coordinator.service.app": (*SERVICE, "coordinator.control"),
    "coordinator.service.http.control": (*SERVICE, "coordinator.control"),
    "coordinator.testing": (
        "protocol",
        "coordinator.testing",
        "coordinator.control",
        "coordinator.core",
        "coordinator.config",
        "coordinator.pending",
        "coordinator.service",
        "coordinator.storage",
    ),
    "coordinator.testing.results": ("coordinator.control.errors",),
    "coordinator": ("protocol", "journal", "coordinator"),
    "client.core": ("protocol", "journal.events", "client.core", "client.assignors", "client.config"),
    "client.core.state": CONSUMER_BASE,
    "client.core.group": (*CONSUMER_BASE, "client.core.group"),
    "client.core.group.join_loop": (*CONSUMER_BASE, "client.core.group", "client.core.offsets.commits"),
    "client.core.group.closing": (
        *CONSUMER_BASE,
        "client.core.group",
        "client.core.offsets.commits",
        "client.config",
    ),
    "client.core.offsets": (
        *CONSUMER_BASE,
        "client.core.offsets",
        "client.core.group.lookup",
        "client.core.group.membership",
    ),
    "client.assignors": ("protocol", "client.assignors"),
    "client.config": ("protocol", "client.assignors"),
    # The one place that knows both: consumers on a coordinator without a socket between them.
    "client.transports.in_process": ("protocol", "coordinator.testing", "client.core", "client.transports.base"),
    "client": ("protocol", "journal", "client"),
    "simulation": (
        "protocol",
        "journal",
        "transcript",
        "coordinator.core",
        "coordinator.config",
        "coordinator.leadership.leases",
        "coordinator.leadership.view",
        "client.core",
        "client.assignors",
        "client.config",
        "client.workload.processing_time",
        "simulation",
    ),
    "pipeline": ("protocol", "journal", "simulation", "pipeline"),
}
"""Package to packages of ours that it may import, all below ``rejoin``. The longest name that fits a module counts."""

NEVER_IN_A_CORE = (
    "aiohttp",
    "asyncio",
    "os",
    "random",
    "secrets",
    "socket",
    "structlog",
    "subprocess",
    "threading",
    "time",
    "uuid",
)
"""What a state machine must not touch: the world, its clock and its dice."""

CORES = (
    "coordinator.core",
    "coordinator.leadership.leases",
    "client.core",
    "client.assignors",
    "protocol",
    "journal.events",
)

ONLY_HERE = {
    "asyncpg": ("coordinator.storage.postgres.database",),
    "sqlite3": ("coordinator.storage", "coordinator.commands.log"),
    "aiohttp": ("coordinator.service", "client"),
    "pytest": ("coordinator.testing.pytest_plugin",),
    "pyspark": ("pipeline",),
    "uvloop": ("coordinator", "client"),
}


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append((".".join(parts).removesuffix(".__init__"), path))
    return found


def imports(path: Path, module: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            found += [f"{node.module}.{name.name}" for name in node.names]
    return found


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def longest(table: dict[str, tuple[str, ...]], module: str) -> str:
    return max((package for package in table if within(module, package)), key=len)


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_imports_only_what_its_layer_may(module: str, path: Path) -> None:
    allowed = MAY_IMPORT[longest(MAY_IMPORT, module)]
    for name in imports(path, module):
        top, _, ours = name.partition(".")
        assert top not in BESIDE, f"{module} must not import {name}"
        assert top not in PACKAGES, f"{module} imports {name}, which is installed as rejoin.{name}"
        if top == "rejoin" and ours and ours.split(".")[0] in PACKAGES:
            assert any(within(ours, package) for package in allowed), f"{module} must not import {name}"


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_core_touches_nothing_of_the_world(module: str, path: Path) -> None:
    if any(within(module, core) for core in CORES):
        for name in imports(path, module):
            assert name.split(".")[0] not in NEVER_IN_A_CORE, f"{module} must not import {name}"


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_frameworks_stay_where_they_belong(module: str, path: Path) -> None:
    for name in imports(path, module):
        places = ONLY_HERE.get(name.split(".")[0])
        assert places is None or any(within(module, place) for place in places), f"{module} must not import {name}"


def test_the_table_is_about_something() -> None:
    names = [module for module, _ in modules()]
    assert {"protocol.types", "coordinator.core.node", "client.assignors.base"} <= set(names)
