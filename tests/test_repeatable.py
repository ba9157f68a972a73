"""Examples of Hypothesis are the same whatever was imported before, so that a failure can be repeated."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[tuple[int, str]]:
    """What one test is given."""
    found: list[tuple[int, str]] = []

    @settings(max_examples=200)
    @given(st.integers(), st.text())
    def collect(number: int, text: str) -> None:
        found.append((number, text))

    collect()
    return found


@pytest.mark.skipif(settings.get_current_profile_name() != "repeatable", reason="this profile draws others each time")
def test_a_module_that_is_imported_changes_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    path = tmp_path / "numbers_and_words.py"
    path.write_text("".join(f"NAME_{number} = {number}, 'word {number}'\n" for number in range(70_000, 70_300)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    assert drawn() == before
