"""``rejoin why``: one group's rebalances explained in ten lines."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rejoin.error_lines import refuse
from rejoin.output import print_json, print_text
from rejoin.pipeline.findings.annotations import BadAnnotations, read_annotations, rows_of_rollouts
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.instants import instant
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import GroupStory, SourceProblem, StorySource

_WIDEST: Final = 120
_STANDARD_INPUT: Final = "-"


def run(
    *,
    group: str,
    folder: Path | None,
    bootstrap_server: str | None,
    at: str | None,
    command_config: Path | None,
    seconds: float,
    annotations: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Print the answer. Options as in ``parser``; returns the exit code."""
    try:
        if seconds < 0:
            raise ValueError(f"--for {seconds}: expected a number of seconds from 0 on")
        config = None if command_config is None else str(command_config)
        around = read_annotations(annotations)
        with _given(folder if folder is not None or bootstrap_server is not None else _as_path(group)) as path:
            source = open_source(path, bootstrap_server, config, seconds)
        story = source.story(group if path is None or folder is not None else _only_group(source, group))
        if around:
            found = [*story.findings, *rows_of_rollouts("", group, story.rebalances, around)]
            story = replace(story, findings=sorted(found, key=order))
        at_ms = None if at is None else instant(at, story.last_ms)
    except (SourceProblem, BadAnnotations, ValueError) as problem:
        return refuse(problem)
    except KeyboardInterrupt:
        return 130
    if as_json:
        print_json(story_as_json(story), default=str)
        return 0
    width = min(shutil.get_terminal_size((100, 24)).columns, _WIDEST)
    print_text("\n".join(answer(story, max(40, width), at_ms)))
    return 0


def _as_path(name: str) -> Path | None:
    """The file or directory of that name; None where there is none, so that the name is a group's."""
    path = Path(name)
    return path if name == _STANDARD_INPUT or path.exists() else None


@contextmanager
def _given(path: Path | None) -> Iterator[Path | None]:
    """The path, or a file with what comes on standard input where the path is ``-``."""
    if path is None or str(path) != _STANDARD_INPUT:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "standard-input.log"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield copy


def _only_group(source: StorySource, where: str) -> str:
    """The group of a source that has one. Raises :class:`SourceProblem` where there are several, or none."""
    groups = [each.group_id for each in source.groups()]
    if len(groups) != 1:
        named = ", ".join(groups[:8]) or "none"
        raise SourceProblem(f"{where}: {len(groups)} groups in there ({named}); say rejoin why GROUP {where}")
    return groups[0]


def story_as_json(story: GroupStory) -> dict[str, Any]:
    """Everything that the answer is made of."""
    return {
        "status": story.status.as_json(),
        "rebalances": list(story.rebalances),
        "findings": list(story.findings),
        "notes": [*story.read, *story.notes],
    }
