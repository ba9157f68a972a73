"""Which source an argument names: a folder, ``http://HOST:PORT``, or ``HOST:PORT``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rejoin.pipeline.why.story import SourceProblem, StorySource

DEFAULT_SERVER: Final = "http://127.0.0.1:9095"


def open_source(
    folder: Path | None = None, servers: str | None = None, config: str | None = None, seconds: float = 2.0
) -> StorySource:
    """A folder that report or watch wrote, or a journal, or else the coordinators or the cluster at an address."""
    if folder is not None and servers is not None:
        raise SourceProblem(f"give the folder {folder} or --bootstrap-server {servers}, and not both")
    if folder is not None:
        if folder.suffix == ".jsonl" and folder.is_file():
            from rejoin.pipeline.why.journal import JournalSource  # noqa: PLC0415

            return JournalSource(folder)
        if not folder.is_dir():
            hint = f"; for a cluster say --bootstrap-server {folder}" if ":" in str(folder) else ""
            wrong = "is a file" if folder.exists() else "no such folder"
            expected = "expected a folder that rejoin report or rejoin watch wrote, or a journal"
            raise SourceProblem(f"{folder}: {wrong}; {expected}{hint}")
        from rejoin.pipeline.live_cluster.store import is_watched  # noqa: PLC0415

        if is_watched(folder):
            from rejoin.pipeline.why.watched import WatchedSource  # noqa: PLC0415

            return WatchedSource(folder)
        offsets = [] if (folder / "tables").is_dir() else _offset_files(folder)
        if offsets:
            from rejoin.pipeline.why.watched import WatchedSource  # noqa: PLC0415

            return WatchedSource(folder, offsets)
        from rejoin.pipeline.why.journal import JournalSource, is_journal  # noqa: PLC0415

        if not (folder / "tables").is_dir() and is_journal(folder):
            return JournalSource(folder)
        from rejoin.pipeline.why.tables import TablesSource  # noqa: PLC0415

        return TablesSource(folder)
    named = [part.strip() for part in (servers or DEFAULT_SERVER).split(",") if part.strip()]
    if named and all("//" in each for each in named):
        from rejoin.pipeline.why.service import ServiceSource  # noqa: PLC0415

        try:
            return ServiceSource(named)
        except ValueError as problem:
            raise SourceProblem(str(problem)) from None
    from rejoin.pipeline.why.cluster import ClusterSource  # noqa: PLC0415

    return ClusterSource(servers or "", config, seconds)


def _offset_files(folder: Path) -> list[Path]:
    """Files of a folder with offsets that other tools wrote down."""
    from rejoin.pipeline.live_cluster.offset_files import has_offsets  # noqa: PLC0415

    return [path for path in sorted(folder.iterdir()) if path.is_file() and has_offsets(path)]
