"""The messages agree with Kafka's own definitions: every field of every version.

Those of Kafka 4.4 are in a golden table; kafka-python carries some that still have the versions that Kafka 4 gave up.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.registry import DEFINED, Api
from rejoin.protocol.types import ZERO_UUID, Entity, WireType
from tests.paths import ROOT
from tests.suite.cases import for_each

OURS: Final = {
    Entity.RESOURCE_NAME,
    Entity.COORDINATOR_KEY,
    Entity.MEMBER_ID,
    Entity.GROUP_INSTANCE_ID,
    Entity.PARTITION,
    Entity.SUBSCRIPTION,
    Entity.TOPIC_ID,
}
"""What a field may name here that Kafka's definitions have no word for."""

Versions = tuple[int, int]
NEWEST: Final = 32_767
NEVER: Final = (NEWEST, -1)

Description = dict[str, Any]


def kafka_python_definition(message: str) -> dict[str, Any]:
    """Kafka's definition of a message. Not by kafka-python's own reader: importing that builds all its classes."""
    kafka = find_spec("kafka")
    assert kafka is not None
    assert kafka.origin is not None
    path = Path(kafka.origin).parent / "protocol" / "schemas" / "resources" / f"{message}.json"
    found: dict[str, Any] = json.loads(re.sub(r"(?m)^\s*//.*$", "", path.read_text()))
    structs = {struct["name"]: struct["fields"] for struct in found.get("commonStructs", [])}
    resolve(found["fields"], structs)
    return found


@cache
def kafka_4_definitions() -> dict[str, dict[str, Any]]:
    lines = gzip.decompress((ROOT / "conform/player/message-definitions-4.4.jsonl.gz").read_bytes()).splitlines()
    return {found["name"]: found for found in map(json.loads, lines)}


def resolve(fields: list[dict[str, Any]], structs: dict[str, Any]) -> None:
    for field in fields:
        name = field["type"].removeprefix("[]")
        if name in structs:
            field["fields"] = structs[name]
        resolve(field.get("fields", []), structs)


def described(field: FieldSpec, within: Versions) -> Description:
    last = NEWEST if field.versions.until is None else field.versions.until
    versions = overlap((field.versions.since, last), within)
    return {
        "type": field.value_type.value if isinstance(field.value_type, WireType) else "struct",
        "array": field.is_array,
        "versions": versions,
        "nullable": None if field.nullable is None else max(field.nullable, versions[0]),
        "tag": field.versions.tag,
        "entity": None if field.entity is None or field.entity in OURS else field.entity.value,
        "default": None if field.is_required or is_single_struct(field) else field.default,
        "fields": None if field.struct is None else describe(field.struct, versions),
    }


def is_single_struct(field: FieldSpec) -> bool:
    """Kafka's definitions name no default for such a field: each of its fields has its own."""
    return field.struct is not None and not field.is_array


def describe(model: type[BaseModel], within: Versions) -> dict[str, Description]:
    """The fields that some version within these carries."""
    found = {field.alias: described(field, within) for field in fields_of(model)}
    return {name: field for name, field in found.items() if field["versions"][0] <= field["versions"][1]}


def overlap(versions: Versions, within: Versions) -> Versions:
    return max(versions[0], within[0]), min(versions[1], within[1])


def read_versions(text: str) -> Versions:
    """Versions as the definitions write them; what has none ends before it begins."""
    if text == "none":
        return NEVER
    first, _, last = text.rstrip("+").partition("-")
    return int(first), NEWEST if text.endswith("+") else int(last or first)


def defined(field: dict[str, Any], within: Versions) -> Description:
    name = field["type"].removeprefix("[]")
    versions = overlap(read_versions(field["versions"]), within)
    nullable = read_versions(field.get("nullableVersions", "none"))
    return {
        "type": "struct" if name[0].isupper() else name,
        "array": field["type"].startswith("[]"),
        "versions": versions,
        "nullable": None if nullable[1] < versions[0] else max(nullable[0], versions[0]),
        "tag": field.get("tag"),
        "entity": field.get("entityType"),
        "default": default_of(field),
        "fields": definitions(field["fields"], versions) if "fields" in field else None,
    }


