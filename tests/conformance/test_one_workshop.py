"""Scripts of all kinds share one player, one way to name values, and one random generator."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from conformance.sets import SETS
from conformance.steps.language import load_all
from tests.paths import ROOT

FILES = sorted((ROOT / "conformance").rglob("*.py"))
PLANS_OF_TROUBLE = ROOT / "conformance/clients/logs/lives.py"
"""Draws what is done to processes, not what is asked of brokers."""


def classes() -> Iterator[tuple[str, Path]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield node.name, path


def test_no_two_classes_of_the_workshop_have_one_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in classes():
        found[name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_random_numbers_are_drawn_in_one_place() -> None:
    drawing = [path for path in FILES if "Random(" in path.read_text()]
    # The third one says when a proxy is killed.
    others = ("conformance/player/random_play.py", "conformance/proxied/kill.py")
    assert drawing == [PLANS_OF_TROUBLE, *(ROOT / each for each in others)]


def test_no_two_scripts_of_a_cluster_share_a_group_or_a_transactional_id() -> None:
    for each in (*load_all(), *SETS):
        scripts = list(each.scripts())
        assert len({script.group for script in scripts}) == len(scripts), each.name
        assert len({(script.subject, script.transactional_id) for script in scripts}) == len(scripts), each.name
