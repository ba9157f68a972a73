"""Delegation tokens made, renewed, expired, described, used to log in: one script for Kafka and for this broker.

Tokens have labels, since their ids are random: ``<id:one>`` and ``<hmac:one>`` in a request stand for those of the
token that was made under the label ``one``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from conformance.player.random_play import seeded
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, creation
from rejoin.protocol.errors import ErrorCode

SECRET: Final = "a-secret-of-this-recording"
MAX_LIFETIME_MS: Final = 7_200_000
EXPIRY_TIME_MS: Final = 600_000
CHECK_INTERVAL_MS: Final = 60_000
"""The broker's settings for tokens."""

PRINCIPALS: Final = (ADMIN, "alice", "bob", "carol", "dave")
"""Users who log in by PLAIN."""

NOT_LOGGED_IN: Final = "plaintext"
"""A client of the listener without SASL."""

MAX_INT64: Final = 2**63 - 1
ROUNDED_MS: Final = 20_000
"""Differences of the broker's clock and the client's are rounded to this."""

RANDOM_STEPS: Final = 150
_MINUTE: Final = 60_000
_NO_ONES: Final = base64.b64encode(b"of no token").decode()


class Creation(NamedTuple):
    """A CreateDelegationToken whose token gets a label."""

    label: str
    probe: Probe


class TokenLogin(NamedTuple):
    """A login by SCRAM on a connection of its own. With ``stays`` later steps may use it under its label."""

    mechanism: str
    name: str
    password: str
    extensions: str = ",tokenauth=true"
    authorization_id: str = ""
    stays: str = ""


class Pause(NamedTuple):
    """Time that passes."""

    length_ms: int


Action: TypeAlias = Probe | Creation | TokenLogin | Pause


class TokenStep(NamedTuple):
    """The next step: a principal's request, a login, or a pause."""

    who: str
    what: Action


def user(name: str) -> dict[str, str]:
    """A principal as requests name it."""
    return {"principalType": "User", "principalName": name}


def create(
    label: str, version: int = 3, *, owner: tuple[str | None, str | None] = (None, None), **changed: Any
) -> Creation:
    """Make a token."""
    body: dict[str, Any] = {"renewers": [], "maxLifetimeMs": -1, **changed}
    if version >= 3:
        body = {"ownerPrincipalType": owner[0], "ownerPrincipalName": owner[1], **body}
    return Creation(label, Probe("CreateDelegationToken", version, body))


def renew(label: str, period_ms: int = -1, version: int = 2) -> Probe:
    """Renew a token."""
    return Probe("RenewDelegationToken", version, {"hmac": f"<hmac:{label}>", "renewPeriodMs": period_ms})


def expire(label: str, period_ms: int = -1, version: int = 2) -> Probe:
    """Let a token expire, at once by default."""
    return Probe("ExpireDelegationToken", version, {"hmac": f"<hmac:{label}>", "expiryTimePeriodMs": period_ms})


def describe(*owners: str, version: int = 3) -> Probe:
    """List tokens; without owners, all."""
    return Probe("DescribeDelegationToken", version, {"owners": [user(name) for name in owners] or None})


def log_in(label: str, *, mechanism: str = "SCRAM-SHA-256", **changed: Any) -> TokenLogin:
    """A login by a token."""
    given: dict[str, Any] = {"name": f"<id:{label}>", "password": f"<hmac:{label}>", **changed}
    return TokenLogin(mechanism, **given)


def allow(who: str, operation: int, kind: int, name: str, permission: int = 3) -> Probe:
    """A CreateAcls."""
    entry = creation(
        resourceType=kind,
        resourceName=name,
        principal=f"User:{who}",
        operation=operation,
        permissionType=permission,
    )
    return Probe("CreateAcls", 3, {"creations": [entry]})


DISABLED: Final = (
    TokenStep("alice", create("none")),
    TokenStep("alice", create("none", 1)),
    TokenStep("alice", create("none", owner=("User", "bob"))),
    TokenStep(ADMIN, create("none", owner=("User", "bob"))),
    TokenStep("alice", create("none", renewers=[{"principalType": "Group", "principalName": "g"}])),
    TokenStep("alice", Probe("RenewDelegationToken", 2, {"hmac": _NO_ONES, "renewPeriodMs": 1})),
    TokenStep("alice", Probe("ExpireDelegationToken", 2, {"hmac": _NO_ONES, "expiryTimePeriodMs": 1})),
    TokenStep("alice", describe()),
    TokenStep("alice", Probe("DescribeDelegationToken", 3, {"owners": []})),
    TokenStep(NOT_LOGGED_IN, create("none")),
    TokenStep(NOT_LOGGED_IN, describe()),
    TokenStep("alice", log_in("none", name="AAAAAAAAAAAAAAAAAAAAAA", password="secret")),
)
"""Steps at a broker without a secret key."""


