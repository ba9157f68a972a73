"""The documents of a release agree with what is released."""

from __future__ import annotations

import re
import tomllib

from rejoin.release import DISTRIBUTION
from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_newest_entry_of_the_changelog_is_this_release() -> None:
    [newest, *_] = re.findall(r"^## (\d+\.\d+\.\d+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest == PROJECT["version"]


def test_the_distribution_has_one_name_everywhere() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/**/*.py")]
    foreign = re.compile(r"(pip install|uvx|pipx install|pipx run|uv tool install) '?rejoin(?!-kafka)\b")
    assert [str(path) for path in texts if ".venv" not in path.parts and foreign.search(path.read_text())] == []
