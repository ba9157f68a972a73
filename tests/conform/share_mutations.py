"""One rule of share groups broken at a time; the recordings of share groups must find each."""

from __future__ import annotations

import pytest

from rejoin.coordinator.core.share.window import acquiring, share_partition


def locks_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(share_partition, "expire", lambda *_: [])


def delivery_counts_do_not_rise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(acquiring, "MOST_DELIVERIES", 1)
