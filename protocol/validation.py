"""Wrong values in words: the field, what was expected, what was given, and the nearest of the known names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

_LONGEST_GIVEN: Final = 60
_MOST_LISTED: Final = 50
NAMES_IN_JSON: Final = {
    "None": "null",
    "True": "true",
    "False": "false",
    "nan": "NaN",
    "inf": "Infinity",
    "-inf": "-Infinity",
}
"""Python's names of values by those of JSON, with the numbers that readers of JSON often take."""


def nearest(name: str, known: Iterable[str]) -> str:
    """End of a sentence about an unknown name: the nearest known name, else all unless too many."""
    names = {each.lower(): each for each in known}
    found = closest(name.lower(), names)
    if found is not None:
        return f"; is it {names[found]}?"
    return f"; expected one of {', '.join(names.values())}" if 0 < len(names) <= _MOST_LISTED else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like another, or the only one that begins with it."""
    names = list(known)
    begun = [each for each in names if name and each.startswith(name)]
    found = get_close_matches(name, names, n=1) or (begun if len(begun) == 1 else [])
    return found[0] if found else None


def reason(error: Any) -> str:
    """The problem with a value, from an entry of ``ValidationError.errors()``."""
    if error["type"] == "extra_forbidden":
        return "unknown field"
    if error["type"] == "missing":
        return "missing"
    message = str(error["msg"]).removeprefix("Value error, ").partition(", unable to parse")[0]
    if error["type"] == "json_invalid":
        return message.replace("Invalid JSON", "invalid JSON").replace("expected ident", "expected a value")
    if " should have at " in message:
        return "expected " + message.partition(" should have ")[2].partition(" after ")[0]
    if message.startswith("Input should be "):
        return "expected " + message.removeprefix("Input should be ").replace("a valid integer", "an integer")
    return message


def sentence(
    problem: ValidationError, model: type[BaseModel] | None = None, *, kind: str = "field", of_json: bool = False
) -> str:
    """The first error in one sentence. An unknown name comes first, as it often explains the others.

    With ``of_json`` the value that was given is named as in JSON, not as in Python.
    """
    errors = problem.errors(include_url=False)
    error = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    path = [str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        where = f"{'.'.join(path[:-1])}: " if path[:-1] else ""
        return f"{where}there is no {kind} {path[-1]}{nearest(path[-1], _names(model, path))}"
    text = (f"{'.'.join(path)}: " if path else "") + reason(error)
    if error["type"] in {"value_error", "missing"}:
        return text
    choices = re.findall(r"'([^']*)'", text) if error["type"] == "literal_error" else ()
    near = get_close_matches(str(error["input"]), choices, n=1)
    given = error["input"]
    if error["type"] == "json_invalid" and isinstance(given, bytes):
        given = given.decode("utf-8", "replace")
    written = shown(given)
    hint = f"; is it {near[0]}?" if near else ""
    return f"{text}, not {NAMES_IN_JSON.get(written, written) if of_json else written}{hint}"


def shown(given: object) -> str:
    """A value that was given, short enough for a sentence."""
    text = repr(list(given) if isinstance(given, tuple) else given)
    return text if len(text) <= _LONGEST_GIVEN else text[:_LONGEST_GIVEN] + "…"


def _names(model: type[BaseModel] | None, path: list[str]) -> list[str]:
    """The names that are known where ``path`` ends, in the form in which its last part is given."""
    models = [] if model is None else [model]
    for part in path[:-1]:
        models = [found for each in models for found in _models(each, part)] or models
    dotted = "." in path[-1]
    names = [(info.alias or name) if dotted else name for each in models for name, info in each.model_fields.items()]
    return list(dict.fromkeys(names))


def _models(model: type[BaseModel], name: str) -> Iterator[type[BaseModel]]:
    """The models that a field may hold."""
    info = model.model_fields.get(name)
    hints: list[Any] = [] if info is None else [info.annotation]
    while hints:
        hint = hints.pop()
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            yield hint
        hints += get_args(hint)
