"""Thousands of recorded cases as few tests: pytest and pytest-xdist take milliseconds for each test.

One test goes through its cases and names all that fail; ``pytest --case TEXT`` runs those with such a name alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final

import pytest

SHOWN: Final = 5
"""Of how many failed cases the whole traceback is shown."""


class Wanted:
    """The cases that are run: those whose name has this text."""

    text = ""


def for_each(
    names: str, cases: Iterable[Any], *, ids: Callable[[Any], str] = str, parts: int = 1
) -> Callable[[Callable[..., Any]], Any]:
    """Run a test for each case, as ``pytest.mark.parametrize`` does, but in as many tests as there are parts.

    A case is the value of the one name, or a tuple of those of several; ``ids`` names it. Fixtures are shared by all
    cases of a part, and so is the loop of a test that is a coroutine.
    """
    arguments = [name.strip() for name in names.split(",")]
    listed = list(cases)
    assert listed, "there are no cases"

    def decorate(test: Callable[..., Any]) -> Any:
        def cases_of(part: int) -> list[tuple[str, dict[str, Any]]]:
            """Names and arguments of the cases that are run."""
            named = [(ids(case), case if len(arguments) > 1 else (case,)) for case in listed[part::parts]]
            return [(name, dict(zip(arguments, case, strict=True))) for name, case in named if Wanted.text in name]

        @wraps(test)
        def run(*, part: int = 0, **given: Any) -> None:
            failed = Failures()
            for name, case in cases_of(part):
                with failed.of(name):
                    test(**given, **case)
            failed.raise_any(len(listed[part::parts]))

        @wraps(test)
        async def run_async(*, part: int = 0, **given: Any) -> None:
            failed = Failures()
            for name, case in cases_of(part):
                with failed.of(name):
                    await test(**given, **case)
            failed.raise_any(len(listed[part::parts]))

        chosen: Any = run_async if inspect.iscoroutinefunction(test) else run
        kept = [parameter for name, parameter in inspect.signature(test).parameters.items() if name not in arguments]
        if parts > 1:
            kept.append(inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY))
            chosen = pytest.mark.parametrize("part", range(parts))(chosen)
        chosen.__signature__ = inspect.Signature(kept)
        return chosen

    return decorate


class Failures:
    """The cases of a test that failed; the other ones go on."""

    def __init__(self) -> None:
        self._failed: list[Exception] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            self._failed.append(Failed(name, error, with_traceback=len(self._failed) < SHOWN))

    def raise_any(self, cases: int) -> None:
        if self._failed:
            raise ExceptionGroup(f"{len(self._failed)} of {cases} cases", self._failed)


class Failed(Exception):
    """A case that failed, by its name."""

    def __init__(self, name: str, error: BaseException, *, with_traceback: bool) -> None:
        super().__init__(f"{name}: {type(error).__name__}: {error}")
        self.__cause__ = error if with_traceback else None
