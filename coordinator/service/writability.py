"""Whether the stores can be written, for ``/readyz``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rejoin.coordinator.service.metrics import StoreMetrics
from rejoin.coordinator.service.publisher import Publisher

LEAST_FREE_BYTES: Final = 2**20
_RECENT_SECONDS: Final = 10.0
"""How long a failure counts, unless a later append succeeds: without requests no append would show that it is over."""


def disk_problem(folders: Sequence[Path], store: StoreMetrics, publisher: Publisher, *, is_shared: bool = False) -> str:
    """Why nothing can be written, or an empty text.

    With a shared store a failed append is no reason: no other node could write either, and heartbeats are answered.
    """
    for folder in folders:
        free = _free_bytes(folder)
        if free is not None and free < LEAST_FREE_BYTES:
            return f"the disk of {folder} is full: {free} bytes are free, expected {LEAST_FREE_BYTES}"
    if not is_shared and store.failed_at is not None and time.monotonic() - store.failed_at < _RECENT_SECONDS:
        return "the offsets log cannot be written: the last append failed"
    if publisher.journal_problem:
        return f"the journal cannot be written: {publisher.journal_problem}"
    return ""


def _free_bytes(folder: Path) -> int | None:
    try:
        state = os.statvfs(folder)
    except (AttributeError, OSError):
        return None
    return state.f_bavail * state.f_frsize
