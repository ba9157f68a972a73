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

_PARTITIONS: Final = 50
_File = Annotated[str, Parameter(allow_leading_hyphen=True)]

app: Final = cyclopts.App(name="log", help="Read, check, copy and fill an offsets log, offline.", version_flags=[])


@app.command
def dump(
    file: _File | None = None,
    *,
    data: Path | None = None,
    store: str | None = None,
    partition: Annotated[tuple[int, ...], Parameter(negative=(), show_default=False)] = (),
    only: Literal["offsets", "group-metadata"] | None = None,
    partitions: int = _PARTITIONS,
) -> int:
    """Print the records, one per line, as Kafka's console consumer does with its formatters.

    Parameters
    ----------
    file
        A log export or the output of a console consumer; - is standard input.
    data
        The --data directory of a coordinator.
    store
        The --store database of a cluster. The default is REJOIN_STORE from the environment.
    partition
        Only this offsets partition; may be given several times.
    only
        Only the records of one formatter: OffsetsMessageFormatter or GroupMetadataMessageFormatter.
    partitions
        Number of offsets partitions, for lines that name none.
    """

    from rejoin.protocol.records.consumer_offsets import offsets_partition  # noqa: PLC0415

    def run() -> int:
        missing = dict.fromkeys(map(offsets_partition, partition))
        marks = {"offsets": ('{"version":0,', '{"version":1,'), "group-metadata": ('{"version":2,',), None: ("{",)}
        with _source(file, data, store, partitions) as source:
            for kept in source.records(frozenset(missing) or None):
                missing.pop(kept.partition, None)
                if kept.entry.key is not None and kept.entry.key.startswith(marks[only]):
                    sys.stdout.write(kept.as_kafka_prints_it() + "\n")
            for each in missing:
                print(f"rejoin: {source.name} has no records of {each}", file=sys.stderr)
        return 0

    return _reported(run)


@app.command
def verify(
    file: _File | None = None, *, data: Path | None = None, store: str | None = None, partitions: int = _PARTITIONS
) -> int:
    """Read groups, offsets and the records of topics, and report damage. Exits with 1 if there is any.

    Parameters
    ----------
    file
        A log export, which has no records of topics; - is standard input.
    data
        The --data directory of a coordinator that is stopped.
    store
        The --store database of a cluster. The default is REJOIN_STORE from the environment.
    partitions
        Number of offsets partitions, for lines that name none.
    """

    from rejoin.coordinator.commands.log.contents import LogProblem  # noqa: PLC0415
    from rejoin.coordinator.commands.log.files import TextLog  # noqa: PLC0415
    from rejoin.coordinator.storage.sqlite.check import DatabaseLost  # noqa: PLC0415

    def run() -> int:
        try:
            with _source(file, data, store, partitions, verify=True) as source:
                found = 0
                for problem in source.problems() if not isinstance(source, TextLog) else ():
                    found += 1
                    print(problem)
                if found:
                    print(f"{source.name}: {_counted(found, 'problem')}{source.advice}")
                    return 1
                size = _size_of(source)
        except DatabaseLost as problem:
            print(problem)
            return 1
        except LogProblem as problem:
            if file is None:
                raise
            print(problem)
            return 1
        print(f"{source.name}: {size}, all as written")
        return 0

    return _reported(run)


@app.command
def export(
    *,
    data: Path | None = None,
    store: str | None = None,
    out: Path | None = None,
    salvage: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write the whole log as text, one JSON object per line.

    Parameters
    ----------
    data
        The --data directory of a coordinator.
    store
        The --store database of a cluster. The default is REJOIN_STORE from the environment.
    out
        The file to write. Standard output unless given.
    salvage
        Leave out what is damaged instead of stopping there, and say so.
    """

    from rejoin.coordinator.commands.atomic_file import atomic_file, check_writable  # noqa: PLC0415
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
                print(f"{_counted(count, 'record')} to {out}", file=sys.stderr)
            for note in source.notes:
                print(f"rejoin: {note}", file=sys.stderr)
            return 1 if source.notes else 0

    return _reported(run)


@app.command(name="import")
def import_(
    file: _File,
    *,
    data: Path | None = None,
    store: str | None = None,
    partitions: int = _PARTITIONS,
    create_topics: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Fill an empty store from a log export or from the output of Kafka's console consumer.

    Parameters
    ----------
    file
        The file; - is standard input.
    data
        The --data directory of a coordinator; created if missing.
    store
        The --store database of a cluster. The default is REJOIN_STORE from the environment.
    partitions
        Number of offsets partitions, for lines that name none.
    create_topics
        Create the topics that committed offsets name and the file does not. Without them a start deletes the offsets.
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
        said = f", {source.skipped} of kinds that are not known here left out" if source.skipped else ""
        if replaced := committed.replaced(source.records()):
            said += f", {replaced} of them replaced by later ones"
        if cleared:
            said += f"; {_counted(cleared, 'lease')} of earlier nodes cleared"
        print(f"{_counted(count, 'record')} from {source.name}{said}")
        if missing:
            topics = ", ".join(sorted(missing))
            print(
                f"topics created: {topics}" if create_topics else f"rejoin: {committed.would_be_deleted(missing)}",
                file=sys.stdout if create_topics else sys.stderr,
            )
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
    from rejoin.coordinator.commands.atomic_file import FileNotWritten  # noqa: PLC0415
    from rejoin.coordinator.commands.log.contents import LogProblem  # noqa: PLC0415
    from rejoin.coordinator.storage.base import StoreProblem  # noqa: PLC0415

    try:
        code: int = run()
        sys.stdout.flush()
    except (LogProblem, StoreProblem, FileNotWritten) as problem:
        print(f"rejoin: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stdout = io.StringIO()
        return 0
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename is not None else ""
        print(f"rejoin: {where}{problem.strerror}; expected a file or directory that can be used", file=sys.stderr)
        return 2
    return code
