"""The requests of the README, as they stand there, are answered as it says."""

from __future__ import annotations

import re

import pytest

from tests import paths
from tests.coordinator.service.conftest import Serve

README = paths.README.read_text()
POSTS = re.findall(r"curl -s localhost:9095(/v1/\S+) --json '([^']+)'", README)
SHOWN = re.findall(r"^\| `(/[^`]*)`", README, re.MULTILINE)


@pytest.mark.parametrize(("path", "body"), POSTS)
async def test_requests_are_answered(serve: Serve, path: str, body: str) -> None:
    node = await serve()
    answered = await node.request("POST", path, body.encode(), Content_Type="application/json")
    assert answered.status == 200, answered.body


async def test_paths_that_are_listed_are_there(serve: Serve) -> None:
    node = await serve()
    assert SHOWN
    for shown in SHOWN:
        path = shown.split("`")[0].replace("?after=N&limit=M&group=ID", "?after=0&limit=10&group=g")
        assert (await node.request("GET", path)).status == 200, path


def test_the_transcript_is_one_of_ours() -> None:
    scenarios = paths.TRANSCRIPTS
    assert any(f"```\n{path.read_text().strip()}\n```" in README for path in sorted(scenarios.rglob("*.txt")))
