"""What people type, and what they read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rejoin.commands import build
from rejoin.simulation.scenario.reading import scenario_from

NAME = "coordinator_failover_in_stable"


def run(*words: str) -> int:
    try:
        return build()(list(words), exit_on_error=False, result_action="return_value") or 0
    except SystemExit as end:
        return int(end.code or 0)


def test_a_run_prints_a_timeline_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", NAME) == 0
    out = capsys.readouterr().out
    assert "Does the group rebalance?" in out
    assert re.search(r"0:04:00\.000  \* node-\d, the coordinator of orders-app, crashes and is back in 1m", out)
    assert "orders-app  first rebalance: orders-app-1 joined" in out
    assert re.search(r"rebalances +1\n +by cause +join-new 1\n", out)


def test_the_page_is_one_file_without_anything_from_outside(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("simulate", NAME, "--quiet", "--html", str(page)) == 0
    text = page.read_text()
    assert "@@" not in text
    assert '"owners":["orders-app-1"' in text
    assert not re.search(r"(src|href)=|https?://|@import", text)


DEPLOY = """
question: Who rebalances?
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  app: {topics: orders, consumers: 3, assignor: range, static: true, session_timeout: 30s, start: {every: 200ms}}
horizon: 2m
events:
  - {at: 60s, deploy: {group: app, every: 10s, down: 5s}}
"""


def test_variants_are_compared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "deploy.yaml").write_text(DEPLOY)
    assert run("simulate", str(tmp_path / "deploy.yaml"), "--compare", "static=true,false", "--seed", "3") == 0
    out = capsys.readouterr().out
    assert "static=true" in out
    assert re.search(r"rebalances +│ +1 +│ +7", out), out


ODD_NAMES = """
question: "[red]Who\\e[31m?"
topics:
  orders: {partitions: 6}
groups:
  "app\\e[2J": {topics: orders, consumers: 3, start: {every: 5s}}
horizon: 1m
"""


def test_names_are_shown_and_never_obeyed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "deploy.yaml").write_text(ODD_NAMES)
    for more in ([], ["--compare", "consumers=2,3"]):
        assert run("simulate", str(tmp_path / "deploy.yaml"), *more) == 0
        out = capsys.readouterr().out
        assert "".join(out.split("\n")).isprintable()
        assert more or "app\\x1b[2J, 60.0 s" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "nothing.yaml"), "nothing.yaml: cannot be read"),
        (("simulate", "stuck_handlr"), "and none in the gallery; is it stuck_handler?"),
        (("simulate", "stuck_handlr.yaml"), "is it stuck_handler?"),
        (("simulate", "nothing"), "and none in the gallery; the nearest are "),
        (("lab", "nosuch"), ", and rejoin gallery list shows all\n"),
        (("simulate", "nowhere/stuck_handler.yaml"), "nowhere/stuck_handler.yaml: cannot be read: No such file"),
        (("gallery", "answer", "stuck_handlr"), "is it stuck_handler?"),
        (("gallery", "show", "stuck_handlr"), "is it stuck_handler?"),
        (("simulate", NAME, "--compare", "assinor=range"), "a group has no key 'assinor'"),
        (("simulate", NAME, "--compare", "assignor=range,rnage"), "unknown assignor 'rnage'"),
        (("simulate", NAME, "--compare", "consumers=few"), "consumers: expected a whole number, not 'few'"),
        (("simulate", NAME, "--compare", "assignor"), "expected KEY=VALUE"),
        (("search", "--seeds", "5:1"), "expected at least one seed"),
    ],
)
def test_mistakes_are_reported(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_the_gallery_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gallery", "list") == 0
    assert "static_rolling_deploy\n    Does static membership make" in capsys.readouterr().out
    assert run("gallery", "answer", "stuck_handler") == 0
    assert "max.poll.interval.ms" in capsys.readouterr().out
    assert run("gallery", "show", "stuck_handler") == 0
    assert scenario_from(capsys.readouterr().out).events[0].kind == "stuck"


def test_a_search_says_how_much_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("search", "--seeds", "0:2") == 0
    assert re.search(r"2 seeds, .* of virtual time, \d+ steps, \d+ faults: nothing found", capsys.readouterr().out)
