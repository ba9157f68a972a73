"""The programs: for each client its version, how it is made ready, and how it is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
EXAMPLES: Final = HERE.parents[1] / "examples" / "testing"
BUILT: Final = HERE.parents[1] / "out" / "clients"
LINKING: Final = {"CKJS_LINKING": "dynamic"}
"""Builds the native part of @confluentinc/kafka-javascript with the libraries of this machine."""

JAVA: Final = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """A client: the commands that run its life and its example. ``lacks`` are steps that it has no call for.

    A life is given where a node listens, an example starts its own.
    """

    name: str
    version: str
    life: Callable[[], list[str]]
    example: Callable[[], list[str]] | None = None
    lacks: tuple[str, ...] = ()


def run(*command: str, folder: Path = HERE) -> str:
    """Run a command that must succeed; returns its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | LINKING,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


@cache
def class_path(folder: Path, kafka: str | None = None) -> str:
    """The jars of a folder's ``pom.xml``, resolved by Maven; ``kafka`` is a version other than the one it names."""
    BUILT.mkdir(parents=True, exist_ok=True)
    out = BUILT / f"{folder.name}{kafka or ''}.class-path"
    other = () if kafka is None else (f"-Dkafka.version={kafka}",)
    goal = ("dependency:build-classpath", f"-Dmdep.outputFile={out}", "-DincludeScope=runtime")
    run("mvn", "-q", "-B", "-f", str(folder / "pom.xml"), *goal, *other)
    return out.read_text().strip()


@cache
def python_packages(requirement: str, folder: Path) -> Path:
    """A folder with a package of PyPI and what it needs, for a process of its own."""
    packages = folder / requirement
    run(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), requirement)
    return packages


def java_life() -> list[str]:
    return [*JAVA, "-cp", class_path(HERE / "java"), str(HERE / "java" / "Life.java")]


def go_life(name: str) -> list[str]:
    program = BUILT / name
    run("go", "build", "-o", str(program), f"./{name}", folder=HERE / "golang")
    return [str(program)]


@cache
def node_packages(folder: Path, package: str = "", version: str = "") -> Path:
    """A copy of the sources beside the packages of ``package.json``: npm writes nothing into the work tree.

    With ``package`` only that one is there, in a version other than the one that is named.
    """
    copy = BUILT / f"npm-{folder.parent.name}-{folder.name}{f'-{package}-{version}' if package else ''}"
    copy.mkdir(parents=True, exist_ok=True)
    for source in (*folder.glob("*.mjs"), folder / "package.json"):  # helpers are links
        (copy / source.name).write_text(source.read_text())
    if package:
        described = json.loads((folder / "package.json").read_text())
        (copy / "package.json").write_text(json.dumps(described | {"dependencies": {package: version}}))
    run("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent", folder=copy)
    return copy


def javascript_life(name: str) -> list[str]:
    return ["node", str(node_packages(HERE / "node") / f"{name}.mjs")]


def java_example() -> list[str]:
    return ["mvn", "-q", "-B", "-f", str(EXAMPLES / "java" / "pom.xml"), "test"]


def go_example() -> list[str]:
    return ["go", "test", "-C", str(EXAMPLES / "golang"), "-count=1", "."]


def javascript_example(name: str) -> list[str]:
    test = node_packages(EXAMPLES / "javascript") / f"{name}.test.mjs"
    return ["node", "--test", "--test-force-exit", str(test)]


def maven_version(folder: Path) -> str:
    return (folder / "pom.xml").read_text().split("<kafka.version>")[1].split("<")[0]


def go_version(module: str) -> str:
    found = re.search(rf"^\s*{re.escape(module)} v(\S+)", (HERE / "golang" / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, f"{module} is not in go.mod"
    return found[1]


def npm_version(package: str) -> str:
    return package_version(HERE / "node", package)


def package_version(folder: Path, package: str) -> str:
    """The version of a package that a folder's ``package.json`` names."""
    version: str = json.loads((folder / "package.json").read_text())["dependencies"][package]
    return version


def python_life(name: str) -> list[str]:
    return [sys.executable, "-m", "tests.real_clients", name]


def python_example(name: str) -> list[str]:
    """A test whose fixture starts a coordinator of its own."""
    test = EXAMPLES / f"test_with_{name.replace('-', '_')}.py"
    return [sys.executable, "-m", "pytest", "-q", str(test)]


TRANSACTIONS: Final = ("commit a transaction", "abort a transaction", "fence a zombie")
"""Steps that not every program plays; those of Python are tests of their own."""

PYTHON: Final = ("aiokafka", "confluent-kafka", "kafka-python")
CLIENTS: Final = (
    *(ClientProgram(name, version(name), partial(python_life, name), partial(python_example, name)) for name in PYTHON),
    ClientProgram("Java", maven_version(HERE / "java"), java_life, java_example),
    ClientProgram("franz-go", go_version("github.com/twmb/franz-go"), partial(go_life, "franz"), go_example),
    ClientProgram("sarama", go_version("github.com/IBM/sarama"), partial(go_life, "sarama"), lacks=TRANSACTIONS),
    ClientProgram(
        "segmentio/kafka-go",
        go_version("github.com/segmentio/kafka-go"),
        partial(go_life, "segmentio"),
        lacks=("produce idempotently", "delete records", *TRANSACTIONS),
    ),
    ClientProgram(
        "KafkaJS",
        npm_version("kafkajs"),
        partial(javascript_life, "kafkajs"),
        partial(javascript_example, "kafkajs"),
    ),
    ClientProgram(
        "@platformatic/kafka",
        npm_version("@platformatic/kafka"),
        partial(javascript_life, "platformatic"),
        partial(javascript_example, "platformatic"),
    ),
)
