"""Hypothesis strategies for requests: Kafka's by their fields, those of the control API by its JSON Schemas."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from hypothesis import strategies as st

from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.types import WireType


def mostly(usual: st.SearchStrategy[Any], rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One in sixteen is rare."""
    return st.integers(0, 15).flatmap(lambda number: rare if number == 15 else usual)


ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES: Final = mostly(
    st.sampled_from(["g", "orders", "range", "consumer", "m"]),
    st.sampled_from(["", "..", "a/b", "\u0000", "x" * 300, "ü" * 20_000]),
)
NUMBERS: Final = mostly(st.integers(0, 9), st.sampled_from([-1, 30_000, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 10**20]))
BYTES: Final = st.binary(max_size=8).map(lambda data: b64encode(data).decode())
_MOST_ITEMS: Final = 3
_BY_WIRE_TYPE: Final = {
    WireType.STRING: NAMES,
    WireType.BYTES: BYTES,
    WireType.BOOL: st.booleans(),
    WireType.UUID: st.just("A" * 22),
}


def valid(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """Values of the schema's types, not always within its bounds."""
    definitions = definitions if definitions is not None else schema.get("$defs", {})
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return st.deferred(lambda: valid(definitions[name], definitions))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([valid(each, definitions) for each in schema[several]])
    kind = schema.get("type")
    if kind == "object":
        fields = {name: valid(field, definitions) for name, field in schema.get("properties", {}).items()}
        required = set(schema.get("required", ()))
        return st.fixed_dictionaries(
            {name: field for name, field in fields.items() if name in required},
            optional={name: field for name, field in fields.items() if name not in required},
        )
    if kind == "array":
        return st.lists(valid(schema.get("items", {}), definitions), max_size=_MOST_ITEMS)
    if schema.get("format") in {"binary", "base64"} or "contentEncoding" in schema:
        return BYTES
    simple = {"string": NAMES, "integer": NUMBERS, "number": NUMBERS, "boolean": st.booleans(), "null": st.none()}
    return simple.get(str(kind), ANYTHING)


def spoilt(whole: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly as given; sometimes with a field of any name and value, sometimes anything."""
    other = st.builds(
        lambda value, name, given: {**value, name: given} if isinstance(value, dict) else given,
        whole,
        st.sampled_from(["extra", "groupId", "group", "topics", "memberId"]),
        ANYTHING,
    )
    return mostly(mostly(whole, other), ANYTHING)


def message(model: type, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Requests of a version, with every field that it carries."""
    return st.fixed_dictionaries(
        {field.alias: _field(field, version) for field in fields_of(model) if field.versions.carries(version)}
    )


def _field(field: FieldSpec, version: int) -> st.SearchStrategy[Any]:
    wire = field.value_type
    value = _BY_WIRE_TYPE.get(wire, NUMBERS) if isinstance(wire, WireType) else message(wire, version)
    if field.is_array:
        value = st.lists(value, max_size=_MOST_ITEMS)
    is_nullable = field.nullable is not None and field.nullable <= version
    return mostly(value, st.none()) if is_nullable else value
