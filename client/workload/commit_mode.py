"""When a simulated user commits."""

from __future__ import annotations

from typing import Literal, TypeAlias

CommitMode: TypeAlias = Literal["auto", "sync", "async", "none"]
"""By interval, after each poll (waiting for the answer or not), or never."""
