"""A Spark standalone master and a worker on this machine, of what the PyPI package ships."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from rejoin.pipeline.spark.class_archive import archive_options
from rejoin.pipeline.spark.java import find_java
from rejoin.pipeline.spark.session import java_environment
from tests.pipeline.quick import JVM

PATIENCE_S = 200.0


@contextmanager
def standalone(folder: Path, cores: int) -> Iterator[str]:
    """A master, whose address comes back, and a worker on the loopback interface; they end with the block."""
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, **java_environment(folder), "SPARK_HOME": str(home)}
    environment |= {"SPARK_LOCAL_DIRS": str(folder / "local"), **JVM}
    environment["SPARK_DAEMON_JAVA_OPTS"] = archive_options(find_java())
    (folder / "local").mkdir()

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        program = str(home / "bin" / "spark-class")
        command = [program, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    with ExitStack() as closing:
        log = closing.enter_context((folder / "cluster.log").open("wb"))
        processes = [start("master.Master", "--port", "0", "--webui-port", "0")]
        closing.callback(stop, processes)
        url = wait_for(folder / "cluster.log", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        work = ["--cores", str(cores), "--memory", f"{cores}g", "--webui-port", "0", "--work-dir", str(folder / "work")]
        processes.append(start("worker.Worker", *work, url))
        wait_for(folder / "cluster.log", "Registering worker")
        yield url


def wait_for(log: Path, pattern: str) -> str:
    """Wait until the log says something; returns the first group of it, or all."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))
        if found is not None:
            return found[1] if found.re.groups else found[0]
        time.sleep(0.1)
    raise AssertionError(f"never printed: {pattern}\n{log.read_text(encoding='utf-8', errors='replace')}")


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """End these and what they started."""
    for process in reversed(processes):
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.terminate()
        for child in children:
            try:
                child.terminate()
            except psutil.NoSuchProcess:
                continue
    for process in processes:
        try:
            process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
