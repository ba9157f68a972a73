"""Files, folders and functions stay small. What still exceeds a limit is listed here."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.sources.modules import statements, tree_of

pytestmark = pytest.mark.xdist_group("sources")
"""One process parses all modules for the rules about them."""

FILE_LINES = 500
"""A file has fewer."""

FOLDER_MODULES = 15
"""A folder has fewer, not counting ``__init__.py``."""

FUNCTION_LINES = 60
"""A function has no more, from ``def`` to its end."""

LONG_FILES: set[str] = set()

OF_PAGES = (".html", ".js", ".css")
"""What pages are made of is as short as modules are."""

LONG_FUNCTIONS: set[str] = set()


def files(*suffixes: str) -> Iterator[Path]:
    """Every file of the repository with one of the suffixes, by its path from the top; links are left out."""
    for top in sorted(ROOT.iterdir()):
        if top.is_dir() and not top.name.startswith(".") and top.name not in {"build", "dist", "out"}:
            for path in sorted(top.rglob("*")):
                if path.suffix in suffixes and not path.is_symlink():
                    yield path.relative_to(ROOT)


def modules() -> Iterator[Path]:
    """Every Python file of the repository."""
    return files(".py")


def test_files_are_short() -> None:
    every = files(".py", *OF_PAGES)
    long = {str(path) for path in every if len((ROOT / path).read_text().splitlines()) >= FILE_LINES}
    assert long == LONG_FILES


def test_folders_are_small() -> None:
    sizes = Counter(str(path.parent) for path in modules() if path.name != "__init__.py")
    assert {folder: size for folder, size in sizes.items() if size >= FOLDER_MODULES} == {}


def test_functions_are_short() -> None:
    long = {
        f"{path}: {node.name}"
        for path in modules()
        for node in statements(tree_of(ROOT / path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and length(node) > FUNCTION_LINES
    }
    assert long == LONG_FUNCTIONS


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1
