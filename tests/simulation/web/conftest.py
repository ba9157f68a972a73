"""One browser for all tests of the laboratory's page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from rejoin.pipeline.why.journal import findings_of_journal
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario
from tests.simulation.web.browser import browser
from tests.simulation.web.opened import SCENARIO, Opened


@pytest.fixture(scope="package")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder: Path = tmp_path_factory.mktemp("browser")
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            address = runner.run(
                stack.enter_async_context(
                    running(FirstScenario("mine", SCENARIO, None), GALLERY, explain=findings_of_journal)
                )
            )
            page = runner.run(stack.enter_async_context(browser(folder)))
            yield Opened(runner, page, address)
        finally:
            runner.run(stack.aclose())
