"""The one place that starts Spark: Java, Python, settings, quiet logs, and our packages for the executors.

Every session of a process runs in the JVM that the first one started, so settings of that JVM (memory, garbage
collector, log file) are the first one's. The JVM writes into a file, never to the console; errors name it. Whatever
Spark leaves behind (warehouse, shuffles, native libraries) lies in a folder of the session that goes with the process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

import rejoin
from rejoin.pipeline.spark.class_archive import archive_options
from rejoin.pipeline.spark.java import find_java
from rejoin.pipeline.spark.masters import MASTER
from rejoin.pipeline.spark.trouble import SparkTrouble

try:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession
except ImportError as missing:
    raise ImportError(f"{missing}; the pipeline needs: pip install 'rejoin-kafka[pipeline]'") from missing

MEMORY: Final = "REJOIN_SPARK_MEMORY"
"""Environment variable with the memory of the driver's JVM, such as 4g."""

GOES_TOGETHER: Final = {"pyspark": ("4.3", "4.4"), "pandas": ("2.2", "3"), "pyarrow": ("18", "")}
"""Package to the first version that will do and the first that will not."""

_PACKAGE: Final = Path(rejoin.__file__).parent
_ROOT: Final = _PACKAGE.parent
_LOGGING: Final = Path(__file__).resolve().with_name("log4j2.properties")

_ALWAYS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What the page would show is kept without the page, too: a gigabyte after a few reports.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.sql.session.timeZone": "UTC",
    # Compiled plans that are kept; one table of ours is up to a hundred, which is Spark's own number for all of them.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Hashed, more than 128 groups are sorted after all; behind a window function they are sorted already.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Else each operation on a column asks the JVM seven times, only to name the line of Python in an error.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_FAST: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}
_FAST_MEMORY: Final = "1g"
_FAST_JVM: Final = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Xms768m -Xmn448m -XX:MetaspaceSize=256m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Collects rarely, and does not verify Spark's own classes once more."""
_LOCAL_JVM: Final = "-XX:+UseParallelGC"
"""Rows are short-lived and latency does not matter: only the total time of garbage collection counts."""
_LOOKED_UP: Final = (
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.types.Metadata",
    "org.apache.spark.sql.expressions.Window",
)
"""Names by which pyspark looks up classes of the JVM, again for each column."""


class _JavaClass:
    """A class of the JVM whose members are looked up once: for each of them the JVM goes through all there are."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._found, name)
        setattr(self, name, member)
        return member


@dataclass(slots=True)
class _Folder:
    """The session's folder. ``kept`` when an error named a file in it."""

    path: Path
    kept: bool = False


_folder: _Folder | None = None


def spark_session(
    master: str | None = None,
    *,
    fast: bool = False,
    settings: Mapping[str, str] | None = None,
    app: str = "rejoin",
) -> SparkSession:
    """The running session, or else a new one.

    ``master``: ``local[N]``, ``local-cluster[EXECUTORS,CORES,MB]`` or ``spark://HOST:PORT``; without it what
    REJOIN_SPARK_MASTER says, or all cores of this machine. ``fast``: starts quickly and is good for small data only.
    ``settings``: Spark's own, and they win. A session that runs already is returned as it is.

    Raises :class:`pipeline.spark.java.NoJava`, and :class:`SparkTrouble` for whatever else keeps Spark from starting.
    """
    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    _check_versions()
    folder = _session_folder()
    master = master or os.environ.get(MASTER) or f"local[{_cores()}]"
    # Rows that come back as datetime are in the zone of the process; so that they mean the same everywhere, it is UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()
    if _is_local(master) or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        context = _start(master, _settings(master, folder, fast) | dict(settings or {}), app, folder)
        session = SparkSession.builder.getOrCreate()
    except Exception as problem:
        raise trouble(f"Spark did not start with master {master}", problem) from problem
    if not master.startswith("local["):
        _ship(context, folder)
    return session


@contextmanager
def session(
    master: str | None = None,
    *,
    fast: bool = False,
    settings: Mapping[str, str] | None = None,
    app: str = "rejoin",
) -> Iterator[SparkSession]:
    """:func:`spark_session` for a while: one that was started for it is stopped at the end."""
    before = SparkContext._active_spark_context
    spark = spark_session(master, fast=fast, settings=settings, app=app)
    try:
        yield spark
    except KeyboardInterrupt:
        if before is None:
            aside(spark.stop)
        raise
    except BaseException:
        if before is None:
            spark.stop()
        raise
    if before is None:
        spark.stop()


def aside(call: Callable[[], Any], patience_s: float = 10.0) -> None:
    """Call Spark from another thread, and wait for it. What it raises is dropped.

    Ctrl-C cuts off the call to the JVM that the main thread is in, whose answer the next call would take for its own.
    """
    thread = threading.Thread(target=_try, args=(call,), daemon=True)
    thread.start()
    thread.join(patience_s)


def _try(call: Callable[[], Any]) -> None:
    with suppress(Exception):
        call()


def log_file() -> Path:
    """Where Spark, and the Python workers of a local master, write."""
    return _session_folder() / "spark.log"


def trouble(what: str, problem: BaseException) -> SparkTrouble:
    """The message for an error of Spark: its first line, and where the rest is. The log file is kept."""
    global _folder  # noqa: PLW0602
    log = log_file()
    assert _folder is not None
    _folder.kept = True
    return SparkTrouble(f"{what}: {_first_line(problem, log)} (more in {log})")


