"""The pytest plugin, as a project that uses it sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from rejoin.coordinator.testing.pytest_plugin import OPTIONS
from rejoin.transcript.player import play

pytest_plugins = ("pytester",)

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
addopts = --strict-markers -p no:cacheprovider -p no:xdist
filterwarnings = error
"""

FILES = {
    "test_fixture": """
        import json
        from urllib.request import urlopen

        def test_it_listens(group_coordinator):
            with urlopen(f"{group_coordinator.url}/healthz", timeout=60) as answer:
                assert json.load(answer)["status"] == "ok"
        """,
    "test_both": """
        import pytest
        from rejoin.coordinator.testing import BlockingGroupCoordinator, GroupCoordinator

        pytestmark = pytest.mark.group_coordinator(clock="virtual", topics={"orders": 3})

        async def test_async(group_coordinator: GroupCoordinator):
            assert (await group_coordinator.advance(45_000)).advanced_ms == 45_000

        @pytest.mark.group_coordinator(clock="real", settings={"group.max.size": 7, "group_min_session_timeout_ms": 1})
        def test_plain(group_coordinator: BlockingGroupCoordinator):
            assert group_coordinator.behind.app.control.clock.kind == "real"
            assert group_coordinator.set_topic("orders", 3).partitions == 3
            settings = group_coordinator.behind.app.runtime.node.settings
            assert (settings.group_max_size, settings.group_min_session_timeout_ms) == (7, 1)
        """,
    "test_evidence": """
        import json
        from urllib.request import Request, urlopen

        def test_wrong(group_coordinator):
            body = json.dumps({"groupId": "orders-app", "generationId": 1, "memberId": "m"}).encode()
            headers = {"Kafka-Client-Id": "billing", "Content-Type": "application/json"}
            asked = Request(f"{group_coordinator.url}/v1/heartbeat", body, headers)
            with urlopen(asked, timeout=60) as answer:
                assert json.load(answer)["errorCode"] == 0

        def test_right(group_coordinator):
            pass
        """,
    "test_wait": """
        def test_no_member_joins(group_coordinator):
            group_coordinator.wait_for_group("orders-app", state="Stable", members=3, timeout_ms=10)
        """,
    "test_marker": """
        import pytest

        @pytest.mark.group_coordinator(clok="virtual")
        def test_misspelt(group_coordinator):
            pass
        """,
    "test_awaits": """
        async def test_forgets(group_coordinator):
            group_coordinator.advance(6_000)

        async def test_fails_for_another_reason(group_coordinator):
            group_coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR")
            assert await group_coordinator.group("g") is not None

        async def test_awaits(group_coordinator):
            await group_coordinator.group("g")
        """,
    "test_mistakes": """
        import pytest
        from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest

        def test_wrong_name(group_coordinator):
            group_coordinator.add_fault(keys="Hearbeat", error="NOT_COORDINATOR")

        @pytest.mark.group_coordinator(settings={"group.max.sise": 1})
        def test_wrong_setting(group_coordinator):
            pass

        @pytest.mark.group_coordinator(brokers=2)
        def test_wrong_broker(group_coordinator):
            group_coordinator.move_leader("orders", 0, to=2)

        @pytest.mark.group_coordinator(brokers=2)
        async def test_wrong_broker_awaited(group_coordinator):
            await group_coordinator.stop_broker(7)

        @pytest.mark.group_coordinator(brokers=2)
        async def test_wrong_broker_called(group_coordinator):
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
            await group_coordinator.call(beat, broker=7)
        """,
    "test_brokers": """
        import pytest
        from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest

        @pytest.mark.group_coordinator(brokers=3, clock="virtual", topics={"orders": 3}, socket=False)
        def test_several(group_coordinator):
            for number in range(60):
                beat = HeartbeatRequest(group_id="orders-app", generation_id=number, member_id="x" * 1_000)
                group_coordinator.call(beat, client_id="billing")
            group_coordinator.kill_broker(2)
            assert False
        """,
}
"""A project's tests, without their endings; no two tests have the same name."""


