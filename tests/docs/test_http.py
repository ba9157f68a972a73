"""The requests of docs/http.md are answered as it says, and the transcript in ARCHITECTURE.md is one of ours."""

from __future__ import annotations

import re

import pytest

from tests import paths
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.conftest import serve as serve
from tests.docs.texts import TEXTS

HTTP = TEXTS["docs/http.md"]
POSTS = re.findall(r"curl -s localhost:9095(/v1/\S+) --json '([^']+)'", HTTP)
SHOWN = re.findall(r"^\| `(/[^`]*)`", HTTP, re.MULTILINE)


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
    text = TEXTS["ARCHITECTURE.md"]
    assert any(f"```\n{path.read_text().strip()}\n```" in text for path in sorted(paths.TRANSCRIPTS.rglob("*.txt")))
