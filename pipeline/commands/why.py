"""``rejoin why``: one group's rebalances explained in ten lines."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rejoin.error_lines import refuse
from rejoin.output import print_json, print_text
from rejoin.pipeline.commands.standard_input import STANDARD_INPUT, with_standard_input, without_copy
from rejoin.pipeline.findings.annotations import BadAnnotations, read_annotations, rows_of_rollouts
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.instants import LogWindow, instant
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import GroupStory, SourceProblem, StorySource

_WIDEST: Final = 120


def run(
    *,
    group: str,
    folders: Sequence[Path],
    bootstrap_server: str | None,
    at: str | None,
    window: LogWindow,
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
        named = _sources(group, folders, has_address=bootstrap_server is not None)
        with with_standard_input(named) as paths:
            source = open_source(next(iter(paths), None), bootstrap_server, config, seconds, paths[1:], window)
        story = source.story(_only_group(source, group) if Path(group) in named else group)
        if around:
            found = [*story.findings, *rows_of_rollouts("", story.status.group_id, story.rebalances, around)]
            story = replace(story, findings=sorted(found, key=order))
        at_ms = None if at is None else instant(at, story.last_ms)
    except (SourceProblem, BadAnnotations, ValueError) as problem:
        return refuse(without_copy(problem))
    except KeyboardInterrupt:
        return 130
    if as_json:
        print_json(story_as_json(story), default=str)
        return 0
    width = min(shutil.get_terminal_size((100, 24)).columns, _WIDEST)
    print_text("\n".join(answer(story, max(40, width), at_ms)))
    return 0


def _sources(group: str, folders: Sequence[Path], *, has_address: bool) -> list[Path]:
    """The files and directories to read. A group's id that is a path is one of them, unless others follow a folder."""
    path = Path(group)
    if group == STANDARD_INPUT or path.is_file() or (path.exists() and not folders and not has_address):
        return [path, *folders]
    return list(folders)


def _only_group(source: StorySource, where: str) -> str:
    """The group of a source that has one. Raises :class:`SourceProblem` where there are several, or none."""
    groups = [each.group_id for each in source.groups()]
    if len(groups) != 1:
        named = ", ".join(groups[:8]) or "none"
        raise SourceProblem(f"{where}: has {len(groups)} groups ({named}); name one: rejoin why GROUP {where}")
    return groups[0]


def story_as_json(story: GroupStory) -> dict[str, Any]:
    """Everything that the answer is made of."""
    return {
        "status": story.status.as_json(),
        "rebalances": list(story.rebalances),
        "findings": list(story.findings),
        "notes": [*story.read, *story.notes],
    }
