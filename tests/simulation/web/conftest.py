"""One browser for all tests of the laboratory's page, whose gallery has shorter runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from rejoin.pipeline.why.journal import findings_of_journal
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario
from tests.simulation.web.browser import browser
from tests.simulation.web.opened import SCENARIO, Opened

SHORTER: Final = {
    "cold_start": "1m",
    "cooperative_scale_out": "210s",
    "eager_scale_out": "290s",
    "flapping_consumer": "130s",
}
"""Scenarios with many records, and how much of each the tests look at."""


def shorter(folder: Path) -> Path:
    """The gallery, copied into a folder: some of its scenarios end soon after what is looked at."""
    folder.mkdir()
    for file in GALLERY.glob("*.yaml"):
        text = file.read_text("utf-8")
        if file.stem in SHORTER:
            text, found = re.subn(r"^horizon: \w+$", f"horizon: {SHORTER[file.stem]}", text, flags=re.MULTILINE)
            assert found == 1, file.stem
        (folder / file.name).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="package")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder: Path = tmp_path_factory.mktemp("browser")
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            first = FirstScenario("mine", SCENARIO, None)
            server = running(first, shorter(folder / "gallery"), explain=findings_of_journal)
            address = runner.run(stack.enter_async_context(server))
            page = runner.run(stack.enter_async_context(browser(folder)))
            yield Opened(runner, page, address)
        finally:
            runner.run(stack.aclose())
