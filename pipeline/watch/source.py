"""Spark's way to the events of running services: the data source ``rejoin``.

    spark.dataSource.register(RejoinSource)
    spark.readStream.format("rejoin").option("from", "http://localhost:9095").load()

Rows are lines (:data:`pipeline.schemas.LINES`), as if read from a journal: ``file`` is the place, ``line`` the row's
number. So whatever is done with journals from files is done with these, too.

Options: ``from``, one or more URLs with spaces between them. ``maxRowsPerBatch``, shared out evenly between the
services. ``down``: ``fail`` (default) or ``wait``, which leaves a service alone until it answers again. ``lost``: what
to do where a service does not have rows any more that were not read (it restarted without a journal, or they were too
many for its memory): ``fail`` (default), or ``skip``, which goes on with what is there and says so in a line with a
problem, which ends in the quarantine.

An offset has for each service its ``life`` (1, and one more whenever its numbers began again), the ``first`` row of it
that can be read, the last row read (``seq``) and the run that wrote that row. A life goes on over a restart with a
journal: the last row read is still there. A range is read as often as Spark asks and gives the same rows each time, or
it fails; it never ends early.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from rejoin.journal.renames import upgraded_text
from rejoin.pipeline.schemas import LINES
from rejoin.pipeline.watch.service import (
    MOST_ROWS,
    EventsGone,
    ServiceClient,
    ServiceDown,
    Standing,
    normal,
    with_patience,
)

NAME: Final = "rejoin"
MAX_ROWS: Final = 100_000
"""Rows of a micro-batch, by default."""

ROWS_A_TASK: Final = 50_000
_ARROW: Final = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("text", pa.string()), ("problem", pa.string())]
)

StreamPosition = dict[str, Any]
"""How far one service was read: life, first, seq, run."""
Offset = dict[str, StreamPosition]


@dataclass
class Span(InputPartition):
    """Rows behind ``after`` up to ``until``, of the life whose row ``last`` was written by ``run``."""

    url: str
    after: int
    until: int
    last: int
    run: str


@dataclass
class Loss(InputPartition):
    """Rows that cannot be read any more."""

    url: str
    words: str


class RejoinSource(DataSource):
    """Events of running coordinators."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(LINES)

    def reader(self, schema: StructType) -> DataSourceReader:
        return EventsReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return EventsStreamReader(self.options)


