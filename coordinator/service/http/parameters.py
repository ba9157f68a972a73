"""Parameters in the query of a path."""

from __future__ import annotations

from urllib.parse import unquote

from rejoin.coordinator.service.http.problems import Problem, one_error


def parameters(query: str, known: tuple[str, ...]) -> dict[str, str]:
    """The parameters of a query. Raises a :class:`Problem` for one that is not known."""
    given: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        name, value = unquote(name.replace("+", " ")), unquote(value.replace("+", " "))
        if name not in known:
            expected = "expected one of " + ", ".join(known) if known else "expected no parameters"
            raise _bad_parameter(name, f"unknown parameter; {expected}", value)
        given[name] = value
    return given


def whole(name: str, given: str, largest: int) -> int:
    """The whole number that a parameter is. Raises a :class:`Problem` where it is none, or too large."""
    if given.isascii() and given.isdecimal() and len(given) < 20 and int(given) <= largest:
        return int(given)
    raise _bad_parameter(name, f"expected a whole number from 0 to {largest}", given)


def _bad_parameter(name: str, reason: str, given: str) -> Problem:
    return Problem(400, "invalid-parameter", f"{name[:64]}: {reason}", one_error(name[:64], reason, given))
