"""Spark for little data: compiling a plan, or a method of the JVM, takes longer than running it does."""

from __future__ import annotations

import os
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
    home = folder / "conf"
    home.mkdir(exist_ok=True)
    lines = [f"{name} {value}\n" for name, value in (INTERPRETED | settings).items()]
    (home / "spark-defaults.conf").write_text("".join(lines))
    return {**os.environ, **JVM, "SPARK_CONF_DIR": str(home)}
