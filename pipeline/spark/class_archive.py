"""Spark's classes as a JVM has them in memory, in a file (class data sharing): a session starts in half the CPU.

``python -m rejoin.pipeline.commands.class_archive`` writes the file, and each later session maps it. The JVM checks
that build and class path are those of the archive; if they differ, it loads classes from the jars as always.
"""

from __future__ import annotations

import os
import shlex
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark

from rejoin.pipeline.spark.java import Java

FOLDER: Final = "REJOIN_SPARK_CLASSES"
"""Environment variable with the folder of the archives; the default is ``rejoin`` in the user's cache folder."""


def archive_path(java: Java) -> Path:
    """Where the archive of this Java and this Spark lies, if there is one."""
    # Where there is no home, os.path leaves the ~; a container's user may have none, and needs none.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.environ.get(FOLDER) or Path(cache, "rejoin", "spark-classes")
    return Path(folder).absolute() / f"{sha256(_key(java)).hexdigest()[:16]}.jsa"


def archive_options(java: Java) -> str:
    """Options with which a JVM uses the archive; empty where there is no archive."""
    archive = archive_path(java)
    # An archive that does not fit is no reason for a warning.
    return f"{shlex.quote(f'-XX:SharedArchiveFile={archive}')} -Xlog:cds=off -Xlog:cds+dynamic=off" * archive.is_file()


def _key(java: Java) -> bytes:
    try:
        release = (java.home / "release").read_bytes()
    except OSError:
        release = b""
    return "\n".join((str(java.home), str(pyspark.__file__), pyspark.__version__)).encode() + release