def java_environment(folder: Path) -> dict[str, str]:
    """Environment variables under which Spark's own scripts run: Java found, loopback. Raises ``NoJava``."""
    java = find_java()
    submitted = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {archive_options(java)}".strip()
    return {
        "JAVA_HOME": str(java.prepared(folder / "java")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": submitted,
    }


def package_zip(path: Path) -> Path:
    """Write our packages, as they are here, into a zip that Python can import from."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # The folders of a checkout are links, which rglob does not follow.
        for entry in sorted(_PACKAGE.iterdir()):
            for file in sorted(entry.rglob("*")) if entry.is_dir() else [entry]:
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(_ROOT).as_posix())
    return path


def _start(master: str, settings: dict[str, str], app: str, folder: Path) -> SparkContext:
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(app)
    for key, value in settings.items():
        conf.set(key, value)
    gateway = SparkContext._gateway
    if gateway is None:
        environment = java_environment(folder)
        if master.startswith("local-cluster"):
            environment["SPARK_HOME"] = str(_home_of_a_cluster(folder))
        if not _is_local(master) and not _is_loopback(master):
            del environment["SPARK_LOCAL_IP"]
        if master.startswith("local[") and _ROOT.name != "site-packages":
            known = os.environ.get("PYTHONPATH")
            environment["PYTHONPATH"] = str(_ROOT) if not known else f"{_ROOT}{os.pathsep}{known}"
        with _environment(environment), log_file().open("ab") as log:
            gateway = _launch(conf, log)
    context = SparkContext(conf=conf, gateway=gateway)
    jvm = context._jvm
    for name in _LOOKED_UP:
        # Kept where Python finds it first. A name that is no class, yet, would be searched for in every jar.
        if name not in vars(jvm):
            setattr(jvm, name, _JavaClass(getattr(jvm, name)))
    return context


def _launch(conf: SparkConf, log: IO[bytes]) -> Any:
    """Start the JVM. One whose start is interrupted is killed: it would not find its folder, and stay for ever."""
    try:
        return launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    except BaseException as problem:
        # Only the frame that waits for the JVM knows its process.
        for frame, _ in traceback.walk_tb(problem.__traceback__):
            process = frame.f_locals.get("proc")
            if isinstance(process, subprocess.Popen):
                process.kill()
                with process:
                    pass  # waits, and closes its pipe
        raise


def _settings(master: str, folder: Path, fast: bool) -> dict[str, str]:
    (folder / "tmp").mkdir(exist_ok=True)
    java = [
        f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-Dderby.system.home={folder}",
        "-Duser.timezone=UTC",
        "-XX:-UsePerfData",
    ]
    settings = _ALWAYS | {
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.memory": os.environ.get(MEMORY) or _memory(),
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    }
    if _is_local(master):
        settings["spark.local.dir"] = str(folder / "tmp")
        settings["spark.sql.shuffle.partitions"] = str(2 * _cores())
    if _is_local(master) or _is_loopback(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings["spark.executor.extraJavaOptions"] += f" {archive_options(find_java())}"
    if fast:
        settings |= _FAST | {"spark.driver.memory": os.environ.get(MEMORY) or _FAST_MEMORY}
        java.append(_FAST_JVM)
    elif _is_local(master):
        java.append(_LOCAL_JVM)
    return settings | {"spark.driver.extraJavaOptions": " ".join(java)}


def _ship(context: SparkContext, folder: Path) -> None:
    before = list(sys.path)
    context.addPyFile(str(package_zip(folder / "rejoin-packages.zip")))
    # Spark puts the archive before our own packages, whose files beside the code an archive does not give.
    sys.path[:] = before


def _home_of_a_cluster(folder: Path) -> Path:
    """A SPARK_HOME whose ``work``, where local-cluster writes, is not in the installed package."""
    import pyspark  # noqa: PLC0415

    home = folder / "spark"
    home.mkdir(exist_ok=True)
    for entry in sorted(Path(pyspark.__file__).parent.iterdir()):
        if entry.name != "work" and not (home / entry.name).exists():
            (home / entry.name).symlink_to(entry)
    return home


def _session_folder() -> Path:
    global _folder  # noqa: PLW0603
    if _folder is None:
        _folder = _Folder(Path(tempfile.mkdtemp(prefix="rejoin-spark-")))
        atexit.register(_remove, _folder, os.getpid())
    return _folder.path


def _remove(folder: _Folder, owner: int) -> None:
    if os.getpid() != owner:
        return
    if not folder.kept:
        shutil.rmtree(folder.path, ignore_errors=True)
        return
    for entry in folder.path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for what is started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _check_versions() -> None:
    for package, (first, ends) in GOES_TOGETHER.items():
        wanted = f"{package}>={first}" + (f",<{ends}" if ends else "")
        try:
            there = version(package)
        except PackageNotFoundError:
            raise SparkTrouble(
                f"{package} is not installed; the pipeline needs {wanted}: pip install 'rejoin-kafka[pipeline]'"
            ) from None
        if _number(there) < _number(first) or (ends and _number(there) >= _number(ends)):
            raise SparkTrouble(
                f"{package} {there} does not go with the rest; expected {wanted}: pip install '{wanted}'"
            )


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())


def _first_line(problem: BaseException, log: Path) -> str:
    if isinstance(problem, PySparkException) and problem.getCondition() == "JAVA_GATEWAY_EXITED":
        written = log.read_text(encoding="utf-8", errors="replace").strip() if log.exists() else ""
        return written.splitlines()[-1] if written else "Java ended at once"
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if not lines:
        return type(problem).__name__
    # Of an error inside the JVM the first line says only that there was one.
    return lines[1].removeprefix(": ") if lines[0].startswith("An error occurred while") and lines[1:] else lines[0]


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _is_loopback(master: str) -> bool:
    return urlsplit(master).hostname in ("127.0.0.1", "localhost", "::1")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _memory() -> str:
    """A quarter of this machine's memory, from 1 to 8 GB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(8192, max(1024, total // 4 >> 20))}m"
