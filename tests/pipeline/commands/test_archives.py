"""Logs in archives, packed logs and standard input: read in place, whatever is wrong with one of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

import pytest

from rejoin.pipeline.commands.parser import report, why
from rejoin.pipeline.reading.inputs import InputFile, find, must_name_groups
from rejoin.pipeline.reading.packed import archives
from rejoin.pipeline.reading.packed.opening import most_unpacked, opened, size_of
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import SourceProblem
from tests.paths import ROOT

LOG: Final = (ROOT / "tests" / "golden" / "public-logs" / "java-late-and-back.log").read_bytes()
OTHER: Final = LOG.replace(b"b-1", b"b-2")
FILES: Final = {"pod-1/app.log": LOG, "pod-2/app.log": OTHER}


NOISE: Final = Random(1).randbytes(200_000)


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
ARCHIVES: Final[dict[str, Callable[[Mapping[str, bytes]], bytes]]] = {
    "logs.zip": zipped,
    "logs.tar": tarred,
    "logs.tgz": lambda files: gzip.compress(tarred(files)),
    "logs.tar.gz": lambda files: gzip.compress(tarred(files)),
    "logs.tar.bz2": lambda files: bz2.compress(tarred(files)),
    "logs.tar.xz": lambda files: lzma.compress(tarred(files)),
    "without-an-ending": zipped,
}


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def content_of(file: InputFile) -> bytes:
    with opened(file.path) as found:
        return found.read()


def problems_of(path: Path) -> dict[str, str]:
    return {each.path.removeprefix(f"{path}/"): each.reason for each in find([path]) if each.problem is not None}


@pytest.mark.parametrize("name", ARCHIVES)
def test_members_are_read_as_files(name: str, tmp_path: Path) -> None:
    archive = written(tmp_path / name, ARCHIVES[name](FILES))
    found = find([archive])
    assert {each.path: content_of(each) for each in found} == {
        f"{archive}/{name}": content for name, content in FILES.items()
    }
    assert [each.size for each in found] == [size_of(each.path) for each in found] == [len(LOG), len(OTHER)]
    for name, content in FILES.items():
        written(tmp_path / "files" / name, content)
    in_files, in_archive = (open_source(each).story("bills") for each in (tmp_path / "files", archive))
    assert [row["text"] for row in in_archive.findings] == [row["text"] for row in in_files.findings] != []
    assert [row["joined"] for row in in_archive.rebalances] == [row["joined"] for row in in_files.rebalances]
    assert in_archive.read == in_files.read


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_log_is_read_alone_and_in_an_archive(ending: str, tmp_path: Path) -> None:
    packed = PACKERS[ending](LOG)
    for path in (written(tmp_path / f"a.log.1.{ending}", packed), written(tmp_path / "b", packed)):
        assert [(content_of(each), each.is_packed) for each in find([path])] == [(LOG, True)]
    (member,) = find([written(tmp_path / "logs.zip", zipped({f"app.log.1.{ending}": packed}))])
    assert content_of(member) == LOG


def test_folders_files_and_archives_are_read_together(tmp_path: Path) -> None:
    written(tmp_path / "folder" / "x.log", LOG)
    paths = [
        tmp_path / "folder",
        written(tmp_path / "y.log", LOG),
        written(tmp_path / "z.tgz", ARCHIVES["logs.tgz"](FILES)),
    ]
    assert [each.path.removeprefix(f"{tmp_path}/") for each in find(paths)] == [
        *("folder/x.log", "y.log", "z.tgz/pod-1/app.log", "z.tgz/pod-2/app.log")
    ]


WRONG: Final[dict[str, tuple[bytes, str]]] = {
    "../../out.log": (LOG, "its name leads out of the archive"),
    "inner.zip": (zipped(FILES), "an archive within an archive"),
    "inner.tgz": (gzip.compress(tarred(FILES)), "an archive within an archive"),
    "program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8, "not text"),
    "rows.parquet": (b"PAR1" + bytes(100), "Parquet within an archive"),
    "cut.log.gz": (gzip.compress(LOG)[:8], "not in the format of gzip"),
    "no.log.gz": (b"no gzip at all", "not in the format of gzip"),
}


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_member_is_named_and_the_rest_is_read(
    name: str, pack: Callable[[Mapping[str, bytes]], bytes], tmp_path: Path
) -> None:
    content, says = WRONG[name]
    path = written(tmp_path / "logs", pack({"good.log": LOG, name: content, "late/good.log": OTHER}))
    problems = problems_of(path)
    assert list(problems) == [name]
    assert says in problems[name]
    assert "\n" not in problems[name]
    story = open_source(path).story("bills")
    assert story.read[0].startswith("10 lines: 10 used")
    assert any(Path(name).name in note and says in note for note in story.notes)
    assert [each for each in tmp_path.rglob("*") if each != path] == []


def encrypted(archive: bytes) -> bytes:
    """The archive, whose first member says that it is encrypted."""
    out = bytearray(archive)
    out[out.index(b"PK\x01\x02") + 8] |= 1
    out[out.index(b"PK\x03\x04") + 6] |= 1
    return bytes(out)


def with_other_bytes(archive: bytes) -> bytes:
    """The archive, whose first member's content is damaged."""
    out = bytearray(archive)
    at = out.index(b"pod-1/app.log") + 60
    out[at] ^= 0xFF
    return bytes(out)