class Run(NamedTuple):
    """What pytest printed of the project: how each test ended, and the report on each that failed, by its name."""

    outcomes: dict[str, str]
    reports: dict[str, str]
    folder: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All files are run by one pytest in a process of its own, as it takes longer to start than to run them."""
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text(INI)
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(dedent(text).lstrip())
    command = [sys.executable, "-m", "pytest", "-v", "-W", "error", "--junitxml=junit.xml"]
    command += ["--group-coordinator-transcripts=kept"]
    environment = {**os.environ, "COLUMNS": "80", "PY_COLORS": "0", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    outcomes = dict(re.findall(r"^test_\w+\.py::(\w+) ([A-Z]+) +\[", done.stdout, re.MULTILINE))
    _, *parts = re.split(r"^_+ (?:ERROR at setup of )?(test_\w+) _+$", done.stdout.partition("\n====")[2], flags=re.M)
    reports = {name: text.partition("\n====")[0] for name, text in zip(parts[::2], parts[1::2], strict=True)}
    return Run(outcomes, reports, folder)


def matcher(report: str) -> pytest.LineMatcher:
    return pytest.LineMatcher(report.splitlines())


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".ini", pytest=INI)
    return pytester


def test_the_fixture_is_there_and_in_an_async_test_its_methods_are_awaited(run: Run) -> None:
    assert [run.outcomes[name] for name in ("test_it_listens", "test_async", "test_plain")] == ["PASSED"] * 3


def test_a_failing_tests_report_carries_what_happened(run: Run) -> None:
    assert (run.outcomes["test_wrong"], run.outcomes["test_right"]) == ("FAILED", "PASSED")
    assert "test_right" not in run.reports
    report = run.reports["test_wrong"]
    matcher(report).fnmatch_lines(
        [
            "*group coordinator: what happened*",
            "# test_wrong failed.",
            "group orders-app",
            "billing beat id=m generation=1",
            "----",
            "billing  Heartbeat -> UNKNOWN_MEMBER_ID",
        ]
    )
    assert report.count("group coordinator: what happened") == 1
    evidence = report.partition("# test_wrong failed.")[2]
    assert not play(evidence).differing, "what the report shows can be played"


def test_junit_xml_has_what_happened(run: Run) -> None:
    cases = ElementTree.parse(run.folder / "junit.xml").iter("testcase")
    texts = {case.get("name"): "".join(case.itertext()) for case in cases}
    transcript = texts["test_wrong"].partition("# test_wrong failed.")
    assert transcript[1]
    assert not play("".join(transcript[1:])).differing
    assert "test_several failed. No transcript" in texts["test_several"]
    assert not texts["test_right"]


def test_the_transcript_of_a_failed_test_is_a_file_that_can_be_played(run: Run) -> None:
    kept = {path.name: path for path in (run.folder / "kept").iterdir()}
    file = kept["test_evidence.py-test_wrong.transcript"]
    assert f"# This transcript is in {file}" in run.reports["test_wrong"]
    assert "billing beat id=m generation=1" in file.read_text()
    assert not play(file.read_text()).differing
    assert not [name for name in kept if "test_right" in name or "test_several" in name]


@pytest.mark.parametrize("option", ["", "-"])
def test_without_a_directory_it_is_in_the_cache(project: pytest.Pytester, option: str) -> None:
    project.makepyfile("def test_wrong(group_coordinator):\n    assert False")
    given = f"group_coordinator_transcripts = {option}\n"
    project.makefile(".ini", pytest=INI.replace("-p no:cacheprovider", "") + given)
    project.runpytest_subprocess().assert_outcomes(failed=1)
    assert len(list(project.path.rglob("*.transcript"))) == (0 if option else 1)


def test_of_several_brokers_the_report_has_how_they_are_and_the_last_requests(run: Run) -> None:
    assert run.outcomes["test_several"] == "FAILED"
    report = run.reports["test_several"].partition("group coordinator: what happened")[2]
    matcher(report).fnmatch_lines(
        [
            "# test_several failed. No transcript: a transcript needs a single broker, *.",
            "brokers",
            "  1  running, leads * partitions",
            "  2  stopped, leads * partitions",
            "  3  running, leads * partitions",
            "groups",
            "  none",
            "requests",
            "  (earlier ones are left out; requests() has all)",
            '  +0ms  billing  Heartbeat v4 {"groupId":"orders-app","generationId":10,*… -> UNKNOWN_MEMBER_ID',
        ]
    )
    assert report.count("billing  Heartbeat") == 50
    assert len(report) < 20_000


def test_a_wait_that_fails_says_how_the_group_looked(run: Run) -> None:
    assert run.outcomes["test_no_member_joins"] == "FAILED"
    matcher(run.reports["test_no_member_joins"]).fnmatch_lines(
        ["E*NotReached: group 'orders-app' was not Stable with 3 members within 10 ms; there is no*"]
    )


def test_under_xdist_each_test_has_its_own(project: pytest.Pytester) -> None:
    project.makefile(".ini", pytest=INI.replace(" -p no:xdist", ""))
    project.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(12))
        def test_own(group_coordinator, number):
            assert group_coordinator.group("g") is None
            group_coordinator.set_topic("t", number + 1)
            assert number != 7
        """
    )
    result = project.runpytest_subprocess("-n", "2")
    result.assert_outcomes(passed=11, failed=1)
    assert "topic t 8" in result.stdout.str(), "the report travels from the worker with its section"


