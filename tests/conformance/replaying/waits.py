"""Whether two clients wait as long before the same requests."""

from __future__ import annotations

TOLERANCE_MS = 150
TOLERANCE = 0.2


def assert_as_late(some: dict[str, int], others: dict[str, int]) -> None:
    """Milliseconds by kind, of both; some kinds occur only at the moment when a broker goes away."""
    for kind in some.keys() & others.keys():
        assert abs(some[kind] - others[kind]) <= max(TOLERANCE_MS, TOLERANCE * others[kind]), kind
