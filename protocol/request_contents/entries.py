"""Entries of a request's lists, and the entries of its response that answer them.

A list of a request is answered by a list of its response whose items name what its own items name (a group, a member, a
topic, a partition). Both are found in the fields of the messages (:mod:`rejoin.protocol.fields`), so nothing here knows
an API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import BaseModel

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.request_contents.traits import RESOURCES, Named
from rejoin.protocol.types import ZERO_UUID, Entity

Wanted: TypeAlias = Mapping[Entity, tuple[Any, ...]]
"""Values of which an entry names one, by what they are: GROUP_ID, MEMBER_ID, TOPIC_NAME, PARTITION and so on."""

_SAME: Final = {Entity.COORDINATOR_KEY: Entity.GROUP_ID, Entity.TOPIC_ID: Entity.TOPIC_NAME}
"""Entities that rules name by another entity."""
_ALSO: Final = {"topic_id", "resource_type", "resource_name"}
"""Keys that have no entity in every message."""
_UNKNOWN: Final = {
    "base_offset": -1,
    "low_watermark": -1,
    "committed_offset": -1,
    "high_watermark": -1,
    "node_id": -1,
    "port": -1,
}
"""Kafka's values of a failed entry's fields, where they differ from the defaults."""


@dataclass(frozen=True, slots=True)
class EntryList:
    """A list of a request with the list of the response that answers it."""

    asked: FieldSpec
    answered: FieldSpec
    keys: tuple[tuple[str | None, str], ...]
    """Fields of both items that hold the same. The item itself is meant where it is no struct."""
    error: str | None
    """The field of the answering item that has its error; none where only its own entries have one."""
    lists: tuple[EntryList, ...]
    """The lists inside."""

    @property
    def names(self) -> frozenset[Entity]:
        """Entities named by its items and by those inside."""
        own = (
            {self.asked.entity} if self.asked.struct is None else {each.entity for each in _scalars(self.asked.struct)}
        )
        if Entity.RESOURCE_NAME in own:
            own |= set(RESOURCES.values())
        named = {_SAME.get(each, each) for each in own if each is not None}
        return frozenset(named).union(*(each.names for each in self.lists))

    def items(self, part: Any) -> tuple[Any, ...]:
        """The items of a request, or of a part of one."""
        return getattr(part, self.asked.name) or ()

    def answers(self, item: Any, entry: Any) -> bool:
        """Whether an entry of the response is that of an item."""
        pairs = [(_value(item, name), getattr(entry, answered)) for name, answered in self.keys]
        named = [(asked, answered) for asked, answered in pairs if _is_set(asked) and _is_set(answered)]
        return bool(named) and all(asked == answered for asked, answered in named)

    def failed(self, item: Any, error: ErrorCode) -> Any:
        """The entry that answers an item with an error."""
        model: Any = self.answered.struct
        values: dict[str, Any] = {name: value for name, value in _UNKNOWN.items() if name in model.model_fields}
        values |= {answered: _value(item, name) for name, answered in self.keys}
        if self.error is not None:
            values[self.error] = error
        else:
            for each in self.lists:
                values[each.answered.name] = tuple(each.failed(inner, error) for inner in each.items(item))
        return model(**values)


def _value(item: Any, name: str | None) -> Any:
    return item if name is None else getattr(item, name)


def _is_set(value: Any) -> bool:
    return value not in (None, "", ZERO_UUID)


def _scalars(model: type) -> Iterator[FieldSpec]:
    return (each for each in fields_of(model) if not each.is_array and each.struct is None)


@cache
def entry_lists(request: type[BaseModel], response: type[BaseModel], version: int) -> tuple[EntryList, ...]:
    """The lists of a request, or of a part of one, that the response answers item by item, and that have errors."""
    left = [each for each in fields_of(request) if each.is_array and each.versions.carries(version)]
    found = []
    for answered in fields_of(response):
        if not answered.is_array or answered.struct is None or not answered.versions.carries(version):
            continue
        for asked in left:
            keys = _keys(asked, answered.struct, version)
            if keys:
                error = next((each.name for each in fields_of(answered.struct) if each.is_error_code), None)
                lists = () if asked.struct is None else entry_lists(asked.struct, answered.struct, version)
                if error is not None or lists:
                    found.append(EntryList(asked, answered, keys, error, lists))
                    left.remove(asked)
                break
    return tuple(found)


def _keys(asked: FieldSpec, answered: type, version: int) -> tuple[tuple[str | None, str], ...]:
    """The fields of a request's item and of the answering struct that hold the same."""
    theirs = [each for each in _scalars(answered) if each.versions.carries(version)]
    if asked.struct is None:
        named = [each for each in theirs if each.entity is asked.entity and asked.entity is not None]
        named += [each for each in theirs if each.name == "key" and asked.entity is Entity.COORDINATOR_KEY]
        return tuple((None, each.name) for each in named[:1])
    ours = {each.name: each for each in _scalars(asked.struct) if each.versions.carries(version)}
    by_entity = {each.entity: name for name, each in ours.items() if each.entity is not None}
    keys = [(by_entity[each.entity], each.name) for each in theirs if each.entity in by_entity]
    keys += [(each.name, each.name) for each in theirs if each.name in _ALSO and each.name in ours]
    keys = list(dict.fromkeys(keys))
    if not keys:
        keys = [(each.name, each.name) for each in theirs if each.name in ours and not each.is_error_code]
    return tuple(keys)


def lists_of(request: Request, version: int) -> tuple[EntryList, ...]:
    """The lists of a request whose entries are answered each."""
    return entry_lists(type(request), BY_REQUEST[type(request)].response, version)


