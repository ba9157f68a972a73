"""The lessons: scenarios of the gallery in an order to learn from, with questions before and answers after a step."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

from rejoin.simulation.scenario.durations import parse_duration

LESSONS: Final = Path(__file__).parents[1] / "lessons.yaml"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LessonStep(_Part):
    """Question at an instant. The answer is true of the first line of the run from there on that has ``until``."""

    at: Annotated[int, BeforeValidator(parse_duration)]
    """In ms."""
    until: str
    ask: str
    answer: str


class Lesson(_Part):
    """A scenario with its steps, and the rows of the run's summary that it ends with."""

    title: str
    scenario: str
    steps: tuple[LessonStep, ...]
    numbers: tuple[str, ...]
    belief: str = ""
    """Common belief that the run disproves."""


class Chapter(_Part):
    """Lessons that belong together."""

    chapter: str
    lessons: tuple[Lesson, ...]


@cache
def read_lessons() -> tuple[Chapter, ...]:
    """All chapters, in the order of the index."""
    return tuple(Chapter(**each) for each in yaml.safe_load(LESSONS.read_text("utf-8")))