@cache
def steps() -> tuple[TokenStep, ...]:
    """The script at a broker with a secret key."""
    return (*_refused(), *_made(), *_changed(), *_seen(), *_logins(), *_random(), *_ended())


def probes() -> list[Probe]:
    """The requests of the script."""
    requests = (step.what.probe if isinstance(step.what, Creation) else step.what for step in steps())
    return [each for each in requests if isinstance(each, Probe)]


def _refused() -> Iterator[TokenStep]:
    for version in (1, 2, 3):
        yield TokenStep(NOT_LOGGED_IN, create("none", version))
        yield TokenStep(NOT_LOGGED_IN, describe(version=version))
    yield TokenStep(NOT_LOGGED_IN, create("none", owner=("User", "bob")))
    for version in (1, 2):
        yield TokenStep(NOT_LOGGED_IN, Probe("RenewDelegationToken", version, {"hmac": _NO_ONES, "renewPeriodMs": 1}))
        yield TokenStep(
            NOT_LOGGED_IN, Probe("ExpireDelegationToken", version, {"hmac": _NO_ONES, "expiryTimePeriodMs": 1})
        )
    yield TokenStep("alice", create("none", owner=("User", "bob")))
    yield TokenStep("alice", create("none", owner=("Group", "alice")))
    yield TokenStep("alice", create("none", renewers=[user("bob"), {"principalType": "Group", "principalName": "g"}]))
    yield TokenStep("alice", create("none", renewers=[{"principalType": "", "principalName": "bob"}]))
    yield TokenStep("alice", create("none", owner=(None, "bob")))
    yield TokenStep(NOT_LOGGED_IN, create("none", owner=(None, "bob")))
    # The permission comes before the renewers.
    group = [{"principalType": "Group", "principalName": "g"}]
    yield TokenStep("alice", create("none", owner=("User", "bob"), renewers=group))
    for api, field in (("RenewDelegationToken", "renewPeriodMs"), ("ExpireDelegationToken", "expiryTimePeriodMs")):
        for hmac in (_NO_ONES, ""):
            for period_ms in (-1, 0, 1):
                yield TokenStep("alice", Probe(api, 2, {"hmac": hmac, field: period_ms}))
    yield TokenStep("alice", describe())
    yield TokenStep(ADMIN, describe())


def _made() -> Iterator[TokenStep]:
    for version in (1, 2, 3):
        yield TokenStep("alice", create(f"a{version}", version))
    # A name of the owner counts, and a type without it does not.
    yield TokenStep("alice", create("own", owner=("User", "alice")))
    yield TokenStep("alice", create("no-name", owner=("Group", "")))
    yield TokenStep("alice", create("null-name", owner=("Group", None)))
    for number, lifetime_ms in enumerate((0, -2, 5 * _MINUTE, EXPIRY_TIME_MS, 60 * _MINUTE, 240 * _MINUTE, MAX_INT64)):
        yield TokenStep("alice", create(f"life{number}", maxLifetimeMs=lifetime_ms))
    yield TokenStep("alice", create("renewers", renewers=[user("carol"), user("bob"), user("carol"), user("")]))
    yield TokenStep(ADMIN, create("for-bob", owner=("User", "bob"), renewers=[user("dave")]))
    yield TokenStep(ADMIN, create("for-group", owner=("Group", "g")))
    for version in (1, 2, 3):
        for who in (ADMIN, "alice", "bob", "dave"):
            yield TokenStep(who, describe(version=version))
    # CREATE_TOKENS on a user, by its principal.
    yield TokenStep(ADMIN, allow("carol", 13, 7, "User:bob"))
    yield TokenStep("carol", create("by-carol", owner=("User", "bob")))
    yield TokenStep("carol", create("none", owner=("User", "alice")))
    yield TokenStep("carol", describe())
    yield TokenStep("bob", describe())


