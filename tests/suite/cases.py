"""Thousands of recorded cases as few tests: pytest and pytest-xdist take milliseconds for each test.

One test goes through its cases and names all that fail; ``pytest --case TEXT`` runs those with such a name alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
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
    cases of a part.
    """
    arguments = [name.strip() for name in names.split(",")]
    listed = list(cases)
    assert listed, "there are no cases"

    def decorate(test: Callable[..., Any]) -> Any:
        @wraps(test)
        def run(**given: Any) -> None:
            part = given.pop("part") if parts > 1 else 0
            failed: list[Exception] = []
            for case in listed[part::parts]:
                name = ids(case)
                if Wanted.text not in name:
                    continue
                try:
                    test(**given, **dict(zip(arguments, case if len(arguments) > 1 else (case,), strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(Failed(name, error, with_traceback=len(failed) < SHOWN))
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(listed[part::parts])} cases", failed)

        kept = [parameter for name, parameter in inspect.signature(test).parameters.items() if name not in arguments]
        if parts > 1:
            kept.append(inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY))
            run = pytest.mark.parametrize("part", range(parts))(run)
        run.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
        return run

    return decorate


class Failed(Exception):
    """A case that failed, by its name."""

    def __init__(self, name: str, error: BaseException, *, with_traceback: bool) -> None:
        super().__init__(f"{name}: {type(error).__name__}: {error}")
        self.__cause__ = error if with_traceback else None
