"""CONTRIBUTING.md is checked against the code: the quick tests, and the places that each kind of change touches."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions
from importlib.metadata import requires as requirements_of
from pathlib import Path
from typing import Final

from tests.paths import ROOT
from tests.sources.modules import tree_of

OURS: Final = ("tests", "conformance", "benchmarks", "examples")


def quick_tests() -> list[Path]:
    """Files that ``make quick`` collects."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (named,) = re.findall(r"^QUICK := (.*)$", makefile, re.MULTILINE)
    found: list[Path] = []
    for pattern in named.split():
        matching = sorted(ROOT.glob(pattern))
        assert matching, f"Makefile: QUICK names {pattern}, which does not exist"
        for path in matching:
            found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return found


def distribution(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def needed_by(name: str) -> list[str]:
    try:
        return requirements_of(name) or []
    except PackageNotFoundError:  # of another platform or Python
        return []


def quick_packages() -> set[str]:
    """Distributions that ``make quick`` installs, with all that they need themselves."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [distribution(each) for each in project["project"]["dependencies"] + project["dependency-groups"]["quick"]]
    for name in wanted:
        more = [distribution(each) for each in needed_by(name) if "extra ==" not in each and "sys_platform" not in each]
        wanted += [each for each in more if each not in wanted]
    return set(wanted)


def imports_on_loading(path: Path) -> Iterator[str]:
    """Names that a module imports while it is loaded: not within functions, not for types, not within a try."""
    waiting: list[ast.stmt] = list(tree_of(path).body)
    for node in waiting:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.With | ast.ClassDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)
        ):
            waiting += node.body


def path_of(module: str) -> Path | None:
    base = ROOT / module.removeprefix("rejoin.").replace(".", "/")
    return next((each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()), None)


def test_quick_tests_need_only_what_make_quick_installs() -> None:
    installed, distributions = quick_packages(), packages_distributions()
    waiting, missing = [ROOT / "tests" / "conftest.py", *quick_tests()], []
    seen = set(waiting)
    for path in waiting:
        for name in imports_on_loading(path):
            top = name.split(".")[0]
            if top == "rejoin" or top in OURS:
                found = path_of(name)
                if found is not None and found not in seen:
                    seen.add(found)
                    waiting.append(found)
            elif top not in sys.stdlib_module_names and top not in ("", "__future__"):
                owners = {each.lower().replace("_", "-") for each in distributions.get(top, [top])}
                if not owners & installed:
                    missing.append(f"{path.relative_to(ROOT)} imports {name}")
    assert missing == []
    assert len(waiting) > 100
