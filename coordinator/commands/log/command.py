"""The commands dump, verify, export and import. Exit codes: 0, done; 1, the log has a problem; 2, not done.

What reads and writes logs is imported by the commands, since their help does not need it.
"""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import cyclopts
from cyclopts import Parameter

from rejoin.coordinator.commands.secret_options import STORE_REFUSED, STORE_VARIABLE, has_password
from rejoin.error_lines import print_error, refuse
from rejoin.output import print_aside, print_text
from rejoin.protocol.printable import printable_json
from rejoin.usage_errors import no_option

_PARTITIONS: Final = 50
_File = Annotated[str, Parameter(allow_leading_hyphen=True, validator=no_option)]

_Data = Annotated[Path | None, Parameter(metavar="DIR")]
_Store = Annotated[str | None, Parameter(metavar="URL")]
_Number = Annotated[int, Parameter(metavar="N")]

app: Final = cyclopts.App(name="log", help="Read, check, copy and fill an offsets log, offline.", version_flags=[])


@app.command
def dump(
    file: _File | None = None,
    *,
    data: _Data = None,
    store: _Store = None,
    partition: Annotated[tuple[int, ...], Parameter(negative=(), show_default=False, metavar="N")] = (),
    only: Literal["offsets", "group-metadata"] | None = None,
    partitions: _Number = _PARTITIONS,
) -> int:
    """Print the records, one on each line, as Kafka's console consumer formats them.

    Parameters
    ----------
    file
        Log export, or output of Kafka's console consumer; - is the standard input.
    data
        A coordinator's --data directory.
    store
        A cluster's --store database. The default is REJOIN_STORE from the environment.
    partition
        Print only this offsets partition; may be given several times.
    only
        Print only the records of one of Kafka's formatters: OffsetsMessageFormatter or GroupMetadataMessageFormatter.
    partitions
        Number of offsets partitions, by which lines without a partition are placed.
    """

    from rejoin.protocol.records.consumer_offsets import offsets_partition  # noqa: PLC0415

    def run() -> int:
        missing = dict.fromkeys(map(offsets_partition, partition))
        marks = {"offsets": ('{"version":0,', '{"version":1,'), "group-metadata": ('{"version":2,',), None: ("{",)}
        with _source(file, data, store, partitions) as source:
            for kept in source.records(frozenset(missing) or None):
                missing.pop(kept.partition, None)
                if kept.entry.key is not None and kept.entry.key.startswith(marks[only]):
                    print_text(printable_json(kept.as_kafka_prints_it()))
            for each in missing:
                print_error(f"{source.name} has no records of {each}")
        return 0

    return _reported(run)


@app.command
def verify(
    file: _File | None = None, *, data: _Data = None, store: _Store = None, partitions: _Number = _PARTITIONS
) -> int:
    """Read groups, offsets and the records of topics, and report damage.

    Parameters
    ----------
    file
        Log export, which has no records of topics; - is the standard input.
    data
        The --data directory of a stopped coordinator.
    store
        A cluster's --store database. The default is REJOIN_STORE from the environment.
    partitions
        Number of offsets partitions, by which lines without a partition are placed.
    """

    from rejoin.coordinator.commands.log.contents import LogNotRead, LogProblem  # noqa: PLC0415
    from rejoin.coordinator.commands.log.files import TextLog  # noqa: PLC0415
    from rejoin.coordinator.storage.sqlite.check import DatabaseLost  # noqa: PLC0415

    def run() -> int:
        try:
            with _source(file, data, store, partitions, verify=True) as source:
                found = 0
                for problem in source.problems() if not isinstance(source, TextLog) else ():
                    found += 1
                    print_text(problem)
                if found:
                    print_text(f"{source.name}: {_counted(found, 'problem')}{source.advice}")
                    return 1
                size = _size_of(source)
        except DatabaseLost as problem:
            print_text(problem)
            return 1
        except LogProblem as problem:
            if file is None or isinstance(problem, LogNotRead):
                raise
            print_text(problem)
            return 1
        print_text(f"{source.name}: {size}, all as written")
        return 0

    return _reported(run)


