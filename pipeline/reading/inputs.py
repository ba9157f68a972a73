"""Which files there are, and what each of them is: a journal, Parquet, or a log of a broker."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple

from rejoin.pipeline.reading.packed.opening import (
    ENDINGS,
    UNREADABLE,
    is_archive,
    is_tar,
    is_zip,
    opened,
    packing_of,
    unpacked,
)

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
_PACKED: Final = 15
"""How much longer a log is than its gzip."""
_OF_PARQUET: Final = b"PAR1"
_NO_TEXT: Final = bytes(each for each in range(1, 32) if each not in b"\t\n\v\f\r\x1b") + b"\x7f"
_MOST_OF_NO_TEXT: Final = 20
"""One byte in so many may be a control character in a text."""
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
    has_packed_content: bool = False

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed, by its content or its name."""
        return self.has_packed_content or self.path.endswith(tuple(ENDINGS))

    @property
    def text_bytes(self) -> int:
        """About how long its text is."""
        return self.size * _PACKED if self.is_packed else self.size

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
        """Whether the file is still being written, so that an incomplete last line is no fault."""
        return self.path.endswith(_OPEN)


class NoInput(Exception):
    """Nothing to read where something was to be; the text says where."""


def find(paths: Iterable[str | os.PathLike[str]]) -> list[InputFile]:
    """Every file that paths name, directories and archives with all that is in them, by path; none is named twice.

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
            if not _is_text(name):
                found[name] = _without_text_name(name)
            elif is_archive(name):
                found |= {member.path: member for member in _members(name)}
            else:
                found[name] = _look(each, name)
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
        with path.open("rb"):
            pass
    except OSError as problem:
        return _may_not_read(name, problem)
    if name.endswith(_PARQUET):
        return _as_parquet(InputFile(name, size, "parquet"))
    if name.endswith(_OURS):
        return InputFile(name, size, "journal")
    try:
        with path.open("rb") as file:
            text, packing = _beginning(file, name, size)
    except UNREADABLE as problem:
        return InputFile(name, size, "log", str(problem))
    return InputFile(name, size, _kind_of(text), has_packed_content=packing is not None)


def _beginning(file: IO[bytes], name: str, size: int) -> tuple[bytes, str | None]:
    """The first bytes of a file's text, and how it is packed. Raises OSError where it is not packed as it seems."""
    head = file.read(_PEEK_BYTES)
    packing = packing_of(head) or next((each for ending, each in ENDINGS.items() if name.endswith(ending)), None)
    if packing is None:
        return head, None
    file.seek(0)
    try:
        return unpacked(file, packing, size).read(_PEEK_BYTES), packing
    except UNREADABLE as problem:
        raise OSError(f"not in the format of {packing}: {problem}") from None


def _kind_of(head: bytes) -> Kind:
    return "journal" if b'"schema_version"' in head.split(b"\n", 1)[0] else "log"


def _members(archive: str) -> Iterator[InputFile]:
    """The members of an archive, as the files of a directory, and the archive where it has more that cannot be read."""
    from rejoin.pipeline.reading.packed.archives import archive_at  # noqa: PLC0415 (few inputs are archives)

    found = archive_at(archive)
    names = [name for name in found.members if not _is_passed_over(name)]
    if found.problem is not None or not names:
        yield InputFile(archive, 0, "log", _NOT_READ + (found.problem or "an archive without files"))
    for name in names:
        path, member = f"{archive}/{name}", found.members[name]
        try:
            with member.open() as stored:
                begins = stored.read(_PEEK_BYTES)
                stored.seek(0)
                text, packing = _beginning(stored, name, member.size)
        except UNREADABLE as problem:
            yield InputFile(path, member.size, "log", f"{_NOT_READ}{problem}")
            continue
        wrong = _wrong_in_archive(begins, text)
        if wrong is not None:
            yield InputFile(path, member.size, "log", _NOT_READ + wrong)
        elif name.endswith(_OURS):
            yield InputFile(path, member.size, "journal", has_packed_content=packing is not None)
        else:
            yield InputFile(path, member.size, _kind_of(text), has_packed_content=packing is not None)


def _wrong_in_archive(head: bytes, text: bytes) -> str | None:
    """Why a member is not read that begins like this, and whose unpacked content does."""
    if is_zip(head) or is_tar(text):
        return "an archive within an archive; unpack it first"
    if head.startswith(_OF_PARQUET):
        return "Parquet within an archive; unpack it first"
    if _MOST_OF_NO_TEXT * len(text.translate(None, _NO_TEXT)) < (_MOST_OF_NO_TEXT - 1) * len(text):
        return f"not text: it begins with the bytes {text[:4].hex(' ')}"
    return None


def _is_passed_over(name: str) -> bool:
    return name.endswith(_NO_INPUT) or any(part.startswith((".", "_")) and part != ".." for part in name.split("/"))


def must_name_groups(found: Iterable[InputFile]) -> None:
    """Look for a group or a transaction in the files, before anything is started for them.

    Every line that says something about one has the word in it, as a field of JSON or in the name of a logger. Raises
    :class:`NoInput` where none is named.
    """
    found = list(found)
    if all(str(each.problem).startswith(_NOT_READ) for each in found):
        raise NoInput("; ".join(f"{each.path}: {each.problem}" for each in found[:3]) + f". {what_to_do(found)}")
    if not any(_names_groups(each) for each in found):
        problem = next((f" ({each.problem})" for each in found if each.problem), "")
        raise NoInput(f"{named(found)}: nothing about consumer groups in there{problem}. {_nearest(found)}{EXPECTED}")
    if all(each.kind == "log" and each.problem is None and not _holds(each, _OF_RECORDS) for each in found):
        from rejoin.pipeline.reading.client_logs.layouts import first_unplaced  # noqa: PLC0415 (only for this error)

        with opened(found[0].path) as file:
            raise NoInput(
                f"{named(found)}: nothing about consumer groups in there: {first_unplaced(file).reason}. "
                f"{_nearest(found)}{EXPECTED}"
            )


def _nearest(found: Iterable[InputFile]) -> str:
    """The layout that unread logs are nearest to, as a sentence that ends in a space; empty without such logs."""
    from rejoin.pipeline.reading.peeling.unknown_layouts import nearest_layout  # noqa: PLC0415 (only for this error)

    nearest = nearest_layout(each.path for each in found if each.kind == "log" and each.problem is None)
    return f"{nearest} " if nearest else ""


def what_to_do(found: Sequence[InputFile]) -> str:
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


def _holds(each: InputFile, pattern: re.Pattern[bytes]) -> bool:
    """Whether a pattern is found in a file, as far as it can be read."""
    try:
        with opened(each.path) as file:
            before = b""
            while chunk := file.read(_LOOK_BYTES):
                text = before + chunk
                if pattern.search(text) is not None:
                    return True
                before = text[-_LONGEST_SUBJECT:]
    except UNREADABLE:
        return False
    return False


def _as_parquet(found: InputFile) -> InputFile:
    """The file as Parquet, or with the reason why it is no table of events. Journals and logs do without Arrow."""
    try:
        from rejoin.pipeline.reading.parquet_files import as_parquet  # noqa: PLC0415 (Arrow may not be installed)
    except ModuleNotFoundError as missing:
        return found._replace(problem=f"{_NOT_READ}Parquet needs {missing.name}: pip install 'rejoin-kafka[pipeline]'")
    return as_parquet(found)
