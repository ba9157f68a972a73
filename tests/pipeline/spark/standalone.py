"""A Spark standalone master and workers on this machine, of what the PyPI package ships."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from rejoin.pipeline.spark.session import java_environment
from tests.pipeline.quick import JVM

PATIENCE_S = 200.0


@dataclass
class Cluster:
    """``url`` is the master's; one process for each worker."""

    url: str
    workers: list[subprocess.Popen[bytes]]

    def executors(self) -> list[psutil.Process]:
        """The JVMs in which tasks run."""
        found = []
        for worker in self.workers:
            for child in psutil.Process(worker.pid).children(recursive=True):
                try:
                    if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in child.cmdline():
                        found.append(child)
                except psutil.NoSuchProcess:
                    continue
        return found


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Cluster]:
    """A master and some workers of one core each, on the loopback interface; they end with the block."""
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, **java_environment(folder), "SPARK_HOME": str(home)}
    environment |= {"SPARK_LOCAL_DIRS": str(folder / "local"), **JVM}
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
        for number in range(workers):
            work = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / f"work-{number}")]
            processes.append(start("worker.Worker", *work, url))
        wait_for(folder / "cluster.log", "(?s)" + "Registering worker.*" * workers)
        yield Cluster(url, processes[1:])


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
