"""The journal of a process of consumers whose disk is full."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
import structlog

from rejoin.client.commands.account import show
from rejoin.client.logs import configure
from rejoin.client.workload import worker
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.client.workload.worker import Events, Work
from rejoin.journal.events.client import ConsumerEvent, Range, RecordsProcessed
from rejoin.journal.writer import JournalWriter
from tests.client.test_accounting import WHO

JUST = parse_processing_time("0")


def work(folder: Path) -> Work:
    return Work(
        topics=("t",),
        pattern=None,
        client_ids=("c",),
        instance_ids=(),
        assignors=(),
        settings={},
        commit="sync",
        processing_time=JUST,
        revoke_time=JUST,
        assign_time=JUST,
        seed=1,
        node="c",
        run_id="run",
        journal=folder,
    )


def processed(number: int) -> ConsumerEvent:
    ranges = [Range(topic="t", partition=0, start=number, end=number + 1)]
    return RecordsProcessed.model_validate({**WHO, "ranges": ranges})


def full(file: int, data: Any) -> int:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_consumers_go_on_while_their_journal_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def small(*given: Any) -> JournalWriter:
        return JournalWriter(*given, most_waiting_bytes=1_000)

    monkeypatch.setattr(worker, "JournalWriter", small)
    configure("info", out := io.StringIO())
    try:
        events = Events(work(tmp_path))
        events.publish(processed(0), 1)
        events.flush()
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            for number in range(1, 21):
                events.publish(processed(number), 2)
                events.flush()
        events.flush()
        events.publish(processed(21), 3)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            events.close()
    finally:
        structlog.reset_defaults()
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in said] == [
        "journal_not_written", "journal_written_again", "journal_rows_lost", "journal_not_written", "journal_not_closed"
    ]  # fmt: skip
    lost = said[2]["rows_lost"]
    assert 0 < lost < 20
    again = Events(work(tmp_path))
    again.publish(processed(22), 4)
    again.close()
    assert show(tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[-2].split() == ["g", "t", "0", str(22 - lost), "0", str(lost + 1), "-"]


def test_an_account_says_which_rows_its_journal_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worker, "JournalWriter", lambda *given: JournalWriter(*given, most_waiting_bytes=1))
    configure("error", io.StringIO())
    try:
        events = Events(work(tmp_path))
        for number in range(3):
            events.publish(processed(number), 1)
        events.close()
    finally:
        structlog.reset_defaults()
    assert show(tmp_path) == 0
    assert (
        capsys.readouterr().err
        == f"rejoin: {tmp_path}: 2 rows are missing, as they could not be written; counts may be too low\n"
    )
