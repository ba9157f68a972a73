"""``rejoin why``: one group's rebalances explained in ten lines."""

from __future__ import annotations

import shutil
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
from rejoin.pipeline.why.story import GroupStory, SourceProblem

_WIDEST: Final = 120


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
        story = open_source(folder, bootstrap_server, config, seconds).story(group)
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


def story_as_json(story: GroupStory) -> dict[str, Any]:
    """Everything that the answer is made of."""
    return {
        "status": story.status.as_json(),
        "rebalances": list(story.rebalances),
        "findings": list(story.findings),
        "notes": list(story.notes),
    }
