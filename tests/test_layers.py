"""Who may import whom, as a table. Read from the source, so that an import inside a function counts, too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = (
    "protocol",
    "coordinator",
    "client",
    "in_process",
    "simulation",
    "pipeline",
    "benchmarks",
    "examples",
    "conformance",
    "tests",
)

MAY_IMPORT = {
    "protocol": ("protocol",),
    "coordinator.core": ("protocol", "coordinator.core", "coordinator.config"),
    "coordinator.config": (),
    "coordinator.telling": ("protocol", "coordinator.core"),
    "coordinator.cluster.view": ("coordinator.core.inputs",),
    "coordinator.cluster.leases": ("coordinator.cluster.view", "coordinator.core.inputs"),
    "coordinator.remembered": ("protocol",),
    "coordinator.offsets_log": ("protocol", "coordinator.offsets_log"),
    "coordinator": ("protocol", "coordinator"),
    "client.core": ("protocol", "client.core", "client.assignors", "client.config"),
    "client.assignors": ("protocol", "client.assignors"),
    "client.config": ("protocol", "client.assignors"),
    "client": ("protocol", "client"),
    # The one place that knows both: consumers on a coordinator without a socket between them.
    "in_process": ("protocol", "coordinator.testing", "client.core", "client.transport"),
    "simulation": (
        "protocol",
        "coordinator.core",
        "coordinator.config",
        "coordinator.telling",
        "coordinator.remembered",
        "coordinator.cluster.leases",
        "coordinator.cluster.view",
        "client.core",
        "client.assignors",
        "client.config",
        "client.processing_time",
        "simulation",
    ),
    "pipeline": ("protocol", "simulation", "pipeline"),
}
"""Package to packages of ours that it may import. The longest name that fits a module counts."""

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

CORES = ("coordinator.core", "coordinator.cluster.leases", "client.core", "client.assignors", "protocol")
KEEPS_FILES = ("protocol.journal",)
"""The journal's reader and writer are the one place in ``protocol`` that touches files."""

ONLY_HERE = {
    "asyncpg": ("coordinator.offsets_log.postgres_database",),
    "sqlite3": ("coordinator.offsets_log", "coordinator.topics_log", "coordinator.log_command"),
    "aiohttp": ("coordinator.server", "coordinator.control.routes", "coordinator.control.control", "client"),
    "pytest": ("coordinator.pytest_plugin",),
    "pyspark": ("pipeline",),
    "uvloop": ("coordinator", "client"),
}


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in ("protocol", "coordinator", "client", "in_process", "simulation", "pipeline"):
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
        if name.split(".")[0] in OURS:
            assert any(within(name, package) for package in allowed), f"{module} must not import {name}"


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_core_touches_nothing_of_the_world(module: str, path: Path) -> None:
    if any(within(module, core) for core in CORES) and module not in KEEPS_FILES:
        for name in imports(path, module):
            assert name.split(".")[0] not in NEVER_IN_A_CORE, f"{module} must not import {name}"


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_frameworks_stay_where_they_belong(module: str, path: Path) -> None:
    for name in imports(path, module):
        places = ONLY_HERE.get(name.split(".")[0])
        assert places is None or any(within(module, place) for place in places), f"{module} must not import {name}"


def test_the_table_is_about_something() -> None:
    names = [module for module, _ in modules()]
    assert {"protocol.base", "coordinator.core.node", "client.assignors.base"} <= set(names)
