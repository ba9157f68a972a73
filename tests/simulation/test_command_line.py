"""What people type, and what they read."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from rejoin.client.log_writer.libraries import LIBRARIES
from rejoin.commands import build
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.client_logs.statements import ClientLogFile
from rejoin.simulation.commands import exploring
from rejoin.simulation.explore.explorer import Exploration, Reached
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


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "short.yaml"),
        ("lab", "short.yaml", "--no-browser"),
        ("simulate", "good.yaml", "--compare", "session_timeout=10s,1s"),
        ("sweep", "grid.yaml"),
    ],
)
def test_a_session_without_a_heartbeat_is_refused_before_anything_is_played(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.yaml").write_text(DEPLOY)
    Path("short.yaml").write_text(DEPLOY.replace("session_timeout: 30s", "session_timeout: 1s"))
    Path("grid.yaml").write_text("scenario: good.yaml\nparameters:\n  session_timeout: [10s, 1s]\nseeds: 2\n")
    assert run(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "groups.app.session_timeout is 1s, and heartbeat_interval is 3s; expected a session_timeout of more" in (
        printed.err
    )


def test_a_consumer_group_is_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = DEPLOY.replace("assignor: range, static: true, session_timeout: 30s", "protocol: consumer")
    (tmp_path / "deploy.yaml").write_text(scenario)
    assert run("simulate", str(tmp_path / "deploy.yaml"), "--compare", "consumers=2,3") == 0
    assert "consumers=2" in capsys.readouterr().out


TWO_GROUPS = """
horizon: 20s
topics:
  clicks: {partitions: 6}
  orders: {partitions: 12}
groups:
  app: {topics: [clicks, orders], consumers: 3}
  audit: {topics: clicks, consumers: 3}
"""


def test_each_group_has_its_own_line_for_partitions_that_have_an_owner_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "two.yaml").write_text(TWO_GROUPS)
    assert run("simulate", str(tmp_path / "two.yaml")) == 0
    again = re.findall(r"  (\S+)  (.*) have an owner again", capsys.readouterr().out)
    partitions: dict[str, set[str]] = {}
    for group_id, shown in again:
        for topic, ranges in (part.split(":") for part in shown.split(" ")):
            for first, last in ((each + "-" + each).split("-")[:2] for each in ranges.split(",")):
                partitions.setdefault(group_id, set()).update(f"{topic}-{n}" for n in range(int(first), int(last) + 1))
    clicks = {f"clicks-{index}" for index in range(6)}
    assert partitions == {"app": clicks | {f"orders-{index}" for index in range(12)}, "audit": clicks}


def test_a_port_in_use_is_said_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run("lab", NAME, "--no-browser", "--port", str(port)) == 2
    problem = capsys.readouterr().err
    assert problem == f"rejoin: --port {port}: is in use; choose another port, or leave it out to take a free one\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("app.log", b"hello\n", "app.log:1: expected keys such as topics, groups and horizon; rejoin lab shows"),
        ("server.log", b"[2024-01-01 10:00:00] INFO x\n", "server.log:1: not YAML"),
        ("empty.yaml", b"", "empty.yaml: is empty"),
        ("binary", b"\xff\x00\xfe", "binary: is not UTF-8 text"),
        ("rows.jsonl", b"hello\n", "rows.jsonl:1: expected a row of a journal"),
    ],
)
def test_the_laboratory_says_what_else_a_file_may_be(
    name: str, content: bytes, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert run("lab", str(tmp_path / name), "--no-browser") == 2
    problem = capsys.readouterr().err
    assert message in problem
    assert "a journal, which is a directory or a .jsonl file" in problem
    assert f"there is rejoin report {tmp_path / name}\n" in problem


def test_a_mistake_in_a_scenario_is_no_reason_to_speak_of_logs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "deploy.yaml").write_text(DEPLOY.replace("consumers: 3", "consumers: few"))
    assert run("lab", str(tmp_path / "deploy.yaml"), "--no-browser") == 2
    assert capsys.readouterr().err.endswith("groups.app.consumers: expected a whole number, not 'few'\n")


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
        (("simulate", "nothing.yaml"), "nothing.yaml: no such file; expected a scenario in YAML"),
        (("simulate", "stuck_handlr"), "no such scenario, in the gallery or as a file; is it stuck_handler?"),
        (("simulate", "stuck_handlr.yaml"), "stuck_handlr.yaml: no such file; expected a scenario in YAML"),
        (("simulate", "nothing"), "no such scenario, in the gallery or as a file; the nearest are "),
        (("lab", "nosuch"), ", and rejoin gallery list shows all\n"),
        (("simulate", "nowhere/stuck_handler.yaml"), "nowhere/stuck_handler.yaml: no such file; expected"),
        (("simulate", "two_members_join"), "is a world, and no scenario; rejoin explore two_members_join plays"),
        (("explore", "cold_start"), "cold_start: is a scenario, and no world; rejoin simulate plays it"),
        (("explore", "two_member_join"), "there is no such file and no such world; is it two_members_join?"),
        (("gallery", "answer", "stuck_handlr"), "is it stuck_handler?"),
        (("gallery", "show", "stuck_handlr"), "is it stuck_handler?"),
        (("simulate", NAME, "--compare", "assinor=range"), "a group has no key 'assinor'"),
        (("simulate", NAME, "--compare", "assignor=range,rnage"), "unknown assignor 'rnage'"),
        (("simulate", NAME, "--compare", "consumers=few"), "consumers: expected a whole number, not 'few'"),
        (("simulate", NAME, "--compare", "assignor"), "expected KEY=VALUE"),
        (("search", "--seeds", "5:1"), "expected at least one seed"),
        (
            ("simulate", NAME, "--html", "/dev/null/x"),
            "--html /dev/null/x: cannot be written: Not a directory; expected",
        ),
        (("simulate", NAME, "--html", "nowhere/x"), "--html nowhere/x: cannot be written: No such file or directory;"),
        (("simulate", NAME, "--journal", "/dev/null/x.jsonl"), "--journal /dev/null/x.jsonl: cannot be written: "),
        (("lab", NAME, "--port", "70000"), "--port 70000: expected 0 to 65535"),
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


GROWN = """
question: Who rebalances?
topics:
  orders: {partitions: 6, records_per_second: 0.2}
