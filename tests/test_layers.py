"""Who may import whom, as a table. Read from the source, so that an import inside a function counts, too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.sources.layers import MAY_IMPORT
from tests.sources.modules import (
    CORES,
    NEVER_IN_A_CORE,
    ONLY_HERE,
    PACKAGES,
    PrivateNames,
    imports,
    modules,
    private_names,
    tree_of,
)

pytestmark = pytest.mark.xdist_group("sources")
"""One process parses all modules for the rules about them."""

BESIDE = ("benchmarks", "examples", "conformance", "tests")


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def longest(table: dict[str, tuple[str, ...]], module: str) -> str:
    return max((package for package in table if within(module, package)), key=len)


def may_import(module: str, name: str) -> bool:
    top, _, ours = name.partition(".")
    if top in BESIDE or top in PACKAGES:  # what is ours is installed as rejoin.NAME
        return False
    if top != "rejoin" or ours.split(".")[0] not in PACKAGES:
        return True
    return any(within(ours, package) for package in MAY_IMPORT[longest(MAY_IMPORT, module)])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_imports_only_what_its_layer_may(package: str) -> None:
    wrong = [
        f"{module} must not import {name}"
        for module, path in modules(package)
        for name in imports(path, module)
        if not may_import(module, name)
    ]
    assert wrong == []


@pytest.mark.parametrize("core", CORES)
def test_a_core_touches_nothing_of_the_world(core: str) -> None:
    wrong = [
        f"{module} must not import {name}"
        for module, path in modules()
        if within(module, core)
        for name in imports(path, module)
        if name.split(".")[0] in NEVER_IN_A_CORE
    ]
    assert wrong == []


@pytest.mark.parametrize("library", ONLY_HERE)
def test_a_framework_stays_where_it_belongs(library: str) -> None:
    wrong = [
        f"{module} must not import {name}"
        for module, path in modules()
        for name in imports(path, module)
        if name.split(".")[0] == library and not any(within(module, package) for package in ONLY_HERE[library])
    ]
    assert wrong == []


def test_every_room_has_a_row() -> None:
    """The folders at the second level, and at the third in the coordinator's core."""
    names = [".".join(path.relative_to(ROOT).parent.parts) for _, path in modules() if path.name != "__init__.py"]
    rooms = {".".join(name.split(".")[: 3 if within(name, "coordinator.core") else 2]) for name in names}
    assert rooms - MAY_IMPORT.keys() == set()


OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Public in spite of their names."""


def test_no_package_touches_the_private_names_of_another() -> None:
    """Neither an attribute ``x._name`` nor an import of ``_name`` where only other folders of ours define that name.

    A folder is a package to itself.
    """
    folders: dict[Path, dict[Path, PrivateNames]] = {}
    for _, path in modules(*PACKAGES, "examples", "benchmarks"):
        folders.setdefault(path.parent, {})[path.relative_to(ROOT)] = private_names(tree_of(path))
    defined = {folder: set().union(*(each.defined for each in files.values())) for folder, files in folders.items()}
    found = []
    for folder, files in folders.items():
        others = set().union(*(names for other, names in defined.items() if other != folder))
        foreign = others - defined[folder] - OF_NAMED_TUPLES
        for path, names in files.items():
            found += [f"{path}:{each.lineno} {ast.unparse(each)}" for each in names.used if each.attr in foreign]
            found += [f"{path}:{line} import of {name}" for line, name in names.imported]
    assert found == []


def test_the_table_is_about_something() -> None:
    assert {"protocol.types", "coordinator.core.node", "client.assignors.base"} <= {module for module, _ in modules()}


IN_BOTH_CORES = {"Elapsed", "StepContext"}
"""The same thing in the coordinator's core and in the consumer's."""


def test_a_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for module, path in modules():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name: at for name, at in homes.items() if len(at) > 1 and name not in IN_BOTH_CORES} == {}
