"""Options that several commands have, checked before anything is started."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Final

from rejoin.pipeline.spark.masters import MASTER

_MASTERS: Final = re.compile(
    r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]|spark://[^:/,\s]+:\d+(,[^:/,\s]+:\d+)*"
)


class BadOption(Exception):
    """The value of an option is none that it can have; the text says which, and what was expected."""


def check_out(folder: Path, *, file: str | None = None, below: str | None = None) -> None:
    """That a folder can be written, or made, and a file and a folder in it; nothing is made here."""
    _check_folder(folder, folder)
    if below is not None:
        _check_folder(folder, folder / below)
    path = folder / (file or "")
    if path.is_dir() and file is not None:
        raise BadOption(f"--out {folder}: {path} is a folder; give another one")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadOption(f"--out {folder}: {path} cannot be written; give another folder")


def _check_folder(given: Path, folder: Path) -> None:
    there = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    if not there.is_dir():
        raise BadOption(f"--out {given}: {there} is not a folder; give another one")
    try:
        # Permissions are not everything: a file system may be full, or read-only, or none for files at all.
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as problem:
        raise BadOption(f"--out {given}: {there} cannot be written ({problem.strerror}); give another one") from None


def check_master(master: str | None) -> None:
    """That a master, the option's or the environment's, is one that Spark can be started with."""
    given, name = (master, "--master") if master else (os.environ.get(MASTER), MASTER)
    if given and not _MASTERS.fullmatch(given):
        raise BadOption(
            f"{name} {given}: no such master; expected local[N], local-cluster[EXECUTORS,CORES,MB] or spark://HOST:PORT"
        )


def stopped(out: Path | None) -> str:
    """The last line of a watch that Ctrl-C has stopped."""
    if out is None:
        return "stopped; with --out DIR it would continue from here"
    return f"stopped; the same command continues from {out}"


def check_least(option: str, value: int, least: int = 1) -> None:
    """That a number is no less than this."""
    if value < least:
        raise BadOption(f"{option} {value}: expected {least} or more")
