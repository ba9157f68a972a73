"""Our modules on which the result of a run depends: those that playing a run imports.

They are found in the source: from the module that plays a run, along every import, also those within functions. A
module that looks up plugins brings its whole package, since that is where ours are. Scenarios are arguments of a run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import rejoin

_ROOT: Final = Path(rejoin.__file__).parent
_PLAYS: Final = "rejoin.pipeline.sweep.tasks"
_PLUGINS: Final = "importlib.metadata.entry_points"


def code_version(root: Path = _ROOT) -> str:
    """Of the code that plays runs: the same text has the same version, wherever it is installed."""
    digest = sha256()
    for path in modules_of(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def modules_of(root: Path = _ROOT, start: str = _PLAYS) -> list[Path]:
    """The files of all modules of ours that a module imports, itself among them, in order."""
    found: set[Path] = set()
    left = [start]
    while left:
        for path in _files(root, left.pop()):
            if path in found:
                continue
            found.add(path)
            names = _imported(path.read_bytes())
            left += [name for name in names if name.split(".")[0] == "rejoin"]
            if _PLUGINS in names:
                left += [_name_of(root, other) for other in path.parent.glob("*.py")]
    return sorted(found)


def _files(root: Path, name: str) -> Iterator[Path]:
    """The files of a module and of the packages around it; the last part may be a name within the module."""
    folder = root
    yield root / "__init__.py"
    for part in name.split(".")[1:]:
        if (folder / f"{part}.py").is_file():
            yield folder / f"{part}.py"
            return
        folder /= part
        if (folder / "__init__.py").is_file():
            yield folder / "__init__.py"


@cache
def _imported(source: bytes) -> tuple[str, ...]:
    """The names that a module imports; to parse a module takes longer than all else here."""
    return tuple(_imports(ast.parse(source)))


def _imports(tree: ast.Module) -> Iterator[str]:
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            left += node.orelse  # what only a type checker imports is never run
        else:
            left += ast.iter_child_nodes(node)


def _name_of(root: Path, path: Path) -> str:
    return ".".join(("rejoin", *path.relative_to(root).with_suffix("").parts))
