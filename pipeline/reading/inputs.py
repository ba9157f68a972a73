"""Which files there are, and what each of them is: a journal, Parquet, or a log of a broker."""

from __future__ import annotations

import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, cast

Kind = Literal["journal", "parquet", "log"]
"""journal: JSON lines of ours. parquet: a table of events. log: text of a broker, of whatever layout."""

NO_TABLE: Final = "not a table of events"
_NOT_READ: Final = "cannot be read: "
_OPEN: Final = ".open"
_OURS: Final = (".jsonl", ".jsonl.gz", ".jsonl.open")
_PARQUET: Final = ".parquet"
_NO_INPUT: Final = (".lock", ".crc", ".yaml", ".yml", ".html", ".md")
_PEEK_BYTES: Final = 4096
_LOOK_BYTES: Final = 2**20
_OF_SUBJECTS: Final = re.compile(rb"(?i:group|transactional_id|coordinator\.transaction|closed dead subscription)")
_OF_RECORDS: Final = re.compile(
    rb"\d\d:\d\d:\d\d|%[0-7]\|\d{9}|^\d{9,10}\.\d|^\d{13} |\{\s*\""
    rb"|^\W{0,2}(?:DEBUG|INFO|WARN|WARNING|ERROR)\b|\[thrd:|#consumer-\d",
    re.MULTILINE,
)
"""Marks of a line of a known layout: a time, JSON, a level, or librdkafka's prefix."""
_LONGEST_SUBJECT: Final = 64
_EVENTS: Final = "events"
_OF_A_REPORT: Final = {_EVENTS, "quarantine", "rebalances", "member_sessions", "findings"}
"""Folders of tables; where two of them lie side by side, a report or a watch has written them."""


EXPECTED: Final = (
    "Expected journals of ours (*.jsonl), a broker's server.log with the lines of its group coordinator, its "
    "kafka-request.log, or the logs of consumers"
)


class InputFile(NamedTuple):
    """A file to read. ``problem``: why it cannot be."""

    path: str
    size: int
    kind: Kind
    problem: str | None = None

    @property
    def kind_of_problem(self) -> str:
        """The kind of its row in the quarantine, where it has a ``problem``."""
        return "not-a-row" if str(self.problem).startswith(NO_TABLE) else "unreadable"

    @property
    def reason(self) -> str:
        """Its ``problem`` in short, for a sentence that says already that it could not be read."""
        return str(self.problem).removeprefix(_NOT_READ)

    @property
    def is_open(self) -> bool:
        """Whether it is still being written, so that an incomplete last line is no fault."""
        return self.path.endswith(_OPEN)


class NoInput(Exception):
    """Nothing to read where something was to be; the text says where."""


def find(paths: Iterable[str | os.PathLike[str]]) -> list[InputFile]:
    """Every file that paths name, directories with all that is below them, by path; none is named twice.

    Within directories, names that begin with a dot or an underscore, locks, and the tables of reports are passed over;
    of tables that are named themselves, the events are taken. A file or directory that may not be read has a
    ``problem``. Raises :class:`NoInput` when a path does not exist, or when there is not one file in all of them.
    """
    found: dict[str, InputFile] = {}
    for given in paths:
        path = Path(given)
        try:
            path.stat()
        except PermissionError as problem:
            found[os.path.realpath(path)] = _may_not_read(os.path.realpath(path), problem)
            continue
        except (OSError, ValueError):
            raise NoInput(f"{path}: no such file or directory; give journals, logs, or directories of them") from None
        closed: list[OSError] = []
        for each in [path] if path.is_file() else _below(path, closed):
            name = os.path.realpath(each)
            found[name] = _look(each, name) if _is_text(name) else _without_text_name(name)
        found |= {name: _may_not_read(name, each) for each in closed for name in [os.path.realpath(each.filename)]}
    if not found:
        raise NoInput(
            f"{', '.join(str(path) for path in paths)}: no files there; expected *.jsonl, *.parquet or logs. "
            "Reports of ours are passed over: their events are in tables/events"
        )
    return [found[name] for name in sorted(found)]


def _below(directory: Path, closed: list[OSError]) -> list[Path]:
    """The files below a directory; ``closed`` gets what kept directories from being listed."""
    below: list[Path] = []
    for folder, folders, names in os.walk(directory, onerror=closed.append):
        folders[:] = [folder for folder in folders if not folder.startswith((".", "_"))]
        if len(_OF_A_REPORT.intersection(folders)) > 1:
            folders[:] = [_EVENTS] if Path(folder) == directory and _EVENTS in folders else []
            continue
        below += [
            Path(folder, name)
            for name in names
            if not name.startswith((".", "_")) and not name.endswith(_NO_INPUT) and _is_input(Path(folder, name))
        ]
    return below


