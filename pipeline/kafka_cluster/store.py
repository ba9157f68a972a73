"""The folder of a watch of a cluster: snapshots of its groups, one JSON line each, by day.

A snapshot is stored with its predecessor when anything but offsets has changed, and otherwise once in
:data:`KEPT_EVERY_MS`. The stored snapshots lead to the conclusions of the watch, and a day of an unchanged group is
small.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rejoin.journal.file_lock import sole_writer
from rejoin.pipeline.kafka_cluster.names import ABOUT
from rejoin.pipeline.kafka_cluster.observations import ObservedGroup
from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup

KEPT_EVERY_MS: Final = 60_000
_VERSION: Final = 1
_SNAPSHOTS: Final = "snapshots"
_BEFORE: Final = "looks"
"""The files' prefix in earlier versions; these files are read as well."""


class WatchFolderProblem(Exception):
    """The folder cannot be used as it is; the text says why and what to do."""


class ClusterStore:
    """A folder of one watch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: dict[str, ClusterGroup] = {}
        self._last: dict[str, ClusterGroup] = {}

    @contextmanager
    def locked(self, servers: str) -> Iterator[None]:
        """Lock the folder for writing. Raises WatchFolderProblem."""
        with sole_writer(self.folder, WatchFolderProblem):
            self._check(servers)
            yield

    def _check(self, servers: str) -> None:
        path = self.folder / ABOUT
        if path.exists():
            version = about(self.folder).get("version")
            if version != _VERSION:
                raise WatchFolderProblem(f"{path} is of version {version}, expected {_VERSION}; give another folder")
        elif any(each.name != ".lock" for each in self.folder.iterdir()):
            raise WatchFolderProblem(f"{self.folder} holds something else already; give an empty folder")
        path.write_text(json.dumps({"version": _VERSION, "servers": servers}) + "\n", encoding="utf-8")

    def observed(self) -> dict[str, ObservedGroup]:
        """The groups as they were left; what is kept from now on goes on from there."""
        groups: dict[str, ObservedGroup] = {}
        for snapshot in read_snapshots(self.folder):
            groups.setdefault(snapshot.group_id, ObservedGroup(snapshot.group_id, str(self.folder))).follow(snapshot)
            self._kept[snapshot.group_id] = self._last[snapshot.group_id] = snapshot
        return groups

    def keep(self, snapshots: list[ClusterGroup]) -> None:
        """Write the snapshots that are to be kept. Raises OSError."""
        lines: dict[str, list[str]] = {}
        for snapshot in snapshots:
            before = self._last.get(snapshot.group_id)
            kept = self._kept.get(snapshot.group_id)
            self._last[snapshot.group_id] = snapshot
            changed = before is None or not snapshot.differs_only_in_offsets(before)
            if not changed and kept is not None and snapshot.at_ms - kept.at_ms < KEPT_EVERY_MS:
                continue
            for each in (before, snapshot) if changed and before is not None and before is not kept else (snapshot,):
                day = f"{datetime.fromtimestamp(each.at_ms / 1_000, UTC):%Y-%m-%d}"
                lines.setdefault(day, []).append(json.dumps(each.as_row(), ensure_ascii=False, separators=(",", ":")))
            self._kept[snapshot.group_id] = snapshot
        for day, rows in lines.items():
            path = self.folder / f"{_SNAPSHOTS}-{day}.jsonl"
            # A line that a kill cut short is ended, so that the next one is whole.
            begin = "\n" if _is_cut(path) else ""
            with path.open("a", encoding="utf-8") as file:
                file.write(begin + "\n".join(rows) + "\n")


def is_watched(folder: Path) -> bool:
    """Whether a folder was written by the watch of a cluster."""
    return (folder / ABOUT).is_file()


def about(folder: Path) -> dict[str, Any]:
    """The folder's description of itself. Raises WatchFolderProblem."""
    try:
        found = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise WatchFolderProblem(f"{folder / ABOUT} cannot be read; the folder is damaged, give another one") from None
    return found if isinstance(found, dict) else {}


def read_snapshots(folder: Path, group_id: str | None = None) -> Iterator[ClusterGroup]:
    """The snapshots that were kept, of one group or of all, in the order of time. Lines that are none are left out."""
    kept = [path for name in (_BEFORE, _SNAPSHOTS) for path in folder.glob(f"{name}-*.jsonl")]
    for path in sorted(kept, key=lambda path: (path.stem.partition("-")[2], path.name)):
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    snapshot = ClusterGroup.of_row(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue
                if group_id is None or snapshot.group_id == group_id:
                    yield snapshot


def _is_cut(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except FileNotFoundError:
        return False
