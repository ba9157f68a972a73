"""Spark for little data: compiling a plan, or a method of the JVM, takes longer than running it does."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings of a session."""

_OPTIONS: Final = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
JVM: Final = {"JDK_JAVA_OPTIONS": _OPTIONS}
"""Environment variables with which a JVM starts sooner: Spark's own classes are not verified once more."""


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """The environment of a process that starts Spark: with these settings, and those above."""
    file = folder / "spark.properties"
    file.write_text("".join(f"{name} {value}\n" for name, value in (INTERPRETED | settings).items()))
    # A folder of settings (SPARK_CONF_DIR) would be on the class path, which has to be that of the class archive.
    return {**os.environ, **JVM, "PYSPARK_SUBMIT_ARGS": f"--properties-file {shlex.quote(str(file))} pyspark-shell"}
