"""Changes of SCRAM's users, descriptions of them, and logins: one script for Apache Kafka and for this broker."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from conformance.player.random_play import seeded
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, creation
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.sasl.scram import HASHES, MECHANISM_NUMBERS, salted_password

SALT: Final = b"a salt of sixteen"
FIRST_USERS: Final = {"alice": "alice-secret", "bob": "bob-secret"}
"""Users that are there at the start, with keys for both mechanisms."""

RANDOM_STEPS: Final = 120


class ScramLogin(NamedTuple):
    """A login by SCRAM, on a connection of its own."""

    mechanism: str
    name: str
    password: str


class ScramStep(NamedTuple):
    """The next step: a principal's request, or a login."""

    who: str
    what: Probe | ScramLogin


def deletion(name: str, mechanism: int = 1) -> dict[str, Any]:
    """A credential to remove."""
    return {"name": name, "mechanism": mechanism}


def upsertion(name: str, mechanism: int = 1, **changed: Any) -> dict[str, Any]:
    """A credential of the password ``NAME-new``."""
    hashed = next((each for each, number in MECHANISM_NUMBERS.items() if number == mechanism), "SCRAM-SHA-256")
    salted = salted_password(hashed, f"{name}-new", SALT, max(1, changed.get("iterations", 4_096)))
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": 4_096,
        "salt": base64.b64encode(SALT).decode(),
        "saltedPassword": base64.b64encode(salted).decode(),
        **changed,
    }


def alter(deletions: Iterable[dict[str, Any]] = (), upsertions: Iterable[dict[str, Any]] = ()) -> Probe:
    """An AlterUserScramCredentials."""
    return Probe("AlterUserScramCredentials", 0, {"deletions": list(deletions), "upsertions": list(upsertions)})


def describe(*names: str) -> Probe:
    """A DescribeUserScramCredentials; without names, of all users."""
    return Probe("DescribeUserScramCredentials", 0, {"users": [{"name": name} for name in names] or None})


CHANGES: Final[tuple[tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]], ...]] = (
    ((), ()),
    ((), (upsertion("carol"),)),
    ((), (upsertion("carol", 2, iterations=16_384),)),
    ((), (upsertion("carol", iterations=8_192),)),
    ((), (upsertion("both"), upsertion("both", 2))),
    # Bounds, mechanisms, empty fields.
    ((), (upsertion("low", iterations=4_095),)),
    ((), (upsertion("high", iterations=16_385),)),
    ((), (upsertion("none", iterations=0),)),
    ((), (upsertion("minus", iterations=-1),)),
    ((), (upsertion("mechanism", 0),)),
    ((), (upsertion("mechanism", 3),)),
    ((), (upsertion("mechanism", -1, iterations=1),)),
    ((), (upsertion(""),)),
    ((), (upsertion("", 7),)),
    ((), (upsertion("salt", salt=""),)),
    ((), (upsertion("salted", saltedPassword=""),)),
    ((), (upsertion("short", saltedPassword="AQ=="),)),
    ((), (upsertion("Jürgen, a=b"),)),
    # Deletions.
    ((deletion("unknown"),), ()),
    ((deletion("unknown", 5),), ()),
    ((deletion("carol", 0),), ()),
    ((deletion(""),), ()),
    ((deletion("carol", 2),), ()),
    ((deletion("carol", 2),), ()),
    # Twice, and several users at once.
    ((deletion("carol"), deletion("carol")), ()),
    ((), (upsertion("carol"), upsertion("carol", iterations=5_000))),
    ((deletion("carol"),), (upsertion("carol"),)),
    ((deletion("both"),), (upsertion("both", 2, iterations=5_000),)),
    ((deletion("unknown"),), (upsertion("unknown"),)),
    ((), (upsertion("half"), upsertion("half", 2, iterations=1))),
    ((), (upsertion("half", 2, iterations=1), upsertion("half"))),
    ((deletion("unknown"), deletion("both", 2)), (upsertion("dave"), upsertion("", 1), upsertion("erin", 9))),
    # Those of the start.
    ((deletion("alice"),), ()),
    ((deletion("alice"),), ()),
    ((), (upsertion("bob"),)),
)
"""Deletions and upsertions of one request each."""


@cache
def steps() -> tuple[ScramStep, ...]:
    """The script. Hashes of passwords take a second."""
    return (*_chosen(), *_denied(), *_random())


def _chosen() -> Iterator[ScramStep]:
    everyone = describe()
    yield ScramStep(ADMIN, everyone)
    for deletions, upsertions in CHANGES:
        yield ScramStep(ADMIN, alter(deletions, upsertions))
        yield ScramStep(ADMIN, everyone)
    for names in (
        ("alice",),
        ("alice", "bob", "nemo"),
        ("bob", "bob"),
        ("nemo", "bob", "nemo"),
        ("",),
        ("carol", "both"),
    ):
        yield ScramStep(ADMIN, describe(*names))
    yield ScramStep(ADMIN, Probe("DescribeUserScramCredentials", 0, {"users": []}))
    for name, suffix in (("alice", "secret"), ("bob", "secret"), ("bob", "new"), ("carol", "new"), ("nemo", "new")):
        for mechanism in HASHES:
            yield ScramStep(ADMIN, ScramLogin(mechanism, name, f"{name}-{suffix}"))
    yield ScramStep(ADMIN, ScramLogin("SCRAM-SHA-256", "Jürgen, a=b", "Jürgen, a=b-new"))


def _denied() -> Iterator[ScramStep]:
    """Requests of a principal without rights, with DESCRIBE, and with ALTER on the cluster."""
    # Kafka: a refusal for users that are null is never answered (a NullPointerException in its handler).
    everyone = Probe("DescribeUserScramCredentials", 0, {"users": []})
    asked = (everyone, describe("bob", "bob"), alter((deletion("nemo"), deletion("nemo")), (upsertion("frank"),)))
    on_cluster = {"resourceType": 4, "resourceName": "kafka-cluster", "principal": "User:dave"}
    for operation in (None, 8, 7):
        if operation is not None:
            yield ScramStep(ADMIN, Probe("CreateAcls", 3, {"creations": [creation(**on_cluster, operation=operation)]}))
        for probe in asked:
            yield ScramStep("dave", probe)
    yield ScramStep(ADMIN, describe())


def _random() -> Iterator[ScramStep]:
    random = seeded(5_051)
    names = ("alice", "bob", "carol", "dave", "")
    for _ in range(RANDOM_STEPS):
        deletions = [
            deletion(random.choice(names), random.choice((1, 1, 2, 2, 3))) for _ in range(random.choice((0, 0, 1, 2)))
        ]
        upsertions = [
            upsertion(
                random.choice(names), random.choice((1, 1, 2, 2, 3)), iterations=random.choice((4_096, 4_097, 4_095))
            )
            for _ in range(random.choice((0, 1, 1, 2, 3)))
        ]
        yield ScramStep(ADMIN, alter(deletions, upsertions))
        yield ScramStep(ADMIN, describe())


def whole(answer: Any) -> Any:
    """An answer with its errors by name; users come in the order of a hash map, so they are sorted."""
    if isinstance(answer, list):
        return sorted(map(whole, answer), key=json.dumps)
    if isinstance(answer, dict):
        if answer.get("errorCode") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            # Kafka's text has the addresses of objects in its memory.
            answer = {**answer, "errorMessage": None}
        return {key: ErrorCode(value).name if key == "errorCode" else whole(value) for key, value in answer.items()}
    return answer
