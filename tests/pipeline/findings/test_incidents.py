"""Findings against ledgers: real consumers on a real broker, several troubles at a time, and what is made of the logs.

``make incident`` records such incidents. What was done must be found, with its members; nothing else may be named; and
no two findings may contradict each other: from both logs, and from ``server.log`` alone, which shows less.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.schemas import EVENTS
from tests import paths
from tests.pipeline.findings import ledgers
from tests.pipeline.findings.ledgers import SILENT, Done, Row, expected, groups_of
from tests.pipeline.findings.tables import findings_of

INCIDENTS = sorted(folder.name for folder in paths.INCIDENTS.iterdir())
LOGS = {"both": ("server.log.gz", "kafka-request.log.gz"), "server": ("server.log.gz",)}
Found = dict[tuple[str, str], list[Row]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Findings of each incident by its name and the logs that were read, the worst first."""
    runs = [(name, logs) for name in INCIDENTS for logs in LOGS]
    read = []
    for name, logs in runs:
        folder = tmp_path_factory.mktemp(f"{name}-{logs}")
        for log in LOGS[logs]:
            shutil.copy(paths.INCIDENTS / name / log, folder / log)
        events = read_events(find([folder]), "UTC").events
        read.append(
            events.set_column(EVENTS.get_field_index("run_id"), "run_id", pa.repeat(f"{name} {logs}", len(events)))
        )
    events = pa.concat_tables(read)
    rows = sorted(findings_of(events), key=order)
    by_run: Found = {run: [] for run in runs}
    for row in rows:
        name, logs = row["run_id"].split()
        by_run[name, logs].append(row)
    return by_run


@cache
def ledger(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((Path(paths.INCIDENTS) / name / "ledger.json").read_text())
    return read


def done_as_seen(name: str, logs: str) -> Iterator[Done]:
    """The ledger as far as the logs show it: without the requests no member of the consumer protocol has a name, and
    what kept a silent member is not seen, nor why one left, where its client gives no reason."""
    kinds = groups_of(ledger(name))
    for each in expected(ledger(name)):
        group = kinds[each.group]
        if logs == "both":
            yield each
        elif group.protocol == "consumer" or (group.nameless and each.finding != "topic-growth"):
            others = tuple(other for other in ledgers.CAUSES if other not in ("topic-growth", "duplicate-instance-id"))
            yield replace(each, members=(), must=False, or_else=others)
        elif each.finding == "max-poll-exceeded" and not group.java:
            yield replace(each, must=False, or_else=("flapping-member",))
        elif each.finding in ("session-too-short", "died-without-leaving"):
            yield replace(each, or_else=SILENT)
        else:
            yield each


ALONE = {paths.INCIDENTS / "two": ("topic-growth",), paths.GOLDEN / "proxied-incident": ()}
"""Incidents of which the requests are read alone, with what these do not show: a proxy's journal has answers to
Metadata, the other request log has none. ``make incident-proxied`` records such a journal."""


@pytest.fixture(scope="module", params=ALONE, ids=lambda folder: str(folder.name))
def from_requests(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """The folder of an incident, and the findings from its requests alone."""
    folder = tmp_path_factory.mktemp("requests")
    shutil.copy(request.param / LOGS["both"][1], folder)
    return request.param, sorted(findings_of(read_events(find([folder]), "UTC").events), key=order)


def test_requests_alone_show_what_was_done_and_nothing_else(from_requests: tuple[Path, list[Row]]) -> None:
    folder, rows = from_requests
    done = list(expected(json.loads((folder / "ledger.json").read_text())))
    assert ledgers.missing(rows, (each for each in done if each.finding not in ALONE[folder])) == []
    assert ledgers.invented(rows, done) == []


def test_requests_alone_show_that_the_broker_was_away(from_requests: tuple[Path, list[Row]]) -> None:
    folder, rows = from_requests
    done = json.loads((folder / "ledger.json").read_text())["done"]
    (away,) = [each for each in done if each["do"] == "broker-restart"]
    found = [row for row in rows if row["finding"] == "coordinator-failover"]
    assert any(abs(row["from_ms"] - away["from_ms"]) < 5_000 for row in found)


EACH = pytest.mark.parametrize(("name", "logs"), [(name, logs) for name in INCIDENTS for logs in LOGS])


def test_there_is_a_recording() -> None:
    assert INCIDENTS


@EACH
def test_what_was_done_is_found_with_its_members_and_its_time(found: Found, name: str, logs: str) -> None:
    assert ledgers.missing(found[name, logs], done_as_seen(name, logs)) == []


@EACH
def test_nothing_is_named_that_was_not_done(found: Found, name: str, logs: str) -> None:
    assert ledgers.invented(found[name, logs], done_as_seen(name, logs)) == []


@EACH
def test_a_broker_that_was_away_is_one_finding_with_its_groups_and_its_length(
    found: Found, name: str, logs: str
) -> None:
    rows = [row for row in found[name, logs] if row["finding"] == "coordinator-failover"]
    away = [each for each in ledger(name)["done"] if each["do"] == "broker-restart"]
    assert len(rows) == len(away) == 1
    row = rows[0]
    assert set(row["groups"]) == set(ledger(name)["groups"])
    assert row["group_id"] is None
    lasted = away[0]["to_ms"] - away[0]["from_ms"]
    if "at most" in row["title"]:
        assert logs == "server", "the last answers show when it went"
        assert row["numbers"]["away_ms"] >= lasted - 5_000
    else:
        assert abs(row["numbers"]["away_ms"] - lasted) < 5_000
    assert "moved" not in row["title"]


@EACH
def test_findings_agree_with_each_other(found: Found, name: str, logs: str) -> None:
    assert ledgers.with_two_causes(found[name, logs]) == {}
    assert list(ledgers.contradictions(found[name, logs])) == []


@EACH
def test_no_advice_is_for_another_client_or_protocol(found: Found, name: str, logs: str) -> None:
    assert list(ledgers.unfit_advice(found[name, logs], groups_of(ledger(name)))) == []
    for row in found[name, logs]:
        assert logs == "server" or "kafka-request.log" not in (row["advice"] or "")
        assert "since Kafka 2.5" not in row["text"]


@EACH
def test_a_storm_names_its_parts_and_comes_behind_them(found: Found, name: str, logs: str) -> None:
    assert list(ledgers.storms_before_their_parts(found[name, logs])) == []


@EACH
def test_a_process_that_died_of_its_twin_is_among_the_worst(found: Found, name: str, logs: str) -> None:
    severities = [row["severity"] for row in found[name, logs] if row["finding"] == "duplicate-instance-id"]
    assert severities == ["high"]
