"""Scenarios in which hardly anything is produced: where groups are the subject, records take nearly all of the time."""

from __future__ import annotations

import re
from typing import Final

from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import scenario_from
from tests.paths import GALLERY

_RARELY: Final = "records_per_second: 0.02"


def with_few_records(text: str) -> str:
    """A scenario's text whose topics get a record now and then."""
    return re.sub(r"records_per_second: [0-9.]+", _RARELY, text)


def of_the_gallery(name: str) -> Scenario:
    """A scenario of the gallery with few records."""
    return scenario_from(with_few_records((GALLERY / f"{name}.yaml").read_text(encoding="utf-8")))
