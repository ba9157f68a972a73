"""Defaults of a report. The command line shows them without importing Spark."""

from __future__ import annotations

from typing import Final

MOST_GROUPS: Final = 20
"""Groups with a chart; the others are in the index."""

TITLE: Final = "Why did my group rebalance?"
