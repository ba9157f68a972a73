"""What `make test` needs for the tests of pages: installed as root, and one loud line where that cannot be."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests import paths

SCRIPT: Final = paths.ROOT / "tests" / "install_browser.sh"
ROOT, ANYBODY = "echo 0", "echo 1000"
SKIPPED: Final = "PAGE TESTS ARE SKIPPED: missing is {} and {}; install it and run this again.\n"


def run(folder: Path, **programs: str) -> tuple[str, str, list[str]]:
    """What the script prints, and the calls of apt-get, where there are only these programs. It always succeeds."""
    for name, text in programs.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    environment = {"PATH": str(folder)}
    done = subprocess.run(["/bin/sh", str(SCRIPT)], env=environment, capture_output=True, text=True, check=True)
    asked = folder / "asked"
    return done.stdout, done.stderr, asked.read_text().splitlines() if asked.exists() else []


def apt(folder: Path, then: str = "true") -> str:
    return f'echo "$*" >> {folder}/asked; {then}'


def test_root_installs_what_is_missing(tmp_path: Path) -> None:
    said, complaint, asked = run(tmp_path, id=ROOT, node="", apt_get=apt(tmp_path))
    assert (said, complaint) == ("Installing chromium ...\n", "")
    assert asked == ["-q update", "-q install -y chromium"]


def test_node_is_installed_too(tmp_path: Path) -> None:
    *_, asked = run(tmp_path, id=ROOT, apt_get=apt(tmp_path))
    assert asked[-1] == "-q install -y chromium nodejs"


@pytest.mark.parametrize("browser", ["chromium", "chromium-browser", "google-chrome"])
def test_where_nothing_is_missing_nothing_happens(browser: str, tmp_path: Path) -> None:
    programs = {browser.replace("-", "_"): "", "node": "", "id": ROOT, "apt_get": apt(tmp_path)}
    assert run(tmp_path, **programs) == ("", "", [])


@pytest.mark.parametrize(
    ("programs", "missing", "why"),
    [
        ({"id": ANYBODY, "apt_get": "exit 1"}, "chromium nodejs", "only root can install"),
        ({"id": ROOT, "node": ""}, "chromium", "there is no apt-get"),
        (
            {"id": ROOT, "node": "", "apt_get": "echo one >&2; echo E: no network >&2; exit 100"},
            "chromium",
            "apt-get could not install it: E: no network",
        ),
    ],
)
def test_elsewhere_one_line_says_that_page_tests_are_skipped(
    programs: dict[str, str], missing: str, why: str, tmp_path: Path
) -> None:
    _, complaint, _ = run(tmp_path, **programs)
    assert complaint == SKIPPED.format(missing, why)


def test_make_test_and_ci_run_it() -> None:
    rules = (paths.ROOT / "Makefile").read_text()
    assert re.search(r"^test: .*\bbrowser\b", rules, re.MULTILINE)
    assert "browser:\n\t@tests/install_browser.sh\n" in rules
    assert "\nmake test\n" in (paths.ROOT / ".ci" / "run").read_text()