class _Events:
    """Base of both readers: plans the spans between two offsets, and reads one of them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = options.get("from") or options.get("path") or ""
        self.urls = list(dict.fromkeys(normal(url) for url in given.replace(",", " ").split()))
        if not self.urls:
            raise ValueError("the source 'rejoin' needs the option 'from': http://HOST:PORT of a coordinator")
        self.max_rows = _whole(options, "maxRowsPerBatch", MAX_ROWS)
        self.rows_a_task = _whole(options, "rowsPerTask", ROWS_A_TASK)
        self.waits = _one_of(options, "down", "fail", "wait") == "wait"
        self.skips = _one_of(options, "lost", "fail", "skip") == "skip"

    def plan(self, start: Offset, end: Offset) -> list[InputPartition]:
        parts: list[InputPartition] = []
        for url, to in end.items():
            known = start.get(url)
            after = int(to["first"]) - 1
            loss = _loss(url, known, to)
            if loss is not None:
                parts.append(Loss(url, loss))
            elif known is not None:
                after = int(known["seq"])
            until = int(to["seq"])
            parts += [
                Span(url, begin, min(begin + self.rows_a_task, until), until, str(to["run"]))
                for begin in range(after, until, self.rows_a_task)
            ]
        return parts

    def read_part(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(part, Loss):
            yield _problem(part.url, part.words)
            return
        assert isinstance(part, Span)
        service = ServiceClient(part.url)
        try:
            _check_incarnation(service, part)
            for after in range(part.after, part.until, MOST_ROWS):
                limit = min(MOST_ROWS, part.until - after)
                yield _batch(part.url, with_patience(partial(service.rows, after, limit)))
        except EventsGone as gone:
            if not self.skips:
                raise
            yield _problem(part.url, f"{gone}; what of {part.after + 1} to {part.until} was not read is lost")
        finally:
            service.close()


class EventsReader(_Events, DataSourceReader):
    """Everything that the services have when the query is planned."""

    def partitions(self) -> Sequence[InputPartition]:
        end: Offset = {}
        for url in self.urls:
            service = ServiceClient(url)
            try:
                where = with_patience(service.standing)
                run = with_patience(partial(service.run_of, where.head)) if where.head >= where.first else where.run_id
            finally:
                service.close()
            end[url] = {"life": 1, "first": where.first, "seq": where.head, "run": run}
        return self.plan({}, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_part(partition)


class EventsStreamReader(_Events, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the services."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._services = {url: ServiceClient(url) for url in self.urls}
        self._frozen: dict[str, Standing] | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Whatever comes later belongs to the next run."""
        self._frozen = {url: self._standing(service) for url, service in self._services.items()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        begins: Offset = dict(start)
        heads: dict[str, int] = {}
        try:
            for url, service in self._services.items():
                try:
                    where = self._frozen[url] if self._frozen is not None else with_patience(service.standing)
                    position = self._follow(service, start.get(url), where)
                except ServiceDown:
                    if not self.waits or self._frozen is not None:
                        raise
                    continue
                begins[url] = position
                heads[url] = max(where.head, int(position["seq"]))
            return self._shared_out(begins, heads, limit)
        finally:
            # Spark copies this object to its workers, and a connection cannot be copied.
            self.stop()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self.plan(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_part(partition)

    def stop(self) -> None:
        for service in self._services.values():
            service.close()

    @staticmethod
    def _standing(service: ServiceClient) -> Standing:
        try:
            return with_patience(service.standing)
        finally:
            service.close()

    def _follow(self, service: ServiceClient, known: StreamPosition | None, where: Standing) -> StreamPosition:
        """The place from which to go on in the stream that is there now."""
        if known is None:
            return {"life": 1, "first": where.first, "seq": where.first - 1, "run": where.run_id}
        seq, life = int(known["seq"]), int(known["life"])
        if not _same_incarnation(service, known, where):
            position = {"life": life + 1, "first": where.first, "seq": where.first - 1, "run": where.run_id}
        elif where.first > seq + 1:
            position = {"life": life, "first": where.first, "seq": where.first - 1, "run": where.run_id}
        else:
            return known
        loss = _loss(service.url, known, position)
        if loss is not None and not self.skips:
            raise EventsGone(f"{loss}; begin a new table, or set the option lost=skip to go on with what is there")
        return position

    def _shared_out(self, begins: Offset, heads: dict[str, int], limit: ReadLimit) -> Offset:
        """Each service's fair share of the rows that one micro-batch may have."""
        left = {url: heads[url] - int(begins[url]["seq"]) for url in heads}
        if isinstance(limit, ReadMaxRows):
            takes = shares(left, limit.max_rows)
        else:
            assert isinstance(limit, ReadAllAvailable)
            takes = left
        end: Offset = {}
        for url, position in begins.items():
            seq = int(position["seq"]) + takes.get(url, 0)
            if seq == int(position["seq"]):
                end[url] = position
            else:
                end[url] = {**position, "seq": seq, "run": with_patience(partial(self._services[url].run_of, seq))}
        return end


def shares(left: Mapping[str, int], most: int) -> dict[str, int]:
    """Share ``most`` rows out equally; what one service does not need goes to the others."""
    takes = dict.fromkeys(left, 0)
    wanting = [url for url, rows in left.items() if rows > 0]
    while wanting and most > 0:
        each, rest = divmod(most, len(wanting))
        for index, url in enumerate(wanting):
            take = min(left[url] - takes[url], each + (index < rest))
            takes[url] += take
            most -= take
        wanting = [url for url in wanting if left[url] > takes[url]]
    return takes


def _same_incarnation(service: ServiceClient, known: StreamPosition, where: Standing) -> bool:
    """Whether the stream that is there now is the one that was read before, perhaps written on by another process."""
    seq = int(known["seq"])
    if where.run_id == known["run"]:
        return True
    if seq < where.first:
        # The last row read is not there to be looked at; with a journal the numbers go on.
        return where.journal and where.head >= seq
    if seq > where.head:
        return False
    return with_patience(partial(service.run_of, seq)) == str(known["run"])


def _check_incarnation(service: ServiceClient, part: Span) -> None:
    """Raise EventsGone where the numbers of a span mean other rows now than when it was planned."""
    where = with_patience(service.standing)
    if where.run_id == part.run:
        return
    if where.head < part.last or with_patience(partial(service.run_of, part.last)) != part.run:
        raise EventsGone(f"{part.url} has begun anew without the events of run {part.run}")


def _loss(url: str, known: StreamPosition | None, to: StreamPosition) -> str | None:
    """The loss between two positions, in words; none if nothing is lost."""
    first = int(to["first"])
    if known is None:
        return f"{url}: the events 1 to {first - 1} were not kept by the service" if first > 1 else None
    seq = int(known["seq"])
    if int(to["life"]) != int(known["life"]):
        return (
            f"{url} has begun anew, without a journal: what followed event {seq} of run {known['run']} is lost, if"
            f" there was anything; it goes on with event {first} of another run"
        )
    if first > seq + 1:
        return f"{url}: the events {seq + 1} to {first - 1} were not kept by the service until they were asked for"
    return None


def _batch(url: str, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    count = len(rows)
    columns = [
        pa.array([f"{url}/events"] * count, pa.string()),
        pa.array([row["seq"] for row in rows], pa.int64()),
        pa.array([upgraded_text(orjson.dumps(row)).decode() for row in rows], pa.string()),
        pa.nulls(count, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _problem(url: str, words: str) -> pa.RecordBatch:
    row = {"file": [f"{url}/events"], "line": [None], "text": [""], "problem": [words]}
    return pa.RecordBatch.from_pydict(row, schema=_ARROW)


def _whole(options: Mapping[str, str], name: str, default: int) -> int:
    given = options.get(name, str(default))
    if given.isascii() and given.isdecimal() and int(given) > 0:
        return int(given)
    raise ValueError(f"option {name}: expected a whole number from 1, not {given!r}")


def _one_of(options: Mapping[str, str], name: str, *values: str) -> str:
    given = options.get(name, values[0])
    if given not in values:
        raise ValueError(f"option {name}: expected {' or '.join(values)}, not {given!r}")
    return given
