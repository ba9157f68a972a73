"""Requests about client quotas, one after the other: who asks, and what. Every version, and every error of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, Step

_NO_RIGHTS: Final = "alice"
_BYTES: Final = {"producer_byte_rate": 1_048_576.0}
_TABLE: Final[tuple[tuple[dict[str, str | None], dict[str, float]], ...]] = (
    ({"user": "alice"}, {"producer_byte_rate": 1_000.0, "consumer_byte_rate": 2_000.0, "request_percentage": 12.5}),
    ({"user": "alice", "client-id": "app"}, {**_BYTES, "controller_mutation_rate": 0.5}),
    ({"client-id": "app", "user": None}, _BYTES),
    ({"user": None}, _BYTES),
    ({"client-id": None}, {"consumer_byte_rate": 10.0}),
    ({"client-id": "app"}, {"request_percentage": 200.0}),
    ({"user": None, "client-id": None}, {"controller_mutation_rate": 10.0}),
    ({"ip": "127.0.0.1"}, {"connection_creation_rate": 5.0}),
    ({"ip": None}, {"connection_creation_rate": 100.0}),
    ({"ip": "0:0:0:0:0:0:0:1"}, {"connection_creation_rate": 7.0}),
)
"""Entities with limits of every kind."""

_WRONG: Final[tuple[tuple[dict[str, str | None], dict[str, float]], ...]] = (
    ({}, _BYTES),
    ({"": "a"}, _BYTES),
    ({"group": "a"}, _BYTES),
    ({"user": ""}, _BYTES),
    ({"client-id": ""}, _BYTES),
    ({"ip": ""}, {"connection_creation_rate": 5.0}),
    ({"ip": "10.0.0.0/8"}, {"connection_creation_rate": 5.0}),
    ({"ip": "127.0.0.1", "user": "a"}, {"connection_creation_rate": 5.0}),
    ({"ip": "127.0.0.1"}, _BYTES),
    ({"user": "a"}, {"connection_creation_rate": 5.0}),
    ({"user": "a"}, {"unknown_rate": 5.0}),
    ({"user": "a"}, {"": 5.0}),
    ({"user": "a"}, {"producer_byte_rate": 0.0}),
    ({"user": "a"}, {"producer_byte_rate": -1.0}),
    ({"user": "a"}, {"producer_byte_rate": 1.5}),
    ({"user": "a"}, {"producer_byte_rate": 1e19}),
    ({"user": "a"}, {"request_percentage": 0.0}),
    ({"user": "a"}, {**_BYTES, "unknown_rate": 5.0}),
    ({"ip": "10.1.1.1"}, {"connection_creation_rate": 1e10}),
    ({"ip": "10.1.1.1"}, {"connection_creation_rate": 2.5}),
)
_FILTERS: Final[tuple[tuple[tuple[str, int, str | None], ...], ...]] = (
    (),
    (("user", 0, "alice"),),
    (("user", 1, None),),
    (("user", 2, None),),
    (("client-id", 0, "app"),),
    (("client-id", 1, None),),
    (("client-id", 2, None),),
    (("user", 0, "alice"), ("client-id", 0, "app")),
    (("user", 0, "alice"), ("client-id", 2, None)),
    (("user", 1, None), ("client-id", 0, "app")),
    (("client-id", 1, None), ("user", 1, None)),
    (("user", 2, None), ("client-id", 2, None)),
    (("ip", 0, "127.0.0.1"),),
    (("ip", 1, None),),
    (("ip", 2, None),),
    (("user", 0, "nobody"),),
    (("user", 0, ""),),
    (("user", 0, None),),
    (("user", 1, "alice"),),
    (("user", 2, "alice"),),
    (("user", 3, None),),
    (("user", -1, None),),
    (("user", 0, "alice"), ("user", 1, None)),
    (("", 0, "alice"),),
    (("group", 0, "alice"),),
    (("ip", 2, None), ("user", 2, None)),
    (("client-id", 0, "app"), ("ip", 1, None)),
)


def alteration(entity: Mapping[str, str | None], limits: Mapping[str, float | None]) -> dict[str, Any]:
    """An entry of AlterClientQuotas; a limit that is none is removed."""
    return {
        "entity": [{"entityType": kind, "entityName": name} for kind, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in limits.items()],
    }


def alter(version: int, *entries: dict[str, Any], validate_only: bool = False) -> Probe:
    """An AlterClientQuotas."""
    return Probe("AlterClientQuotas", version, {"entries": list(entries), "validateOnly": validate_only})


def describe(version: int, *components: tuple[str, int, str | None], strict: bool = False) -> Probe:
    """A DescribeClientQuotas."""
    wanted = [{"entityType": kind, "matchType": how, "match": match} for kind, how, match in components]
    return Probe("DescribeClientQuotas", version, {"components": wanted, "strict": strict})


def quota_script() -> list[Step]:
    """All steps, in order."""
    return (
        [(ADMIN, probe) for probe in _steps()]
        + [(_NO_RIGHTS, alter(version, *(alteration(*each) for each in _TABLE[:2]))) for version in (0, 1)]
        + [(_NO_RIGHTS, describe(version)) for version in (0, 1)]
    )


def _steps() -> Iterator[Probe]:
    for version in (0, 1):
        yield describe(version)
        yield alter(version)
        for entity, limits in _TABLE:
            yield alter(version, alteration(entity, limits), validate_only=True)
        yield describe(version)
        yield alter(version, *(alteration(*each) for each in _TABLE))
        for components in _FILTERS:
            yield describe(version, *components)
            yield describe(version, *components, strict=True)
        for entity, limits in _WRONG:
            yield alter(version, alteration(entity, limits))
            yield alter(version, alteration(entity, limits), alteration({"user": "bob"}, _BYTES), validate_only=True)
        yield describe(version)
        yield from _repeated(version)
        yield alter(version, *(alteration(entity, dict.fromkeys(limits)) for entity, limits in _TABLE))
        yield alter(version, alteration({"user": "alice"}, {"producer_byte_rate": None, "unknown_rate": None}))
        yield describe(version)


def _repeated(version: int) -> Iterator[Probe]:
    """Entities, types and keys that come twice, and a limit that is changed and removed."""
    once = alteration({"user": "bob"}, {"producer_byte_rate": 5.0})
    again = alteration({"user": "bob"}, {"producer_byte_rate": 6.0})
    yield alter(version, once, again)
    yield describe(version, ("user", 0, "bob"))
    twice = {**once, "ops": once["ops"] + again["ops"]}
    yield alter(version, twice)
    typed = {**once, "entity": [{"entityType": "user", "entityName": name} for name in ("x", "bob")]}
    yield alter(version, typed)
    yield alter(version, alteration({"user": "bob", "client-id": "b"}, {}))
    yield alter(version, alteration({"user": "bob"}, {"consumer_byte_rate": 7.0, "producer_byte_rate": None}))
    yield describe(version, ("user", 0, "bob"))
    yield alter(version, alteration({"user": "bob"}, {"consumer_byte_rate": None}))


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with its entries in an order of their own: Kafka's is that of a map by hashes of objects."""
    entries = answer["entries"]
    return answer | {"entries": entries and sorted(entries, key=lambda each: str(each["entity"]))}