class SplitRequest(NamedTuple):
    """A request in two: the entries that are meant, and the others. None stands for no entries."""

    chosen: Request | None
    rest: Request | None


class EntrySelection:
    """Entries of a request that name the given values."""

    def __init__(self, request: Request, version: int, wanted: Wanted, named: Named) -> None:
        self.request = request
        self._version = version
        self._wanted = wanted
        self._named = named
        self._lists = lists_of(request, version)

    @property
    def is_possible(self) -> bool:
        """Whether entries differ in the entities wanted: an outer entry names one, or an entry inside it does."""
        around = set(self._names(self.request, None, {}))
        return not self._is_named(around) and any(self._is_named(around | each.names) for each in self._lists)

    def split(self) -> SplitRequest:
        """The request with only the entries that are meant, and without them."""
        chosen, rest = self._split(self.request, self._lists, self._names(self.request, None, {}))
        return SplitRequest(chosen, rest)

    def failed(self, response: Response, error: ErrorCode) -> Response:
        """A response in which these entries have failed."""
        return self._replaced(response, lambda each, item, _: each.failed(item, error))

    def replaced(self, response: Response, other: Response) -> Response:
        """A response in which these entries are those of another response to the request."""
        error = getattr(other, "error_code", ErrorCode.NONE)
        if error is not ErrorCode.NONE:
            return self.failed(response, error)
        return self._replaced(response, lambda _, __, found: found, other)

    def only(self, response: Response) -> Response:
        """A response with nothing but these entries."""
        without = response.model_copy(update=dict.fromkeys((each.answered.name for each in self._lists), ()))
        return self.replaced(without, response)

    # --- what entries name

    def _names(self, part: Any, spec: FieldSpec | None, around: Mapping[Entity, Any]) -> dict[Entity, Any]:
        """Entities named by an item and by the structs around it."""
        if spec is not None and spec.struct is None:
            return {**around, _SAME.get(spec.entity, spec.entity): self._plain(spec.entity, part)}  # type: ignore[arg-type, dict-item]
        names = dict(around)
        for each in _scalars(type(part)):
            value = getattr(part, each.name)
            if each.entity is None or not each.versions.carries(self._version) or not _is_set(value):
                continue
            names[_SAME.get(each.entity, each.entity)] = self._plain(each.entity, value)
        if Entity.RESOURCE_NAME in names:
            names[RESOURCES.get(part.resource_type, Entity.RESOURCE_NAME)] = names[Entity.RESOURCE_NAME]
        return names

    def _plain(self, entity: Entity | None, value: Any) -> Any:
        return self._named(value) or value if entity is Entity.TOPIC_ID else value

    def _is_named(self, names: Mapping[Entity, Any] | set[Entity] | frozenset[Entity]) -> bool:
        return all(each in names for each in self._wanted)

    def _is_meant(self, names: Mapping[Entity, Any]) -> bool:
        return all(names[each] in values for each, values in self._wanted.items())

    def _is_other(self, names: Mapping[Entity, Any]) -> bool:
        return any(each in names and names[each] not in values for each, values in self._wanted.items())

    # --- walking

    def _split(self, part: Any, lists: tuple[EntryList, ...], around: Mapping[Entity, Any]) -> tuple[Any, Any]:
        chosen: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for each in lists:
            mine, others = [], []
            for item in each.items(part):
                names = self._names(item, each.asked, around)
                if self._is_other(names):
                    others.append(item)
                elif self._is_named(names):
                    mine.append(item)
                elif each.lists:
                    inner, outer = self._split(item, each.lists, names)
                    mine += [inner] if inner is not None else []
                    others += [outer] if outer is not None else []
                else:
                    others.append(item)
            chosen[each.asked.name], rest[each.asked.name] = tuple(mine), tuple(others)
        return (
            part.model_copy(update=chosen) if any(chosen.values()) else None,
            part.model_copy(update=rest) if any(rest.values()) else None,
        )

    def _replaced(
        self, response: Response, make: Callable[[EntryList, Any, Any], Any], other: Response | None = None
    ) -> Response:
        around = self._names(self.request, None, {})
        found: Response = self._in(self.request, response, other, self._lists, around, make)
        return found

    def _in(
        self,
        part: Any,
        answer: Any,
        other: Any,
        lists: tuple[EntryList, ...],
        around: Mapping[Entity, Any],
        make: Callable[[EntryList, Any, Any], Any],
    ) -> Any:
        """A part of the response with the entries of a part of the request replaced; one that is missing is added."""
        changes: dict[str, tuple[Any, ...]] = {}
        for each in lists:
            entries = list(getattr(answer, each.answered.name) or ())
            others = getattr(other, each.answered.name) or () if other is not None else ()
            for item in each.items(part):
                names = self._names(item, each.asked, around)
                if self._is_other(names):
                    continue
                at = next((at for at, entry in enumerate(entries) if each.answers(item, entry)), None)
                found = next((entry for entry in others if each.answers(item, entry)), None)
                if self._is_named(names):
                    entry = make(each, item, found)
                elif each.lists:
                    before = entries[at] if at is not None else _empty(each, item)
                    entry = self._in(item, before, found, each.lists, names, make)
                    if at is None and entry == before:
                        continue
                else:
                    continue
                if entry is None:
                    continue
                if at is None:
                    entries.append(entry)
                else:
                    entries[at] = entry
            changes[each.answered.name] = tuple(entries)
        return answer.model_copy(update=changes)


def _empty(list_: EntryList, item: Any) -> Any:
    """The entry of an item without any entries inside."""
    model: Any = list_.answered.struct
    return model(**{answered: _value(item, name) for name, answered in list_.keys})
