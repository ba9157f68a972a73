"""Reads a scenario from YAML. Mistakes are reported with file, line, key and what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rejoin.coordinator.config import Settings
from rejoin.simulation.scenario.model import Scenario, ScenarioMistake

Path_ = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)

_MOST_BYTES: Final = 4_000_000
_MOST_NODES: Final = 100_000
_DEEPEST: Final = 40
_LONGEST_NUMBER: Final = 40
_NUMBERS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_A_FEW: Final = 3
_FEW_ENOUGH: Final = 25
"""So many known keys are still read when they are listed."""
_QUOTED: Final = re.compile(r"'([^']+)'")
_LIMITS: Final = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
_EXPECTED: Final = {
    "bool_parsing": "expected true or false",
    "bool_type": "expected true or false",
    "dict_type": "expected a name for each, with keys below it",
    "float_parsing": "expected a number",
    "float_type": "expected a number",
    "int_from_float": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a smaller number",
    "int_type": "expected a whole number",
    "list_type": "expected a list",
    "string_type": "expected text; put a number in quotes",
    "too_short": "expected at least one",
    "tuple_type": "expected a list",
}
"""Expected values, by the type of pydantic's error."""


class BadScenario(Exception):
    """A scenario that cannot be read; the text names file, line and key."""

    def __init__(self, where: str, line: int | None, problem: str) -> None:
        at = [where] if line is None else [f"{where}:{line}" if where else f"line {line}"]
        super().__init__(": ".join([*filter(None, at), problem]))
        self.line = line


