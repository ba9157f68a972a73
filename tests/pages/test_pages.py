"""Pages: whatever is filled in is escaped, and the service needs none of this to start."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from typing import get_args

import pytest
from jinja2 import UndefinedError

from rejoin import pages
from rejoin.journal.events.coordinator import CauseClass
from rejoin.pages import Markup
from rejoin.pipeline.findings.cause_texts import CAUSES, SHORT_CAUSES

HOSTILE = "</script><script>alert(1)</script>&\"'"
SWEEP = dict.fromkeys(("size", "criterion", "not_beaten", "spread", "settings", "pairs", "charts", "failed"), "")


def test_what_is_filled_in_is_escaped_and_markup_is_not() -> None:
    page = pages.render(
        "rejoin.pipeline.sweep", "page.html", title=HOSTILE, **{**SWEEP, "settings": Markup("<table></table>")}
    )
    assert "alert(1)</script>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#34;&#39;") == 2
    assert "<table></table>" in page


def test_nothing_in_data_ends_its_script() -> None:
    data = pages.script_data({"group": HOSTILE, "word": "Ü"})
    assert "<" not in data
    assert json.loads(data) == {"group": HOSTILE, "word": "Ü"}


def test_a_value_that_is_missing_is_an_error() -> None:
    values = {name: value for name, value in SWEEP.items() if name != "spread"}
    with pytest.raises(UndefinedError, match="spread"):
        pages.render("rejoin.pipeline.sweep", "page.html", title="", **values)


@pytest.mark.parametrize("package", ["rejoin.coordinator.service.pages", "rejoin.pipeline.report"])
def test_every_page_has_the_one_palette(package: str) -> None:
    values = {"title": "t", "head": "", "body": "", "foot": "", "data": pages.script_data({})}
    page = pages.render(package, "live.html" if "service" in package else "page.html", **values)
    assert page.startswith("<!doctype html>\n<html")
    assert page.rstrip().endswith("</html>")
    assert page.count("color-scheme: light dark") == 1
    assert "{%" not in page


def test_scripts_of_the_laboratory_keep_their_state_in_the_run() -> None:
    """A module has at most two variables of its own; what belongs to a run is in ``run.js``."""
    for script in files("rejoin.pages.laboratory").iterdir():
        if script.name.endswith(".js"):
            declared = re.findall(r"^let (.*?);$", script.read_text("utf-8"), re.MULTILINE)
            assert sum(len(each.split(",")) for each in declared) <= 2, script.name


def test_a_service_starts_without_the_templates() -> None:
    check = "import sys, rejoin.coordinator.service.app; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_every_cause_of_a_rebalance_has_its_words_on_both_pages() -> None:
    causes = set(get_args(CauseClass))
    live = pages.render("rejoin.coordinator.service.pages", "live.html")
    assert causes <= CAUSES.keys() & SHORT_CAUSES.keys()
    assert [cause for cause in causes if f'"{cause}": "' not in live] == []
