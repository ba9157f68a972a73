"""Logs without times: their lines are in order, and no length follows from that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from rejoin.pipeline.commands.parser import why
from rejoin.pipeline.reading.client_logs import layouts
from rejoin.pipeline.reading.peeling.peel import Peels
from rejoin.pipeline.reading.peeling.stamps import begins_with_time
from rejoin.pipeline.vocabulary import UNTIMED_FROM_MS
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import SourceProblem
from tests.paths import GOLDEN

LOGS: Final = sorted(each for each in (GOLDEN / "public-logs").glob("*.log") if not each.name.startswith("broker"))
_LINE: Final = re.compile(r"line [\d,]+")
_LENGTH: Final = re.compile(r"[\d,.]+ (?:ms|s|min|h|consumer-seconds)\b")
_CLOCK: Final = re.compile(r"\b\d{1,2}:\d\d:\d\d\b|\b19[78]\d\b")


def without_times(text: str) -> str:
    """The text of each line behind what is around it and behind its time."""
    lines = []
    for line in text.splitlines():
        peeled = Peels().peel(line).text
        begun = begins_with_time(peeled)
        lines.append(peeled if begun is None else peeled[begun.end :].removeprefix("|").lstrip())
    return "".join(f"{line}\n" for line in lines)


def said_of(log: Path) -> list[str]:
    """All that is said of the log's groups, with every line's number replaced."""
    try:
        source = open_source(log)
    except SourceProblem as problem:
        return [str(problem)]
    stories = [source.story(each.group_id) for each in source.groups()]
    said = [line for story in stories for line in answer(story, 10_000)]
    said += [f"{row[part]}" for story in stories for row in story.findings for part in ("title", "text", "advice")]
    return [_LINE.sub("line N", each) for each in said]


def lengths(said: list[str]) -> set[str]:
    """Lengths of time in texts: those that lines state, and defaults of settings."""
    return {each for text in said for each in _LENGTH.findall(text)}


def put_apart(monkeypatch: pytest.MonkeyPatch, by_ms: int) -> None:
    """Let so many ms stand for a line: lengths that are said would change with it."""
    monkeypatch.setattr(layouts, "instant_of_line", lambda number: UNTIMED_FROM_MS + number * by_ms)


@pytest.mark.parametrize("name", [each.name for each in LOGS])
def test_no_time_and_no_length_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / name
    log.write_text(without_times((GOLDEN / "public-logs" / name).read_text()))
    said = said_of(log)
    assert not [each for each in said if _CLOCK.search(each) is not None]
    put_apart(monkeypatch, 7)
    assert said_of(log) == said
    put_apart(monkeypatch, 61_000)
    assert lengths(said_of(log)) <= lengths(said)


def test_an_instant_of_a_log_without_times_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert why(str(GOLDEN / "public-logs" / "java-no-times.log"), at="14:02") == 2
    assert "--at 14:02: the log has no times; give it without --at" in capsys.readouterr().err