class NotAScenario(BadScenario):
    """Text that is no scenario at all, such as a log: not a scenario with a mistake in it."""


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises :class:`BadScenario`."""
    return scenario_from(text_of(path), str(path))


def text_of(path: Path) -> str:
    """The text of a YAML file. Raises :class:`BadScenario`."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise BadScenario(str(path), None, f"is too large; expected at most {_MOST_BYTES // 1_000_000} MB")
        return data.decode("utf-8")
    except OSError as problem:
        raise BadScenario(str(path), None, f"cannot be read: {problem.strerror}; expected a file in YAML") from None
    except UnicodeDecodeError as problem:
        raise NotAScenario(str(path), None, f"is not UTF-8 text: {problem.reason}") from None


def scenario_from(text: str, where: str = "") -> Scenario:
    """Read a scenario from text. Raises :class:`BadScenario`."""
    data, lines = keys_of(text, where, "topics, groups and horizon")
    return checked(Scenario, data, lines, where)


def keys_of(text: str, where: str, expected: str) -> tuple[dict[str, Any], dict[Path_, int]]:
    """The keys of a YAML text, and the line of each by its path. Raises :class:`BadScenario`."""
    try:
        _check_depth(text, where)
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        if tree is None:
            raise NotAScenario(where, None, f"is empty; expected {expected}")
        _check_size(tree, where)
        lines = dict(_lines(tree, (), where))
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else None
        raise NotAScenario(where, line, f"not YAML: {problem.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as problem:
        raise NotAScenario(where, None, f"not YAML: {problem}") from None
    if not isinstance(data, dict):
        raise NotAScenario(where, 1, f"expected keys such as {expected}")
    return data, lines


def checked(model: type[Model], data: Any, lines: dict[Path_, int], where: str, under: Path_ = ()) -> Model:
    """The data as a model. ``under``: the path at which they stand in the file. Raises :class:`BadScenario`."""
    try:
        found = model.model_validate(data)
        if isinstance(found, Scenario):
            found.check_as_written()
        return found
    except ScenarioMistake as mistake:
        raise BadScenario(where, *_located(mistake, lines, under)) from None
    except ValidationError as problem:
        errors = problem.errors(include_url=False)
        # A key that is misspelt is missing under its right name, too; the misspelling is what helps.
        error = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
        raise BadScenario(where, *_explain(error, lines, model, under)) from None


def _check_depth(text: str, where: str) -> None:
    """Refuse what is nested deeper than any scenario. Raises :class:`BadScenario`."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise BadScenario(where, _line(event), f"is nested too deeply; expected at most {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _line(part: yaml.Node | yaml.Event) -> int | None:
    return None if part.start_mark is None else part.start_mark.line + 1


def _check_size(tree: yaml.Node, where: str) -> None:
    """Refuse long numbers, and aliases that stand for too much. Raises :class:`BadScenario`."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        """How many nodes there are with every alias written out; 0 while that is being counted."""
        known = sizes.get(id(node))
        if known is not None:
            if known == 0:
                raise BadScenario(where, _line(node), "an alias stands for a part that contains it")
            return known
        sizes[id(node)] = 0
        count = 1
        if isinstance(node, yaml.MappingNode):
            count += sum(size(key) + size(value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            count += sum(size(each) for each in node.value)
        elif node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            digits = f"a number of {len(node.value)} characters; expected at most {_LONGEST_NUMBER}"
            raise BadScenario(where, _line(node), digits)
        if count > _MOST_NODES:
            problem = f"holds more than {_MOST_NODES:,} values once its aliases are written out"
            raise BadScenario(where, _line(node), problem)
        sizes[id(node)] = count
        return count

    size(tree)


def _lines(node: yaml.Node, path: Path_, where: str) -> Iterator[tuple[Path_, int]]:
    """Every key with its line. Raises :class:`BadScenario` for a key that is there twice."""
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: dict[Any, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise BadScenario(where, line, "expected a name as a key, not a list or keys of its own")
            if key.value in seen:
                raise BadScenario(
                    where, line, f"{key.value} is given twice, first in line {seen[key.value]}; leave one out"
                )
            seen[key.value] = line
            yield from _lines(value, (*path, key.value), where)
            yield (*path, key.value), line
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index), where)


RENAMED: Final[dict[Any, str]] = {"twin": "duplicate", "consumer": "who", "restart": "down"}
"""Keys of earlier versions, with what they are called now."""


def _explain(error: Any, lines: dict[Path_, int], model: type[BaseModel], under: Path_) -> tuple[int | None, str]:
    mistake = mistake_of(error)
    if mistake is not None:
        return _located(mistake, lines, under)
    path = tuple(error["loc"])
    if path[-1:] == ("[key]",):
        path = (*path[:-2], str(path[-2]))
    line = _line_of(under + path, lines)
    key = ".".join(str(part) for part in under + path)
    match error["type"]:
        case "extra_forbidden":
            there = _keys_at(model, path[:-1])
            if RENAMED.get(path[-1]) in there:
                return line, f"{key}: this key is called {RENAMED[path[-1]]} now"
            near = get_close_matches(str(path[-1]), there, n=1)
            known = f"; known are {', '.join(there)}" if len(there) <= _FEW_ENOUGH else ""
            return line, f"{key}: there is no such key{f'; is it {near[0]}?' if near else known}"
        case "missing":
            return line, f"{key}: is missing"
        case "model_type" | "model_attributes_type":
            there = _keys_at(model, path)
            message = f"expected keys such as {', '.join(there[:_A_FEW])}"
        case _:
            message = plain(error)
    return line, f"{key}: {message}{given(error['input'], message)}" if key else message


def given(value: Any, message: str) -> str:
    """The given value, unless it is more than a value, or the message quotes it or a part of it."""
    if isinstance(value, (dict, list, tuple, BaseModel)) or any(
        each in str(value) for each in _QUOTED.findall(message)
    ):
        return ""
    return f", not {_shown(value)}"


def plain(error: Any) -> str:
    """The expected value, without words of Python."""
    kind, limits = error["type"], error.get("ctx", {})
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return f"expected {words} {limits[name]:g}"
    if kind == "literal_error":
        return f"expected one of {limits['expected']}".replace("'", "")
    if error["loc"][-1:] == ("[key]",):
        return "expected text for a name; put it in quotes"
    return _EXPECTED.get(kind, str(error["msg"]).removeprefix("Value error, "))


def mistake_of(error: Any) -> ScenarioMistake | None:
    """The mistake that a scenario found in itself, if that is the error."""
    found = error.get("ctx", {}).get("error")
    return found if isinstance(found, ScenarioMistake) else None


def _located(mistake: ScenarioMistake, lines: dict[Path_, int], under: Path_) -> tuple[int | None, str]:
    prefix = "".join(f"{part}: " for part in under)
    return _line_of(under + mistake.path, lines), f"{prefix}{mistake}"


def _line_of(path: Path_, lines: dict[Path_, int]) -> int | None:
    """The line of a key, or else of the nearest above it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def _shown(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "nothing"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _keys_at(whole: type[BaseModel], path: Path_) -> list[str]:
    """The keys that a part may have."""
    model: Any = whole
    if path[-1:] == ("settings",):
        return [str(field.alias) for field in Settings.model_fields.values()]
    for part in path:
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            model = _inner(model)
            continue
        field = model.model_fields.get(str(part))
        if field is None:
            return []
        model = field.annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)) and not _is_keyed(model):
            model = _inner(model)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        model = _inner(model)
    return [info.alias or name for name, info in model.model_fields.items()] if model is not None else []


def _is_keyed(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) in (dict, tuple)


def _inner(annotation: Any) -> Any:
    for argument in getattr(annotation, "__args__", ()):
        if isinstance(argument, type) and issubclass(argument, BaseModel):
            return argument
    return None