def _changed() -> Iterator[TokenStep]:
    for version in (1, 2):
        yield TokenStep("alice", renew("a1", 20 * _MINUTE, version))
        yield TokenStep("alice", expire("a1", 20 * _MINUTE, version))
    for period_ms in (-1, 0, 1 * _MINUTE, 5 * _MINUTE, 30 * _MINUTE, 600 * _MINUTE, MAX_INT64):
        yield TokenStep("alice", renew("a2", period_ms))
    for period_ms in (1 * _MINUTE, 30 * _MINUTE, 600 * _MINUTE, MAX_INT64):
        yield TokenStep("alice", expire("a2", period_ms))
    yield TokenStep("alice", renew("life2"))
    yield TokenStep("alice", expire("life2", 60 * _MINUTE))
    # Owners and renewers may, requesters may not, nor may super users.
    for who in ("alice", "bob", "carol", "dave", ADMIN):
        yield TokenStep(who, renew("renewers", 2 * _MINUTE))
        yield TokenStep(who, expire("renewers", 3 * _MINUTE))
        yield TokenStep(who, renew("for-bob", 2 * _MINUTE))
        yield TokenStep(who, renew("by-carol", 2 * _MINUTE))
    for who in (ADMIN, "dave", "dave", "bob"):
        yield TokenStep(who, expire("for-bob"))
    yield TokenStep(ADMIN, expire("for-group"))
    yield TokenStep("alice", describe())
    # Some are at their end, and are there until the broker looks for them.
    yield TokenStep("alice", create("short", maxLifetimeMs=1, renewers=[user("bob")]))
    yield TokenStep("alice", expire("a3", 0))
    yield TokenStep("alice", Pause(50))
    for label in ("short", "a3"):
        yield TokenStep("bob", renew(label))
        yield TokenStep("alice", renew(label))
        yield TokenStep("alice", expire(label, 0))
        yield TokenStep("alice", expire(label, _MINUTE))
        yield TokenStep("carol", expire(label))
        yield TokenStep("alice", log_in(label, stays="ended"))
        yield TokenStep("ended", describe())
    yield TokenStep("alice", describe())
    for label in ("short", "a3"):
        yield TokenStep("alice", expire(label, -5))
        yield TokenStep("alice", renew(label))
    yield TokenStep("alice", describe())


def _seen() -> Iterator[TokenStep]:
    """Owners that are asked for, and tokens of others."""
    who_asks = ("alice", "bob", "carol", "dave", ADMIN)
    yield TokenStep("alice", Probe("DescribeDelegationToken", 3, {"owners": []}))
    for owners in (("alice",), ("bob",), ("carol",), (ADMIN,), ("nemo",), ("alice", "bob", "bob"), ("",)):
        for who in who_asks:
            yield TokenStep(who, describe(*owners))
    group = {"owners": [{"principalType": "Group", "principalName": "g"}]}
    for who in who_asks:
        yield TokenStep(who, Probe("DescribeDelegationToken", 3, group))
    for who, operation, kind, name in (
        ("dave", 8, 6, "<id:renewers>"),
        ("dave", 14, 7, "User:alice"),
        ("dave", 14, 7, "Group:g"),
        ("dave", 13, 7, "User:alice"),
    ):
        yield TokenStep(ADMIN, allow(who, operation, kind, name))
        yield TokenStep(who, describe())
        yield TokenStep(who, describe("alice"))
        yield TokenStep(who, describe("carol"))
    yield TokenStep("dave", create("none", owner=("User", "bob")))
    yield TokenStep("dave", create("daves", owner=("User", "alice")))
    yield TokenStep("dave", renew("daves"))
    # A denial concerns those who neither own a token nor may renew it.
    yield TokenStep(ADMIN, allow("*", 2, 6, "*", permission=2))
    yield TokenStep(ADMIN, allow("alice", 2, 7, "User:alice", permission=2))
    for who in ("dave", "alice"):
        yield TokenStep(who, describe())
        yield TokenStep(who, create(f"denied-{who}"))
    yield TokenStep("alice", renew("denied-alice"))


