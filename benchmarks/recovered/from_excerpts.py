"""How many of the excerpts that people post are read, and get the right cause, by client.

    python -m benchmarks recovered.from_excerpts
    python -m benchmarks.recovered.from_excerpts FOLDER ...        # with a file expected.jsonl of the same form

``tests/golden/public-logs`` has logs in the forms of public threads: one member's log or a piece of a broker's, cut, in
the layout and the wrapper of its place. ``expected.jsonl`` has, for a file and a group, the finding that comes first,
or none where nothing is wrong, and what must not be said. At the end: the time to the first answer for logs of three
sizes, beside ``grep -c`` of the group's name in the same file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import SourceProblem

GOLDEN: Final = Path(__file__).parents[2] / "tests" / "golden" / "public-logs"
FAMILIES: Final = (
    *("broker", "java", "spring", "streams", "librdkafka", "kafka-python", "aiokafka", "kafkajs", "franz-go", "sarama"),
    *("brod", "ruby", "racecar", "smallrye"),
)
"""How names of files begin; others are of several clients."""
SIZES: Final = (1_000, 1_000_000, 20_000_000)
"""Bytes of the logs that are timed."""
LINE: Final = (
    "2025-03-09 07:05:03,250 INFO  [worker-{nth}] com.example.Handler - order {nth} was written to the table\n"
)
LATE: Final = GOLDEN / "java-late-and-back.log"


@dataclass(slots=True)
class Score:
    """Counts of a family's excerpts."""

    excerpts: int = 0
    recognised: int = 0
    right: int = 0
    invented: int = 0


def score(folder: Path) -> dict[str, Score]:
    """Family to counts."""
    scores: dict[str, Score] = defaultdict(Score)
    for line in (folder / "expected.jsonl").read_text().splitlines():
        case = json.loads(line)
        name: str = case["file"]
        counted = scores[next((each for each in FAMILIES if name.startswith(each)), "others")]
        counted.excerpts += 1
        try:
            found = open_source(folder / name).story(case["group"]).findings
        except SourceProblem:
            continue
        counted.recognised += 1
        is_right, is_invented = judged(case, found)
        counted.right += is_right
        counted.invented += is_invented
    return scores


def judged(case: dict[str, Any], found: Sequence[dict[str, Any]]) -> tuple[bool, bool]:
    """Whether the first finding is the expected one, and whether something is said that is not so."""
    said = " ".join(str(row[part]) for row in found for part in ("title", "text", "setting", "advice"))
    first = found[0]["finding"] if found else None
    is_right = first == case["finding"] and all(words in said for words in case["says"])
    is_invented = (case["finding"] is None and first is not None) or any(words in said for words in case["never"])
    return is_right, is_invented


def time_answers(console: Console) -> None:
    """The time until ``rejoin why FILE`` has answered, by the size of the log."""
    table = Table(title="time to the first answer, a process of its own each")
    for column in ("log", "rejoin why, s", "grep -c, s"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as name:
        for size in SIZES:
            log = Path(name) / f"{size}.log"
            story = LATE.read_text()
            more = max(0, size - len(story)) // len(LINE)
            log.write_text("".join(LINE.format(nth=nth) for nth in range(more)) + story)
            why = _seconds([sys.executable, "-m", "rejoin", "why", "bills", str(log)])
            grep = _seconds(["grep", "-c", "groupId=bills", str(log)])
            table.add_row(f"{log.stat().st_size:,} B", f"{why:.2f}", f"{grep:.2f}")
    console.print(table)


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main(folders: Iterable[Path] = (GOLDEN,)) -> int:
    """Print the table. Returns 1 where something was invented."""
    console, invented = Console(), 0
    for folder in folders:
        table = Table(title="excerpts by client")
        for column in ("client", "excerpts", "recognised", "right cause", "invented"):
            table.add_column(column, justify="left" if column == "client" else "right")
        scores = score(folder)
        for family in sorted(scores, key=lambda each: (each == "others", each)):
            one = scores[family]
            table.add_row(family, *map(str, (one.excerpts, one.recognised, one.right, one.invented)))
        total = [sum(getattr(each, name) for each in scores.values()) for name in Score.__dataclass_fields__]
        table.add_row("all", *map(str, total))
        invented += total[-1]
        console.print(table)
    time_answers(console)
    return int(invented > 0)


if __name__ == "__main__":
    sys.exit(main([Path(each) for each in sys.argv[1:]] or [GOLDEN]))
