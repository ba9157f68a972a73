"""The archive of Spark's classes: whose it is, when it is used, and that it is whole or not there."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from rejoin.pipeline.commands import class_archive
from rejoin.pipeline.spark.class_archive import FOLDER, archive_options, archive_path
from rejoin.pipeline.spark.java import Java, find_java
from rejoin.pipeline.spark.session import java_environment


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    monkeypatch.setenv(FOLDER, str(tmp_path / "the classes"))
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text('JAVA_RUNTIME_VERSION="21.0.1+12"\n')
    return Java(home, 21, "PATH")


def test_without_an_archive_a_jvm_is_started_as_always(java: Java) -> None:
    assert archive_options(java) == ""


def test_an_archive_is_named_on_the_command_line(java: Java) -> None:
    archive = archive_path(java)
    archive.parent.mkdir()
    archive.touch()
    assert shlex.split(archive_options(java))[0] == f"-XX:SharedArchiveFile={archive}"


def test_each_java_has_an_archive_of_its_own(java: Java, tmp_path: Path) -> None:
    archive = archive_path(java)
    assert archive_path(replace(java, found_by="JAVA_HOME")) == archive
    assert archive_path(replace(java, home=tmp_path)) != archive
    (java.home / "release").write_text('JAVA_RUNTIME_VERSION="21.0.2+13"\n')
    assert archive_path(java) != archive


def test_archives_lie_in_the_users_cache(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert archive_path(java).parent == Path("/cache/rejoin/spark-classes")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert archive_path(java).parent == Path("/home/me/.cache/rejoin/spark-classes")


def test_a_user_without_a_home_has_no_archive(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    for name in (FOLDER, "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert archive_options(java) == ""


def test_options_of_the_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert java_environment(tmp_path)["SPARK_SUBMIT_OPTS"] == "-Dmine=1"


def test_an_archive_that_is_there_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    archive = archive_path(find_java())
    archive.touch()
    assert class_archive.main() == 0
    assert capsys.readouterr().out == f"Spark's classes are in {archive}\n"


def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(FOLDER, str(tmp_path / "file" / "classes"))
    assert class_archive.main() == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "file") in said
    assert said.endswith("Spark starts without an archive of its classes\n")


@pytest.mark.skipif(not archive_options(find_java()), reason="`make test` makes the archive")
def test_the_jvm_of_a_session_uses_it(spark: SparkSession) -> None:
    archive = archive_path(find_java())
    gateway = SparkContext._gateway
    assert gateway is not None
    assert str(archive) in Path("/proc", str(gateway.proc.pid), "maps").read_text()
    assert os.access(archive, os.R_OK)
