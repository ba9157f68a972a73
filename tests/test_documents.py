"""What the documents say about the code is checked against the code."""

from __future__ import annotations

import gzip
import re

import pytest

from rejoin.coordinator.state_diagram import TRANSITIONS, page_module, state_diagram
from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.registry import APIS, Api
from tests.docs.texts import TEXTS
from tests.paths import ROOT
from tests.sources.modules import PACKAGES, imports, modules

FOLDERS = (
    "tests|examples|helpers|benchmarks|conformance|client|coordinator|protocol|journal|transcript|simulation|pipeline"
    "|docs|src"
)
EVERYTHING = "\n".join(TEXTS.values())


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_the_state_diagram_is_drawn_from_the_table(kind: str) -> None:
    assert f"```mermaid\n{state_diagram(kind)}\n```" in TEXTS["docs/groups.md"]


def test_the_laboratory_draws_the_states_of_the_tables() -> None:
    """``python -m rejoin.coordinator.state_diagram`` writes the module."""
    assert (ROOT / "pages" / "laboratory" / "group_states.js").read_text("utf-8") == f"{page_module()}\n"


@pytest.mark.parametrize("api", APIS, ids=lambda api: str(api.name))
def test_coverage_lists_each_api_with_its_versions(api: Api) -> None:
    lowest, highest = offered()[api.key]
    versions = str(lowest) if lowest == highest else f"{lowest}–{highest}"
    assert f"| {api.name} | {api.key} | {versions} |" in TEXTS["COVERAGE.md"]


@pytest.mark.parametrize("name", TEXTS)
def test_files_that_are_named_exist(name: str) -> None:
    named = re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", TEXTS[name])
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", TEXTS[name])
    here = (ROOT / name).parent
    assert [link for link in links if "://" not in link and not (here / link).exists()] == []


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", EVERYTHING, re.MULTILINE)) - targets == set()


def test_the_readme_is_short() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 250


def test_every_document_can_be_found_from_the_readme() -> None:
    assert [name for name in TEXTS if name != "README.md" and f"({name})" not in TEXTS["README.md"]] == []


def test_recorded_logs_do_not_name_where_the_recorder_ran() -> None:
    logs = sorted((ROOT / "tests" / "golden").rglob("server.log.gz"))
    assert [log for log in logs if b"/tmp/" in gzip.decompress(log.read_bytes())] == []


def test_the_map_has_every_top_level_folder() -> None:
    tracked = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("**/*.py"))}
    folders = tracked - {name for name in tracked if name.startswith(".")} - {"build", "dist", "out"}
    assert [name for name in sorted(folders) if f"`{name}/" not in TEXTS["ARCHITECTURE.md"]] == []


@pytest.mark.xdist_group("sources")
def test_the_packages_import_each_other_as_the_architecture_says() -> None:
    said: dict[tuple[str, str], set[str]] = {}
    table = TEXTS["ARCHITECTURE.md"].partition("| package | imports |")[2].partition("\n\n")[0]
    for package, cell in re.findall(r"^\| `(\w+)` \|(.*)\|$", table, re.MULTILINE):
        for part in cell.split(";"):
            names, _, rooms = part.partition(" only in ")
            for name in re.findall(r"`(\w+)`", names):
                said[package, name] = set(re.findall(r"`(\w+/\w+)`", rooms))
    found: dict[tuple[str, str], set[str]] = {}
    for module, path in modules():
        room = "/".join(module.split(".")[:2])
        for name in imports(path, module):
            top, _, ours = name.partition(".")
            package, other = module.split(".")[0], ours.split(".")[0]
            if top == "rejoin" and other in PACKAGES and other != package:
                found.setdefault((package, other), set()).add(room)
    assert said.keys() == found.keys()
    assert {edge: rooms for edge, rooms in said.items() if rooms and rooms != found[edge]} == {}
