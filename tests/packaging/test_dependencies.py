"""The page about dependencies lists the packages of a plain installation, and those that ``rejoin serve`` loads."""

from __future__ import annotations

import re

from tests.packaging.dependencies import closure, loaded_by_serve
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([a-z0-9-]+) \| [\d.]+ \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)


def test_every_package_is_listed_with_those_that_need_it() -> None:
    listed, found = {name: set(needed_by.split(", ")) for name, needed_by, _ in ROWS}, closure()
    assert listed.keys() == found.keys()
    # Newer Pythons need fewer of them.
    assert [each.name for each in found.values() if not each.needed_by <= listed[each.name]] == []
    assert f"installs {len(found)} other packages" in PAGE


def test_serve_loads_those_that_the_page_says() -> None:
    said = {name for name, _, when in ROWS if when == "at the start"}
    assert loaded_by_serve(name for name, *_ in ROWS) == said
