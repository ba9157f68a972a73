"""What README and COVERAGE say about the code is checked against the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rejoin.coordinator.diagram import state_diagram
from rejoin.protocol.registry import APIS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
COVERAGE = (ROOT / "COVERAGE.md").read_text()


def test_the_state_diagram_is_drawn_from_the_table() -> None:
    assert f"```mermaid\n{state_diagram()}\n```" in README


@pytest.mark.parametrize("api", APIS, ids=lambda api: str(api.name))
def test_coverage_lists_each_api_with_its_versions(api: object) -> None:
    name, key = api.name, api.key  # type: ignore[attr-defined]
    lowest, highest = api.min_version, api.max_version  # type: ignore[attr-defined]
    versions = str(lowest) if lowest == highest else f"{lowest}–{highest}"
    assert f"| {name} | {key} | {versions} |" in COVERAGE


def test_files_that_are_named_exist() -> None:
    named = re.findall(r"`((?:tests|examples|benchmarks|client|coordinator|protocol)/[\w./-]+)`", README + COVERAGE)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= targets
