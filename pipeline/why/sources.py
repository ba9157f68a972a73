"""The source that an argument names: a folder, ``http://HOST:PORT``, or ``HOST:PORT``."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rejoin.pipeline.instants import WHOLE, LogWindow
from rejoin.pipeline.why.story import SourceProblem, StorySource

DEFAULT_SERVER: Final = "http://127.0.0.1:9095"
_TABLES: Final = "tables"
"""The folder of tables in that of a report or a watch."""


def open_source(
    folder: Path | None = None,
    servers: str | None = None,
    config: str | None = None,
    seconds: float = 2.0,
    more: Sequence[Path] = (),
    window: LogWindow = WHOLE,
) -> StorySource:
    """A folder that report or watch wrote, a journal or logs, or else the coordinators or the cluster at an address.

    ``more``: further files and folders of journals or logs. ``window``: from when to when logs are read.
    """
    if folder is not None and servers is not None:
        raise SourceProblem(f"give the folder {folder} or --bootstrap-server {servers}, and not both")
    if folder is not None:
        try:
            return _of_files([folder, *more], window) if more else _of_path(folder, window)
        except OSError as problem:
            raise SourceProblem(
                f"{problem.filename or folder} cannot be read: {problem.strerror}; give this user the right to read it"
            ) from None
    _must_be_whole(window)
    named = [part.strip() for part in (servers or DEFAULT_SERVER).split(",") if part.strip()]
    if named and all("//" in each for each in named):
        from rejoin.pipeline.why.service import ServiceSource  # noqa: PLC0415

        try:
            return ServiceSource(named)
        except ValueError as problem:
            raise SourceProblem(str(problem)) from None
    from rejoin.pipeline.why.cluster import ClusterSource  # noqa: PLC0415

    return ClusterSource(servers or "", config, seconds)


def _of_path(path: Path, window: LogWindow) -> StorySource:
    """The source in a folder or a file. Raises SourceProblem and OSError."""
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        hint = f"; for a cluster say --bootstrap-server {path}" if ":" in str(path) else ""
        expected = "expected a folder that rejoin report or rejoin watch wrote, or a journal"
        raise SourceProblem(f"{path}: no such folder; {expected}{hint}") from None
    if is_folder:
        names = {each.name for each in path.iterdir()}
        from rejoin.pipeline.kafka_cluster.store import is_watched  # noqa: PLC0415

        if is_watched(path):
            _must_be_whole(window)
            from rejoin.pipeline.why.watched import WatchedSource  # noqa: PLC0415

            return WatchedSource(path)
        offsets = [] if _TABLES in names else _offset_files(path)
        if offsets:
            _must_be_whole(window)
            from rejoin.pipeline.why.watched import WatchedSource  # noqa: PLC0415

            return WatchedSource(path, offsets)
        if _TABLES in names or not names:
            _must_be_whole(window)
            from rejoin.pipeline.why.tables import TablesSource  # noqa: PLC0415

            return TablesSource(path)
    return _of_files([path], window)


def _must_be_whole(window: LogWindow) -> None:
    if str(window):
        raise SourceProblem(f"{window}: only logs can be cut; of a journal, a report or a service ask for --at TIME")


def _of_files(paths: Sequence[Path], window: LogWindow) -> StorySource:
    """Journals where there are any, and else logs."""
    from rejoin.pipeline.reading.inputs import NoInput, find  # noqa: PLC0415

    try:
        found = find(paths)
    except NoInput as problem:
        raise SourceProblem(str(problem)) from None
    readable = [each for each in found if each.problem is None]
    logs = [each for each in readable if each.kind == "log"]
    if logs and not any(each.kind == "journal" for each in readable):
        from rejoin.pipeline.why.logs import LogSource  # noqa: PLC0415

        return LogSource(" ".join(map(str, paths)), logs, [each for each in found if each.problem is not None], window)
    _must_be_whole(window)
    from rejoin.pipeline.why.journal import JournalSource  # noqa: PLC0415

    return JournalSource(paths, found)


def _offset_files(folder: Path) -> list[Path]:
    """Files of a folder with offsets that other tools wrote down."""
    from rejoin.pipeline.kafka_cluster.offset_files import has_offsets  # noqa: PLC0415

    return [path for path in sorted(folder.iterdir()) if path.is_file() and has_offsets(path)]