@app.command
def export(
    *,
    data: _Data = None,
    store: _Store = None,
    out: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    salvage: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write the whole log as text, one JSON object on each line.

    Parameters
    ----------
    data
        A coordinator's --data directory.
    store
        A cluster's --store database. The default is REJOIN_STORE from the environment.
    out
        File to write. The default is the standard output.
    salvage
        Leave out damaged records, and name them, instead of stopping at the first.
    """

    from rejoin.atomic_file import atomic_file, check_writable  # noqa: PLC0415
    from rejoin.coordinator.commands.log import files  # noqa: PLC0415

    def run() -> int:
        if out is not None:
            check_writable("--out", out)
        with _source(None, data, store, _PARTITIONS, salvage=salvage, or_file=False) as source:
            records = source.salvaged() if salvage else source.records()
            if out is None:
                files.write(sys.stdout, source.contents(), records)
            else:
                with atomic_file("--out", out) as handle:
                    count = files.write(handle, source.contents(), records)
                print_aside(f"{_counted(count, 'record')} to {out}")
            for note in source.notes:
                print_error(note)
            return 1 if source.notes else 0

    return _reported(run)


@app.command(name="import")
def import_(
    file: _File,
    *,
    data: _Data = None,
    store: _Store = None,
    partitions: _Number = _PARTITIONS,
    create_topics: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Fill an empty store from a log export or from the output of Kafka's console consumer.

    Parameters
    ----------
    file
        Log export, or output of Kafka's console consumer; - is the standard input.
    data
        Directory to fill, for --data of a coordinator. It is created if missing.
    store
        Database to fill, for --store of a cluster. The default is REJOIN_STORE from the environment.
    partitions
        Number of offsets partitions, by which lines without a partition are placed.
    create_topics
        Create the topics that have committed offsets and are not in the file. A coordinator that starts without them
        deletes their offsets.
    """

    from rejoin.coordinator.commands.log import committed  # noqa: PLC0415
    from rejoin.coordinator.commands.log.files import TextLog  # noqa: PLC0415
    from rejoin.coordinator.commands.log.filling import fill_database, fill_directory  # noqa: PLC0415

    def run() -> int:
        url = _url(data, store)
        source = TextLog(file, partitions)
        missing = committed.without_topic(source.contents, committed.ends_of_topics(source.records()))
        if create_topics:
            committed.create_topics(source.contents, missing)
        if data is not None:
            count, cleared = fill_directory(data, source.contents, source.records()), 0
        else:
            count, cleared = fill_database(url, source.contents, source.records())
        said = f", {source.skipped} of unknown kinds left out" if source.skipped else ""
        if replaced := committed.replaced(source.records()):
            said += f", {replaced} of them replaced by later ones"
        if cleared:
            said += f"; {_counted(cleared, 'lease')} of earlier nodes cleared"
        print_text(f"{_counted(count, 'record')} from {source.name}{said}")
        if missing:
            topics = ", ".join(sorted(missing))
            if create_topics:
                print_text(f"topics created: {topics}")
            else:
                print_error(committed.would_be_deleted(missing))
        return 0

    return _reported(run)


def _size_of(source: Any) -> str:
    """How much there is in a source. An export has no batches."""
    from rejoin.coordinator.commands.log.files import TextLog  # noqa: PLC0415

    by_partition = Counter(kept.partition for kept in source.records())
    size = f"{_counted(by_partition.total(), 'record')} in {_counted(len(by_partition), 'offsets partition')}"
    if isinstance(source, TextLog):
        return size
    batches, partitions = source.batch_counts()
    return f"{size}, {_counted(batches, 'batch', 'batches')} in {_counted(partitions, 'data partition')}"


def _counted(count: int, what: str, several: str = "") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {several or f'{what}s'}"


def _url(data: Path | None, store: str | None, *, or_file: bool = False) -> str:
    """The URL of the database; empty if a directory is named."""
    from rejoin.coordinator.commands.log.contents import LogProblem  # noqa: PLC0415

    if store and has_password(store):
        raise LogProblem(STORE_REFUSED)
    url = store or ("" if data is not None else os.environ.get(STORE_VARIABLE, ""))
    if bool(url) == (data is not None):
        if or_file:
            raise LogProblem("expected one of FILE, --data DIR and --store postgresql://..., and no more")
        raise LogProblem("expected either --data DIR or --store postgresql://..., and not both")
    return url


@contextmanager
def _source(
    file: str | None,
    data: Path | None,
    store: str | None,
    partitions: int,
    *,
    salvage: bool = False,
    verify: bool = False,
    or_file: bool = True,
) -> Iterator[Any]:
    from rejoin.coordinator.commands.log.contents import LogProblem  # noqa: PLC0415
    from rejoin.coordinator.commands.log.directory import SqliteSource  # noqa: PLC0415
    from rejoin.coordinator.commands.log.files import TextLog  # noqa: PLC0415
    from rejoin.coordinator.commands.log.tables import PostgresSource  # noqa: PLC0415

    if file is not None:
        if data is not None or store is not None:
            raise LogProblem(f"{file}: expected a file, or --data or --store, and not both")
        yield TextLog(file, partitions)
        return
    url = _url(data, store, or_file=or_file)
    with PostgresSource(url) if url else SqliteSource(data or Path(), salvage=salvage, verify=verify) as source:
        yield source


def _reported(run: Any) -> int:
    """Print a problem in one line. A closed pipe is no problem."""
    from rejoin.atomic_file import FileNotWritten  # noqa: PLC0415
    from rejoin.coordinator.commands.log.contents import LogProblem  # noqa: PLC0415
    from rejoin.coordinator.storage.base import StoreProblem  # noqa: PLC0415

    try:
        code: int = run()
        sys.stdout.flush()
    except (LogProblem, StoreProblem, FileNotWritten) as problem:
        return refuse(problem)
    except BrokenPipeError:
        sys.stdout = io.StringIO()
        return 0
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename is not None else ""
        return refuse(f"{where}{problem.strerror}; expected a file or directory that can be used")
    return code
