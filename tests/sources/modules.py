"""Our modules as they are parsed, once in a process, for all tests that look at the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.paths import ROOT

PACKAGES = (
    "protocol",
    "journal",
    "pages",
    "transcript",
    "coordinator",
    "client",
    "simulation",
    "pipeline",
    "demo",
    "conform",
    "proxy",
)

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
    "aiohttp": ("coordinator.service", "client", "simulation.web", "proxy.control.http", "proxy.live.views"),
    "pytest": ("coordinator.testing.pytest_plugin",),
    "jinja2": ("pages",),
    "pyspark": ("pipeline",),
    "uvloop": (),
}


@cache
def tree_of(path: Path) -> ast.Module:
    """A module, parsed once for all rules."""
    return ast.parse(path.read_text())


@cache
def modules(*packages: str) -> list[tuple[str, Path]]:
    found = []
    for package in packages or PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append((".".join(parts).removesuffix(".__init__"), path))
    return found


_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node. No expression has one in it, so that none is looked into."""
    for name in _BODIES:
        for each in getattr(node, name, ()):
            yield each
            yield from statements(each)


@cache
def imports(path: Path, module: str) -> list[str]:
    found = []
    for node in statements(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            found += [f"{node.module}.{name.name}" for name in node.names]
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


class PrivateNames(NamedTuple):
    """The private functions, classes, variables and attributes of a module, and where it uses those of others."""

    defined: set[str]
    used: list[ast.Attribute]
    imported: list[tuple[int, str]]
    """Line and name."""


def private_names(tree: ast.Module) -> PrivateNames:
    found = PrivateNames(set(), [], [])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if is_private(node.name):
                found.defined.add(node.name)
        elif isinstance(node, ast.Name):
            if is_private(node.id) and isinstance(node.ctx, ast.Store):
                found.defined.add(node.id)
        elif isinstance(node, ast.Attribute):
            if is_private(node.attr):
                if not is_own(node):
                    found.used.append(node)
                elif isinstance(node.ctx, ast.Store):
                    found.defined.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rejoin."):
            found.imported.extend((node.lineno, each.name) for each in node.names if is_private(each.name))
    return found


def is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
