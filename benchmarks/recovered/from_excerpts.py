"""How many of the excerpts that people post are read, and get the right cause, by client.

    python -m benchmarks recovered.from_excerpts
    python -m benchmarks recovered.from_excerpts FOLDER ...

A folder with a file expected.jsonl of the form of ours is counted; of another one each answer is printed, to be judged
by a reader.

``tests/golden/public-logs`` has logs in the forms of public threads: one member's log or a piece of a broker's, cut, in
the layout and the wrapper of its place. ``expected.jsonl`` has, for a file and a group, the finding that comes first,
or none where nothing is wrong, and what must not be said. At the end: the time to the first answer for logs of three
sizes, beside ``grep -c`` of the group's name in the same file: in sparse logs nearly all lines are of an application,
dense ones are nothing but rebalances.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import printer
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import SourceProblem

GOLDEN: Final = Path(__file__).parents[2] / "tests" / "golden" / "public-logs"
FAMILIES: Final = (
    *("broker", "java", "spring", "streams", "librdkafka", "kafka-python", "aiokafka", "kafkajs", "franz-go", "sarama"),
    *("brod", "ruby", "racecar", "smallrye"),
)
"""How names of files begin; others are of several clients."""
SIZES: Final = (1_000, 1_000_000, 100_000_000)
"""Bytes of the sparse logs that are timed."""
DENSE: Final = (1_000_000, 10_000_000, 100_000_000)
"""Bytes of the dense ones. The last is refused: `rejoin why` reads so many lines about groups and no more."""
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


def is_judged(folder: Path) -> bool:
    """Whether a folder says of each of its excerpts which finding comes first."""
    expected = folder / "expected.jsonl"
    return expected.is_file() and all("finding" in json.loads(each) for each in expected.read_text().splitlines())


def answers(folder: Path) -> Iterator[tuple[str, str, str]]:
    """File, group and first finding of each log below a folder; why a file was refused."""
    for path in sorted(folder.rglob("*.log")):
        name = str(path.relative_to(folder))
        try:
            source = open_source(path)
            for group in source.groups():
                found = source.story(group.group_id).findings
                yield name, group.group_id, found[0]["title"] if found else "no finding"
        except SourceProblem as problem:
            yield name, "", f"refused: {problem}"


def sparse(size: int) -> Iterator[str]:
    """Lines of an application, and the story of a consumer behind them."""
    story = LATE.read_text()
    yield from (LINE.format(nth=nth) for nth in range(max(0, size - len(story)) // len(LINE)))
    yield story


def dense(size: int) -> Iterator[str]:
    """The story of a consumer, every three minutes, each time with the next generation."""
    began, lines = datetime(2025, 3, 9, tzinfo=UTC), LATE.read_text().splitlines()
    for nth in range(max(1, size // len(LATE.read_text()))):
        for seconds, line in enumerate(lines):
            at = began + timedelta(seconds=180 * nth + 20 * seconds)
            yield f"{at:%Y-%m-%d %H:%M:%S}.000{line[23:].replace('generationId=31', f'generationId={nth + 1}')}\n"


def time_answers(console: Console) -> None:
    """The time until ``rejoin why FILE`` has answered, by the size of the log."""
    table = Table(title="time to the first answer, a process of its own each")
    for column in ("log", "size", "rejoin why, s", "CPU, s", "grep -c, s", "answer"):
        table.add_column(column, justify="left" if column in ("log", "answer") else "right")
    logs = [("sparse", sparse, size) for size in SIZES] + [("dense", dense, size) for size in DENSE]
    with tempfile.TemporaryDirectory() as name:
        for kind, lines, size in logs:
            log = Path(name) / f"{kind}.log"
            with log.open("w") as file:
                file.writelines(lines(size))
            why, cpu, answered = _seconds([sys.executable, "-m", "rejoin", "why", "bills", str(log)])
            grep, _, _ = _seconds(["grep", "-c", "groupId=bills", str(log)])
            answer = "yes" if answered else "refused"
            table.add_row(kind, f"{log.stat().st_size:,} B", f"{why:.2f}", f"{cpu:.2f}", f"{grep:.2f}", answer)
    console.print(table)


def _seconds(command: list[str]) -> tuple[float, float, bool]:
    """How long a command took, by the clock and of CPU, and whether it did its work."""
    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime
    return time.perf_counter() - began, cpu, done.returncode == 0


def main(folders: Iterable[Path] = (GOLDEN,)) -> int:
    """Print the table. Returns 1 where something was invented."""
    console, invented = printer(), 0
    for folder in folders:
        if not is_judged(folder):
            listed = Table("file", "group", "first finding", title=f"answers to the logs of {escape(str(folder))}")
            for row in answers(folder):
                listed.add_row(*map(escape, row))
            console.print(listed)
            continue
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
