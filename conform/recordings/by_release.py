"""Answers of older releases of Kafka, where they differ from the recordings of the newest: a file for each release.

A file is JSON, an object a line, compressed: a header, and a line for each script that differs. Fields have the paths
of :class:`~rejoin.conform.comparison.outcomes.ClassifiedDifference`.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from rejoin.conform.recordings.reading import FOLDER, RELEASE, Json, pack

OLDER_RELEASES: Final = ("3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.1")
"""Releases whose answers were recorded, oldest first: the newest patch of each as of November 2026."""
RELEASES: Final = (*OLDER_RELEASES, RELEASE)


@dataclass(frozen=True)
class FieldOfRelease:
    """A field that an older release answers otherwise."""

    step: int
    api: str
    version: int
    path: str
    newest: Any
    """Its value in the newest release."""
    value: Any


@dataclass(frozen=True)
class ReleaseRecording:
    """The answers of a release that differ, by script; how many scripts it was asked, and why not the others."""

    release: str
    scripts: dict[str, tuple[FieldOfRelease, ...]]
    played: int = 0
    not_applicable: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Scripts that were not played, by reason."""


def branch_of(release: str) -> str:
    """The release without its patch, as ``4.1``."""
    return ".".join(release.split(".")[:2])


def release_named(name: str) -> str | None:
    """The recorded release with this name, with or without its patch."""
    return next((each for each in RELEASES if name in (each, branch_of(each))), None)


@cache
def read_release(release: str) -> ReleaseRecording:
    """The recording of a release; that of the newest one has no differences."""
    if release == RELEASE:
        return ReleaseRecording(release, {})
    header, *lines = map(orjson.loads, lzma.decompress(_path(release).read_bytes()).splitlines())
    scripts = {line["script"]: tuple(FieldOfRelease(*field) for field in line["fields"]) for line in lines}
    reasons = {reason: tuple(names) for reason, names in header["notApplicable"].items()}
    return ReleaseRecording(release, scripts, header["played"], reasons)


def write_release(recording: ReleaseRecording) -> int:
    """Write the file of a release; returns its size in bytes."""
    data = pack(_lines(recording))
    path = _path(recording.release)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return len(data)


def _lines(recording: ReleaseRecording) -> Iterable[Json]:
    header = {"release": recording.release, "played": recording.played}
    yield {**header, "notApplicable": recording.not_applicable}
    for script, fields in recording.scripts.items():
        rows = [[one.step, one.api, one.version, one.path, one.newest, one.value] for one in fields]
        yield {"script": script, "fields": rows}


def _path(release: str) -> Path:
    return FOLDER / "releases" / f"{release}.jsonl.xz"