def default_of(field: dict[str, Any]) -> object:
    kind = field["type"]
    said = field.get("default", "")
    if said == "null" or kind[0].isupper():
        return None
    if kind.startswith("[]"):
        return ()
    if kind == "bool":
        return str(said).lower() == "true"
    if kind.startswith(("int", "uint")):
        return int(str(said) or "0", 0)
    return {"bytes": b"", "records": b"", "uuid": ZERO_UUID}.get(kind, said)


def definitions(fields: list[dict[str, Any]], within: Versions) -> dict[str, Description]:
    """The fields that some version within these carries."""
    found = {field["name"][0].lower() + field["name"][1:]: defined(field, within) for field in fields}
    return {name: field for name, field in found.items() if field["versions"][0] <= field["versions"][1]}


def differences(ours: dict[str, Description], kafkas: dict[str, Description], path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if list(ours) != list(kafkas):
        found[path + "(order)"] = (list(ours), list(kafkas))
    for name in ours.keys() & kafkas.keys():
        here, there = ours[name], kafkas[name]
        for aspect in here.keys() - {"fields"}:
            # A request's field that must be there has no default here.
            if here[aspect] != there[aspect] and not (aspect == "default" and here[aspect] is None):
                found[f"{path}{name} {aspect}"] = (here[aspect], there[aspect])
        if here["fields"] is not None and there["fields"] is not None:
            found |= differences(here["fields"], there["fields"], f"{path}{name}.")
    return found


SOURCES: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "Kafka 4.4": lambda message: kafka_4_definitions()[message],
    "kafka-python": kafka_python_definition,
}
NEWEST_HERE: Final = {
    ("kafka-python", "ApiVersions"): 5,
    ("kafka-python", "TxnOffsetCommit"): 6,
    ("kafka-python", "DeleteGroups"): 3,
}
"""Newest versions of which one of them does not know yet."""
RENAMED: Final = {("TxnOffsetCommitRequest", "generationId"): "generationIdOrMemberEpoch"}
"""Fields that Kafka 4.4 names after more than one group protocol, by the older names that they have in kafka-python."""


NOT_IN_KAFKA_PYTHON: Final = {
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    "UnregisterBroker",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "UnregisterController",
    *(api.name for api in DEFINED.values() if "Share" in api.name or "Streams" in api.name),
}
DEFINITIONS: Final = [
    (api, source)
    for api in DEFINED.values()
    for source in SOURCES
    if source == "Kafka 4.4" or api.name not in NOT_IN_KAFKA_PYTHON
]


@pytest.mark.parametrize("side", ["Request", "Response"])
@for_each("api, source", DEFINITIONS, ids=lambda definition: f"{definition[0].name} {definition[1]}")
def test_fields_are_kafkas(api: Api, side: str, source: str) -> None:
    definition = SOURCES[source](api.name + side)
    model = api.request if side == "Request" else api.response
    common = overlap((api.min_version, api.max_version), read_versions(definition["validVersions"]))
    ours, kafkas = describe(model, common), definitions(definition["fields"], common)
    kafkas = {RENAMED.get((api.name + side, name), name): field for name, field in kafkas.items()}
    assert differences(ours, kafkas, "") == {}


@for_each("api, source", DEFINITIONS, ids=lambda definition: f"{definition[0].name} {definition[1]}")
def test_keys_and_flexible_versions_are_kafkas(api: Api, source: str) -> None:
    definition = SOURCES[source](f"{api.name}Request")
    assert definition["apiKey"] == api.key
    newest = read_versions(definition["validVersions"])[1]
    assert api.max_version <= NEWEST_HERE.get((source, api.name), newest)
    for message in (definition, SOURCES[source](f"{api.name}Response")):
        flexible = read_versions(message["flexibleVersions"])
        assert api.flexible_from == (None if flexible == NEVER else flexible[0])
