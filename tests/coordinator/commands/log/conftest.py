"""A way to run a command, and a store with records in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.coordinator.commands.log.logs import Run, filled
from tests.coordinator.storage.helpers import Sqlite


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(command: Callable[..., int], *arguments: object, **options: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = command(*arguments, **options)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store = Sqlite(tmp_path / "data")
    filled(store)
    return store.folder
