"""Every known bug has a log that shows it and one that is near; both are read as ``rejoin why`` and reports do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq
import pytest

from rejoin.journal.kafka_logs.bug_signs import BROKER, BUG_SIGNS
from rejoin.journal.kafka_logs.clients.names import (
    AIOKAFKA,
    BROD,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    KAFKAJS,
    RDKAFKA,
    SARAMA,
)
from rejoin.pipeline.findings.known_bugs.bug import KnownBug
from rejoin.pipeline.findings.known_bugs.table import BUGS
from rejoin.pipeline.report.run import make_report
from rejoin.pipeline.why.sources import open_source
from tests.docs.tables import check_table, rows_of
from tests.paths import GOLDEN, ROOT

CASES: Final = (GOLDEN / "known-bugs" / "cases.txt").read_text()
STATES: Final = {
    BROKER: "[2025-03-09 07:00:00,100] INFO Kafka version: {} (org.apache.kafka.common.utils.AppInfoParser)",
    JAVA: "[2025-03-09 07:00:00,100] INFO Kafka version: {} (org.apache.kafka.common.utils.AppInfoParser)",
    RDKAFKA: "%7|1741503600.100|INIT|van-1#consumer-1| [thrd:app]: librdkafka v{} (0x10000ff) van-1#consumer-1 "
    "initialized (builtin.features gzip,snappy, debug 0x2000)",
    KAFKA_PYTHON: "2025-03-09 07:00:00,100 - pip - INFO - Successfully installed kafka-python-{}",
    AIOKAFKA: "2025-03-09 07:00:00,100 INFO pip: Requirement already satisfied: aiokafka=={}",
    KAFKAJS: '{{"level":"WARN","timestamp":"2025-03-09T07:00:00.100Z","logger":"kafkajs","message":"[Consumer] x",'
    '"stack":"at run (/app/node_modules/.pnpm/kafkajs@{}/node_modules/kafkajs/src/index.js:1:1)"}}',
    SARAMA: "2025-03-09T07:00:00.100Z goroutine 1: /go/pkg/mod/github.com/!i!b!m/sarama@v{}/client.go:150",
    FRANZ_GO: '{{"level":"info","ts":"2025-03-09T07:00:00.100Z","msg":"starting",'
    '"caller":"/go/pkg/mod/github.com/twmb/franz-go@v{}/pkg/kgo/client.go:150"}}',
    BROD: "2025-03-09 07:00:00.100 [info] loaded /app/lib/brod-{}/ebin",
}
"""How a log states the version of each software, before anything else."""


class Case(NamedTuple):
    """The two logs of a bug."""

    shows: str
    near: str


def _cases() -> dict[str, Case]:
    found = {}
    for section in CASES.split("=== ")[1:]:
        name, _, rest = section.partition("\n")
        shows, near = re.split(r"^--- .*\n", rest, flags=re.MULTILINE)[1:]
        found[name] = Case(shows, near)
    return found


LOGS: Final = _cases()


def affected(bug: KnownBug) -> str:
    """A version that has the bug."""
    if bug.since:
        return bug.since
    major, minor, patch = (int(each) for each in bug.fixed[0].split("."))
    return f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.0"


def bugs_in(folder: Path, text: str, name: str) -> list[dict[str, Any]]:
    log = folder / "van.log"
    log.write_text(text)
    rows = open_source(log).findings()
    return [row for row in rows if row["finding"] == "known-bug" and f"{name[1:]}:" in row["title"]]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_found_by_its_sign_and_by_the_version_that_the_log_states(bug: KnownBug, tmp_path: Path) -> None:
    case = LOGS[bug.name]
    (unstated,) = bugs_in(tmp_path, case.shows, bug.name)
    assert unstated["title"] == f"Perhaps {bug.name}: {bug.title}"
    assert f"If it is {bug.called} {bug.versions}, this may be" in unstated["text"]
    assert "does not state" in unstated["text"]
    assert unstated["severity"] == "low"
    version = affected(bug)
    (stated,) = bugs_in(tmp_path, f"{STATES[bug.software].format(version)}\n{case.shows}", bug.name)
    assert stated["title"] == f"{re.sub('^a ', 'A ', bug.name)}: {bug.title}"
    assert f"states version {version} of {bug.called}" in stated["text"]
    assert "If it is" not in stated["text"]
    for row in (unstated, stated):
        assert bug.fixed[-1] in row["advice"]
        assert row["advice"].endswith(f"See {bug.link}.")
        assert row["rebalances"] or row["evidence"]
    for fixed in bug.fixed:
        assert bugs_in(tmp_path, f"{STATES[bug.software].format(fixed)}\n{case.shows}", bug.name) == []
    assert bugs_in(tmp_path, case.near, bug.name) == []
    assert bugs_in(tmp_path, f"{STATES[bug.software].format(version)}\n{case.near}", bug.name) == []


def test_the_versions_are_in_order() -> None:
    assert {bug.name for bug in BUGS} == LOGS.keys()
    assert len(BUGS) == len(LOGS)
    for bug in BUGS:
        assert bug.affects(affected(bug))
        assert not any(map(bug.affects, bug.fixed))


def test_every_sign_belongs_to_a_bug() -> None:
    used = {bug.sign for bug in BUGS if isinstance(bug.sign, str)}
    of_happenings = (ROOT / "pipeline" / "findings" / "known_bugs" / "happenings.py").read_text()
    names = {sign.name for sign in BUG_SIGNS}
    assert {name for name in names - used if f'"{name}"' not in of_happenings} == set()
    assert used <= names
    assert all(re.search(re.escape(sign.words), CASES) for sign in BUG_SIGNS)


def test_a_report_says_the_same_as_why_of_many_groups(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for nth, case in enumerate(LOGS.values()):
        text = case.shows.replace("parcels", f"parcels{nth}").replace("letters", f"letters{nth}")
        (logs / f"van{nth}.log").write_text(text.replace("GroupCoordinator 7", f"GroupCoordinator {nth}"))
    make_report([logs], tmp_path / "out")
    reported = pq.read_table(tmp_path / "out" / "tables" / "findings").to_pylist()
    of_report, of_why = (
        {(row["group_id"], row["title"]) for row in rows if row["finding"] == "known-bug"}
        for rows in (reported, open_source(logs).findings())
    )
    assert of_report == of_why
    assert len({title for _, title in of_why}) == len(BUGS)


@pytest.mark.parametrize(("version", "found"), [("0.7.0", "aiokafka #727: a"), ("0.7.1", None)])
def test_a_member_id_that_begins_with_the_library_states_its_version(
    version: str, found: str | None, tmp_path: Path
) -> None:
    member = f"aiokafka-{version}-5f0e0021-77a1-4c2e-9d10-3b6a00000021"
    rows = bugs_in(tmp_path, LOGS["aiokafka #727"].shows.replace("van-5f0e0021", member), "aiokafka #727")
    assert [row["title"][:16] for row in rows] == ([found] if found else [])


@pytest.mark.parametrize("version", ["2.3.0-cp1", "5.3.0-ccs", "2.3.0.redhat-00001"])
def test_the_version_of_a_vendor_states_nothing(version: str, tmp_path: Path) -> None:
    text = f"{STATES[BROKER].format(version)}\n{LOGS['KAFKA-8653'].shows}"
    assert "does not state" in bugs_in(tmp_path, text, "KAFKA-8653")[0]["text"]


def test_the_page_has_the_table(request: pytest.FixtureRequest) -> None:
    rows = [
        (
            f"[{bug.name}]({bug.link}): {bug.title}",
            bug.called.removeprefix("a "),
            bug.since,
            ", ".join(bug.fixed),
            bug.shows,
            bug.cure,
        )
        for bug in BUGS
    ]
    table = rows_of(("bug", "of", "since", "fixed in", "sign", "cure beside a newer version"), rows)
    rewrite = request.config.getoption("--rewrite")
    check_table(ROOT / "docs" / "known-bugs.md", "## The table", table, rewrite=rewrite)
