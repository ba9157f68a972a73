"""Where the name of a Spark master comes from, if no option names one. Nothing here needs Spark."""

from __future__ import annotations

from typing import Final

MASTER: Final = "REJOIN_SPARK_MASTER"
"""Environment variable with the master to use when none is given."""
