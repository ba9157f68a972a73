"""Settings of a process that is nothing but a service."""

from __future__ import annotations

import gc


def calm_collector() -> None:
    """Run Python's cycle collector less often, and exempt all objects that exist now.

    Only for a process that is nothing but a service. Ten thousand parked requests are half a million objects without a
    cycle; scanning them repeatedly costs more than answering them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