def test_a_marker_that_makes_no_sense_is_reported(run: Run) -> None:
    assert run.outcomes["test_misspelt"] == "ERROR"
    report = run.reports["test_misspelt"]
    matcher(report).fnmatch_lines([f"*expected {', '.join(OPTIONS)}, by name; not clok*"])
    for each in (report, run.reports["test_wrong_setting"]):
        assert "During handling" not in each
        assert each.count("@pytest.mark.group_coordinator: ") == 1


def test_a_test_that_does_not_ask_for_it_does_not_pay_for_it(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import sys

        def test_light():
            heavy = ("rejoin.coordinator.service", "rejoin.coordinator.core", "aiohttp")
            assert not any(name.startswith(heavy) for name in sys.modules)
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_forgotten_await_fails_the_test_that_forgot_it(run: Run) -> None:
    names = ("test_forgets", "test_fails_for_another_reason", "test_awaits")
    assert [run.outcomes[name] for name in names] == ["FAILED", "FAILED", "PASSED"]
    matcher(run.reports["test_forgets"]).fnmatch_lines(
        ["group_coordinator: not awaited, so it had no effect: advance() at *.py:2; expected await before the call"]
    )
    matcher(run.reports["test_fails_for_another_reason"]).fnmatch_lines(
        ["*not awaited, so it had no effect: add_fault() at *.py:5; *"]
    )


def test_a_mistake_is_shown_at_the_line_of_the_test(run: Run) -> None:
    assert (run.outcomes["test_wrong_name"], run.outcomes["test_wrong_setting"]) == ("FAILED", "ERROR")
    called, marked = run.reports["test_wrong_name"], run.reports["test_wrong_setting"]
    assert "E       ValueError: keys: there is no API 'Hearbeat'; is it Heartbeat?" in called
    assert (
        "@pytest.mark.group_coordinator: settings: there is no setting group.max.sise; is it group.max.size?" in marked
    )
    names = ("test_wrong_broker", "test_wrong_broker_awaited", "test_wrong_broker_called")
    brokers = "".join(run.reports[name] for name in names)
    assert "OperationRefused: there is no topic 'orders'" in brokers
    assert brokers.count(" there is no broker ") == 2
    assert "/coordinator/" not in called + marked + brokers
    assert len((called + marked).splitlines()) < 30
