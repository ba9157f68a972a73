"""Which modules the laboratory needs: those that its worker imports, at once or in a function, and so on from there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import rejoin

ENTRY: Final = "rejoin.simulation.web.worker"
ROOT: Final = Path(rejoin.__path__[0])
DATA: Final = ("simulation/lessons.yaml", "simulation/gallery/*.yaml")
"""The files that these modules read, below the package."""


def modules_from(entry: str = ENTRY) -> dict[str, Path]:
    """The files of the package's modules that one module leads to, by name."""
    found: dict[str, Path] = {}
    open_names = [entry]
    while open_names:
        name = open_names.pop()
        path = _file_of(name)
        if path is None or name in found:
            continue
        found[name] = path
        open_names.append(name.rpartition(".")[0])  # importing a module imports its package
        open_names += [each for each in _imported_by(name, path) if each.partition(".")[0] == rejoin.__name__]
    return dict(sorted(found.items()))


def others_imported_by(modules: dict[str, Path]) -> list[str]:
    """Other imports of these modules, and names that may be a module: of ``from a import b`` both ``a`` and ``a.b``."""
    names = {each for name, path in modules.items() for each in _imported_by(name, path)}
    return sorted(each for each in names if each.partition(".")[0] != rejoin.__name__)


def data_files() -> list[Path]:
    """The data that the modules read."""
    return [path for pattern in DATA for path in sorted(ROOT.glob(pattern))]


def _file_of(name: str) -> Path | None:
    if not name:
        return None
    base = ROOT.joinpath(*name.split(".")[1:])
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def _imported_by(name: str, path: Path) -> Iterator[str]:
    """The modules that a file may import: of ``from a import b`` both ``a`` and ``a.b``, which may be one."""
    for node in _executed(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            module = node.module or ""
            yield module
            yield from (f"{module}.{each.name}" for each in node.names)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _executed(child)