groups:
  app: {topics: orders, consumers: 3, assignor: range, metadata_max_age: 6s, start: {every: 200ms}}
horizon: 4m
events:
  - {at: 60s, deploy: {group: app, every: 10s, down: 5s}}
  - {at: 100s, crash: {who: app-2, down: 60s}}
  - {at: 180s, grow: {topic: orders, to: 8}}
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_consumers_log_in_the_words_of_a_library(library: str, tmp_path: Path) -> None:
    (tmp_path / "grown.yaml").write_text(GROWN)
    out = tmp_path / "logs"
    words = ("--quiet", "--client-logs", library, "--client-logs-into", str(out))
    assert run("simulate", str(tmp_path / "grown.yaml"), *words) == 0
    paths = sorted(out.rglob("*.log"))
    assert [f"{path.relative_to(out)}" for path in paths] == [f"app/app-{number}.log" for number in (1, 2, 3)]
    for path in paths:
        found = list(ClientLogFile(str(path), path.stem).statements(path.read_bytes().splitlines()))
        assert [each for each in found if isinstance(each, BrokenLine)] == []
        assert len(found) > (0 if library == "rdkafka" else 4)  # librdkafka logs little unless it is asked to


@pytest.mark.parametrize(
    ("name", "library", "problem"),
    [
        (NAME, "jav", "no such library; expected one of java, rdkafka, "),
        ("member_that_never_acknowledges_a_revocation", "java", "uses the consumer protocol"),
        ("cooperative_scale_out", "sarama", "uses cooperative-sticky, which sarama does not have"),
        ("static_id_used_twice", "kafkajs", "is static, which kafkajs does not log"),
    ],
)
def test_a_library_that_cannot_log_a_run_is_refused(
    name: str, library: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("simulate", name, "--client-logs", library, "--client-logs-into", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert f"--client-logs {library}: " in said
    assert problem in " ".join(said.split())


def test_a_path_that_cannot_be_followed_is_refused_before_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "path.yaml"
    file.write_text(
        "horizon: 1m\ntopics: {t: {partitions: 1}}\n"
        "groups: {g: {topics: [t], consumers: 1}}\nexplore: {path: [0, 99]}\n"
    )
    for command in ("simulate", "lab"):
        assert run(command, str(file)) == 2
        problem = (
            "explore.path.1: there is no choice 99, and the last one is 1; expected a path that rejoin explore has"
        )
        printed = capsys.readouterr()
        assert f": {file}: {problem}" in printed.err
        assert not printed.out


def test_an_exploration_that_is_stopped_says_how_far_it_came(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, on_progress: Callable[[Reached], None], **__: object) -> Exploration:
        on_progress(Reached(depth=3, states=1_200, edges=2_000, frontier=700, seconds=4.0))
        raise KeyboardInterrupt

    monkeypatch.setattr(exploring, "explored", stopped)
    assert run("explore", "two_members_join") == 130
    assert capsys.readouterr().out.startswith("stopped at depth 3, after 1,200 states: no invariant was violated")


def test_an_exploration_that_has_met_enough_states_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explore", "two_members_join", "--states", "3") == 0
    assert "were not reached; more --states go deeper" in capsys.readouterr().out
