"""A test of many cases names all that fail, and runs those alone that are asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.suite.cases import Wanted, for_each


@pytest.fixture(autouse=True)
def _every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wanted, "text", "")


def test_each_case_that_fails_is_named_and_the_others_are_run() -> None:
    ran = []

    @for_each("number, limit", [(1, 2), (3, 2), (2, 2), (4, 2)], ids=lambda case: f"case {case[0]}")
    def check(number: int, limit: int) -> None:
        ran.append(number)
        assert number <= limit, f"{number} is above {limit}"

    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as failed:
        check()
    assert ran == [1, 3, 2, 4]
    first, second = failed.value.exceptions
    assert "case 3: AssertionError: 3 is above 2" in str(first)
    assert "case 4" in str(second)


def test_cases_with_a_name_are_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(Wanted, "text", "2")

    @for_each("number", [1, 2, 3, 12])
    def check(number: int) -> None:
        ran.append(number)

    check()
    assert ran == [2, 12]


async def test_cases_of_a_coroutine_share_its_loop() -> None:
    ran = []

    @for_each("number", [1, 2, 3])
    async def check(number: int) -> None:
        await asyncio.sleep(0)
        ran.append(asyncio.get_running_loop())
        assert number != 2

    with pytest.raises(ExceptionGroup, match="1 of 3 cases"):
        await check()
    assert ran == [asyncio.get_running_loop()] * 3


@for_each("number", range(5), parts=2)
def test_parts_are_tests_with_fixtures(number: int, tmp_path: Path) -> None:
    (tmp_path / str(number)).touch(exist_ok=False)


def test_no_cases_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="there are no cases"):
        for_each("number", [])
