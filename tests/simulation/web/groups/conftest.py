"""Tests here resize the window that they share with others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulation.web.opened import Opened


@pytest.fixture(autouse=True)
def usual_size(opened: Opened) -> Iterator[None]:
    """Leaves the window as large as it was, and light."""
    yield
    opened.run(opened.page.call("Emulation.clearDeviceMetricsOverride"))
    opened.run(opened.page.call("Emulation.setEmulatedMedia", features=[]))