@pytest.mark.parametrize(
    ("content", "named", "says", "files_read"),
    [
        (encrypted(zipped(FILES)), "pod-1/app.log", "encrypted", 1),
        (zipped(FILES)[:-30], "", "a zip that is broken", 0),
        (with_other_bytes(zipped(FILES)), "pod-1/app.log", "", 1),
        (tarred(FILES).rstrip(b"\0")[:-50], "", "a tar that is broken behind pod-2/app.log", 1),
        (
            gzip.compress(tarred(FILES | {"noise.log": NOISE}))[:-40],
            "",
            "a tar that cannot be unpacked to its end",
            1,
        ),
        (zipped({}), "", "an archive without files", 0),
        (gzip.compress(tarred({".hidden/app.log": LOG})), "", "an archive without files", 0),
    ],
)
def test_a_broken_archive_is_read_as_far_as_it_goes(
    content: bytes, named: str, says: str, files_read: int, tmp_path: Path
) -> None:
    archive = written(tmp_path / "logs", content)
    problems = problems_of(archive)
    assert any(says in reason for name, reason in problems.items() if name == (named or str(archive))), problems
    assert sum(each.problem is None for each in find([tmp_path])) >= files_read
    if not files_read:
        with pytest.raises(SourceProblem, match=says):
            open_source(archive)


def test_a_bomb_costs_no_more_than_its_size_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 100_000)
    monkeypatch.setattr("rejoin.pipeline.reading.packed.opening._FREE_BYTES", 100_000)
    zeros = {"zeros.log": bytes(10_000_000)}
    says = "unpacks to more than"
    for name in ("logs.zip", "logs.tar.xz"):
        path = written(tmp_path / name, ARCHIVES[name]({"good.log": LOG} | zeros))
        assert says in " ".join(problems_of(path).values())
        assert open_source(path).story("bills").findings
    path = written(tmp_path / "zeros.log.xz", lzma.compress(bytes(10_000_000)))
    (file,) = find([path])
    with pytest.raises(OSError, match=says):
        content_of(file)
    assert most_unpacked(path.stat().st_size) < 1_000_000


def test_an_archive_of_many_files_is_read_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    for pack in (zipped, tarred):
        path = written(tmp_path / pack.__name__, pack({f"{nth}.log": LOG for nth in range(5)}))
        assert sum(each.problem is None for each in find([path])) == 3
        assert "more than 3 files, and those from 3.log on are left out" in problems_of(path)[str(path)]


def test_groups_are_looked_for_in_members(tmp_path: Path) -> None:
    must_name_groups(find([written(tmp_path / "logs.zip", zipped(FILES))]))


@pytest.mark.parametrize("content", [LOG, gzip.compress(LOG), zipped({"app.log": LOG})])
def test_standard_input_is_a_log_or_an_archive(
    content: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert why("bills", Path("-")) == 0
    assert "b-1 did not poll in time" in capsys.readouterr().out


def test_a_report_reads_standard_input_beside_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LOG)))
    assert report([Path("-"), written(tmp_path / "b.log", OTHER)], out=tmp_path / "out") == 0
    assert "10 lines: 10 used; the logs of 2 members" in capsys.readouterr().out


def test_a_problem_names_standard_input_and_not_its_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asks: tuple[Callable[[], int], ...] = (lambda: why("-"), lambda: report([Path("-")], out=tmp_path / "out"))
    for ask in asks:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nothing of ours\n")))
        assert ask() == 2
        said = capsys.readouterr().err
        assert "standard input: nothing about consumer groups in there" in said
        assert "/rejoin-" not in said


def test_why_reads_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = [written(tmp_path / name, content) for name, content in (("a.log", LOG), ("b.log", OTHER))]
    for name, paths in (("bills", logs), (str(logs[0]), logs[1:])):
        assert why(name, *paths) == 0
        assert "the logs of 2 members" in capsys.readouterr().out