def _logins() -> Iterator[TokenStep]:
    """Logins by a token, and what such a client may do."""
    yield TokenStep(ADMIN, allow("alice", 8, 3, "hers"))
    yield TokenStep("alice", create("login", renewers=[user("bob")]))
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        yield TokenStep("alice", log_in("login", mechanism=mechanism))
        yield TokenStep("alice", log_in("login", mechanism=mechanism, password="wrong"))
    for extensions in (
        "",
        ",tokenauth=false",
        ",tokenauth=TRUE",
        ",tokenauth=1",
        ",Tokenauth=true",
        ",other=1",
        ",other=tokenauth",
    ):
        yield TokenStep("alice", log_in("login", extensions=extensions))
    for name in ("alice", "", "AAAAAAAAAAAAAAAAAAAAAA", "<hmac:login>"):
        yield TokenStep("alice", log_in("login", name=name))
    for authorization_id in ("<id:login>", "alice", "bob"):
        yield TokenStep("alice", log_in("login", authorization_id=authorization_id))
    yield TokenStep("alice", log_in("login", stays="by-token"))
    for probe in (
        create("none"),
        create("none", 1, renewers=[{"principalType": "Group", "principalName": "g"}]),
        create("none", owner=("User", "bob")),
        renew("login"),
        renew("a2", version=1),
        expire("login"),
        describe(),
        describe("alice", version=1),
        Probe("FindCoordinator", 5, {"keyType": 0, "coordinatorKeys": ["hers"]}),
        Probe("FindCoordinator", 5, {"keyType": 0, "coordinatorKeys": ["others"]}),
        allow("alice", 8, 3, "more"),
    ):
        yield TokenStep("by-token", probe)
    # A token of another owner is its owner's.
    yield TokenStep("carol", log_in("by-carol", stays="as-bob"))
    yield TokenStep("as-bob", Probe("FindCoordinator", 5, {"keyType": 0, "coordinatorKeys": ["hers"]}))
    yield TokenStep(ADMIN, allow("bob", 8, 3, "hers"))
    yield TokenStep("as-bob", Probe("FindCoordinator", 5, {"keyType": 0, "coordinatorKeys": ["hers"]}))
    # A login goes on after its token is gone.
    yield TokenStep("alice", expire("login"))
    yield TokenStep("by-token", Probe("FindCoordinator", 5, {"keyType": 0, "coordinatorKeys": ["hers"]}))
    yield TokenStep("alice", log_in("login"))


def _random() -> Iterator[TokenStep]:
    random = seeded(3_841)
    users = PRINCIPALS[1:]
    labels: list[str] = []
    for number in range(RANDOM_STEPS):
        who = random.choice(PRINCIPALS)
        kind = random.randrange(5)
        if kind == 0 or not labels:
            label = f"r{number}"
            renewers = [user(random.choice(users)) for _ in range(random.choice((0, 1, 2)))]
            owner = ("User", random.choice(users)) if random.random() < 0.4 else (None, None)
            lifetime_ms = random.choice((-1, 5 * _MINUTE, 30 * _MINUTE))
            yield TokenStep(who, create(label, owner=owner, renewers=renewers, maxLifetimeMs=lifetime_ms))
            labels.append(label)
            continue
        label = random.choice(labels)
        period_ms = random.choice((-1, 0, 2 * _MINUTE, 20 * _MINUTE, 300 * _MINUTE))
        match kind:
            case 1:
                yield TokenStep(who, renew(label, period_ms))
            case 2:
                yield TokenStep(who, expire(label, period_ms or -1))
            case 3:
                yield TokenStep(who, describe(*random.sample(users, random.choice((0, 1, 2)))))
            case 4:
                yield TokenStep(who, log_in(label))


def _ended() -> Iterator[TokenStep]:
    """The broker removes what has expired, at its next look."""
    yield TokenStep("alice", create("last", maxLifetimeMs=1))
    yield TokenStep("alice", Pause(CHECK_INTERVAL_MS + 1_000))
    yield TokenStep("alice", renew("last"))
    yield TokenStep(ADMIN, expire("last"))
    yield TokenStep("alice", log_in("last"))
    yield TokenStep("alice", describe("alice"))


def errors_named(answer: Any) -> Any:
    """An answer with its errors by name."""
    if isinstance(answer, list):
        return [errors_named(each) for each in answer]
    if isinstance(answer, dict):
        if answer.get("errorCode") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            # Kafka's text has the addresses of objects in its memory.
            answer = {**answer, "errorMessage": None}
        return {
            key: ErrorCode(value).name if key == "errorCode" else errors_named(value) for key, value in answer.items()
        }
    return answer


def in_order(tokens: list[Any]) -> list[Any]:
    """Tokens of an answer, which come in the order of a hash map."""
    return sorted(tokens, key=json.dumps)