def _is_input(path: Path) -> bool:
    """Whether this is a file, or what may not be looked at, or a link that leads to none: those are reported."""
    try:
        return path.is_file() or (path.is_symlink() and not path.exists())
    except OSError:
        return True


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_text_name(name: str) -> InputFile:
    shown = os.fsencode(name).decode(errors="backslashreplace")
    return InputFile(shown, 0, "log", f"{_NOT_READ}its name is not UTF-8; rename it")


def _may_not_read(name: str, problem: OSError) -> InputFile:
    return InputFile(name, 0, "log", f"{_NOT_READ}{problem.strerror}")


def _look(path: Path, name: str) -> InputFile:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_PEEK_BYTES)
    except OSError as problem:
        return _may_not_read(name, problem)
    if name.endswith(_PARQUET):
        return _as_parquet(InputFile(name, size, "parquet"))
    if name.endswith(_OURS):
        return InputFile(name, size, "journal")
    if name.endswith(".gz"):
        try:
            with gzip.open(path) as unpacked:
                head = unpacked.read(_PEEK_BYTES)
        except (OSError, EOFError, zlib.error) as problem:
            return InputFile(name, size, "log", f"not in the format of gzip: {problem}")
    return InputFile(name, size, "journal" if b'"schema_version"' in head.split(b"\n", 1)[0] else "log")


def must_name_groups(found: Iterable[InputFile]) -> None:
    """Look for a group or a transaction in the files, before anything is started for them.

    Every line that says something about one has the word in it, as a field of JSON or in the name of a logger. Raises
    :class:`NoInput` where none is named.
    """
    found = list(found)
    if all(str(each.problem).startswith(_NOT_READ) for each in found):
        raise NoInput("; ".join(f"{each.path}: {each.problem}" for each in found[:3]) + f". {_whose(found)}")
    if not any(_names_groups(each) for each in found):
        problem = next((f" ({each.problem})" for each in found if each.problem), "")
        raise NoInput(f"{named(found)}: nothing about consumer groups in there{problem}. {EXPECTED}")
    if all(each.kind == "log" and each.problem is None and not _holds(each, _OF_RECORDS) for each in found):
        from rejoin.pipeline.reading.client_logs.layouts import first_unplaced  # noqa: PLC0415 (only for this error)

        with _opened(found[0]) as file:
            raise NoInput(
                f"{named(found)}: nothing about consumer groups in there: {first_unplaced(file).reason}. {EXPECTED}"
            )


def _whose(found: Sequence[InputFile]) -> str:
    """Advice for files of which none can be read."""
    if any(str(each.problem).endswith(os.strerror(errno.EACCES)) for each in found):
        return "Give this user the right to read it, or name files that it may read"
    return EXPECTED


def named(found: Sequence[InputFile]) -> str:
    """The first of many files."""
    return ", ".join(each.path for each in found[:3]) + (f" and {len(found) - 3} more files" if found[3:] else "")


def _names_groups(each: InputFile) -> bool:
    if each.kind == "parquet":
        return each.problem is None
    return _holds(each, _OF_SUBJECTS)


def _opened(each: InputFile) -> BinaryIO:
    return cast("BinaryIO", (gzip.open if each.path.endswith(".gz") else open)(each.path, "rb"))


def _holds(each: InputFile, pattern: re.Pattern[bytes]) -> bool:
    """Whether a pattern is found in a file, as far as it can be read."""
    try:
        with _opened(each) as file:
            before = b""
            while chunk := file.read(_LOOK_BYTES):
                text = before + chunk
                if pattern.search(text) is not None:
                    return True
                before = text[-_LONGEST_SUBJECT:]
    except (OSError, EOFError):
        return False
    return False


def _as_parquet(found: InputFile) -> InputFile:
    """The file as Parquet, or with the reason why it is no table of events. Journals and logs do without Arrow."""
    try:
        from rejoin.pipeline.reading.parquet_files import as_parquet  # noqa: PLC0415 (Arrow may not be installed)
    except ModuleNotFoundError as missing:
        return found._replace(problem=f"{_NOT_READ}Parquet needs {missing.name}: pip install 'rejoin-kafka[pipeline]'")
    return as_parquet(found)
