"""Actions of ``rejoin quotas`` and ``rejoin users``, one function each."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from rejoin.client.admin.admin import Admin
from rejoin.client.admin.scram_users import (
    CredentialDeletion,
    CredentialUpsertion,
    ScramAlteration,
    ScramMechanism,
    StoredCredential,
)
from rejoin.client.commands.entity_configs.options import SCRAM, USERS
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.commands.tools.connecting import ToolRefusal, runs
from rejoin.output import print_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import double_text
from rejoin.protocol.printable import printable
from rejoin.protocol.sasl.scram import ITERATIONS
from rejoin.protocol.security.quota_limits import DEFAULT, QuotaHolder, QuotaLimits

FIELDS: Final = {"users": "user", "clients": "client_id", "ips": "ip"}
FILTERED: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
SHOWN: Final = {"user": "user-principal", "client_id": "client-id", "ip": "ip"}
CREDENTIAL: Final = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")


async def describe(admin: Admin, options: argparse.Namespace) -> None:
    """``--describe``."""
    named = QuotaHolder(**{FIELDS[kind]: name for kind, name in options.entities if name is not None})
    any_of = [FILTERED[kind] for kind, name in options.entities if name is None]
    found = await admin.describe_client_quotas(named, any_of, strict=bool(options.entities))
    for entity in sorted(found, key=_order):
        values = ", ".join(f"{key}={double_text(value)}" for key, value in sorted(found[entity].items()))
        print_text(f"Quota configs for {_shown(entity)} are {values}")
    # Kafka: describeClientQuotaAndUserScramCredentialConfigs.
    if options.tool is USERS and named.user != DEFAULT:
        await _describe_credentials(admin, named.user)


async def _describe_credentials(admin: Admin, user: str | None) -> None:
    for name, found in (await admin.describe_user_scram_credentials([] if user is None else [user])).items():
        who = f"SCRAM credential configs for user-principal '{printable(name)}'"
        if found.error is None:
            print_text(f"{who} are {', '.join(map(_credential, found.credentials))}")
        elif found.error.error is not ErrorCode.RESOURCE_NOT_FOUND:
            print_text(f"Error retrieving {who}: {found.error.java_name}: {found.error}")


def _credential(given: StoredCredential) -> str:
    return f"{given.mechanism.word}=iterations={given.iterations}"


def _order(entity: QuotaHolder) -> tuple[tuple[bool, str], ...]:
    """Defaults first."""
    return tuple((name != DEFAULT, name or "") for name in entity)


def _shown(entity: QuotaHolder) -> str:
    given = zip(SHOWN.values(), entity, strict=True)
    return ", ".join(
        f"the default {kind}" if name == DEFAULT else f"{kind} '{printable(name)}'"
        for kind, name in given
        if name is not None
    )


async def alter(admin: Admin, options: argparse.Namespace) -> None:
    """``--alter``."""
    changes: Mapping[str, str | None] = options.changes
    if any(name in SCRAM for name in changes):
        ((_, user),) = options.entities
        alterations = [_alteration(user, name, value) for name, value in changes.items()]
        (await admin.alter_user_scram_credentials(alterations)).check()
    else:
        await _alter_quotas(admin, options.entities, changes)
    kind, name = options.entities[0]
    if name == DEFAULT:
        print_text(f"Completed updating default config for {kind} in the cluster.")
    else:
        print_text(f"Completed updating config for {kind.removesuffix('s')} {printable(name)}.")


async def _alter_quotas(admin: Admin, entities: list[tuple[str, str]], changes: Mapping[str, str | None]) -> None:
    limits = {name: None if value is None else _number(name, value) for name, value in changes.items()}
    for kind, name in entities:
        if kind == "ips" and name != DEFAULT and not _is_host(name):
            raise UsageError(f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}")
    entity = QuotaHolder(**{FIELDS[kind]: name for kind, name in entities})
    there = (await admin.describe_client_quotas(entity, strict=True)).get(entity, {})
    unknown = [name for name, value in limits.items() if value is None and name not in there]
    if unknown:
        raise ToolRefusal(f"Invalid config(s): {','.join(unknown)}")
    (await admin.alter_client_quotas([QuotaLimits(entity, limits)])).check()


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"Cannot parse quota configuration value for {name}: {value}") from None


def _is_host(text: str) -> bool:
    # Differs: Kafka's tool asks the resolver for any name.
    try:
        ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def _alteration(user: str, name: str, value: str | None) -> ScramAlteration:
    mechanism = ScramMechanism[name.replace("-", "_")]
    if value is None:
        return CredentialDeletion(user, mechanism)
    found = CREDENTIAL.fullmatch(value)
    if found is None:
        raise UsageError(f"{name}: expected [password=...] or [iterations=NUMBER,password=...]")
    iterations = int(found[1]) if found[1] else -1
    if iterations != -1 and iterations < ITERATIONS:
        raise UsageError(f"Iterations {iterations} is less than the minimum {ITERATIONS} required for {name}")
    return CredentialUpsertion(user, mechanism, found[2], ITERATIONS if iterations == -1 else iterations)


run_action: Final = runs({"--describe": describe, "--alter": alter}, Admin)
