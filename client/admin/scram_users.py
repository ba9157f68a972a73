"""Users of SCRAM from outside: list, set and remove their credentials (KIP-554)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from rejoin.client.admin.asking import AdminConnection, Outcomes, coded
from rejoin.client.core.errors import CodedError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    ScramUserName,
)
from rejoin.protocol.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512
from rejoin.protocol.sasl.scram import ITERATIONS, MECHANISM_NUMBERS, salted_password

_SALT_BYTES = 16


class ScramMechanism(IntEnum):
    """Kafka's numbers of the mechanisms; ``word`` is the name that SASL has."""

    SCRAM_SHA_256 = MECHANISM_NUMBERS[SCRAM_SHA_256]
    SCRAM_SHA_512 = MECHANISM_NUMBERS[SCRAM_SHA_512]

    @property
    def word(self) -> str:
        """The name, as in ``sasl.mechanism``."""
        return self.name.replace("_", "-")


class StoredCredential(NamedTuple):
    """A credential as a cluster shows it: without its keys."""

    mechanism: ScramMechanism
    iterations: int


class ScramUser(NamedTuple):
    """The credentials of a user, or the error for it."""

    credentials: tuple[StoredCredential, ...]
    error: CodedError | None = None


@dataclass(frozen=True, slots=True)
class CredentialUpsertion:
    """A credential to add, or to replace. The cluster gets the salted password alone."""

    user: str
    mechanism: ScramMechanism
    password: str = field(repr=False)
    iterations: int = ITERATIONS
    salt: bytes = field(default_factory=lambda: os.urandom(_SALT_BYTES), repr=False)


@dataclass(frozen=True, slots=True)
class CredentialDeletion:
    """A credential to remove."""

    user: str
    mechanism: ScramMechanism


ScramAlteration: TypeAlias = CredentialUpsertion | CredentialDeletion


class ScramCalls(AdminConnection):
    """The calls of an admin client about users of SCRAM."""

    async def describe_user_scram_credentials(self, users: Iterable[str] = ()) -> dict[str, ScramUser]:
        """Mechanisms and iterations by user; of all users unless some are named. Raises CodedError."""
        names = tuple(ScramUserName(name=name) for name in users)
        request = DescribeUserScramCredentialsRequest(users=names or None)
        response = await self.ask(request, DescribeUserScramCredentialsResponse)
        if response.error_code is not ErrorCode.NONE:
            raise CodedError(response.error_code, response.error_message or "")
        return {
            result.user: ScramUser(
                tuple(
                    StoredCredential(ScramMechanism(info.mechanism), info.iterations)
                    for info in result.credential_infos
                ),
                coded(result.error_code, result.error_message),
            )
            for result in response.results
        }

    async def alter_user_scram_credentials(self, changes: Iterable[ScramAlteration]) -> Outcomes[str]:
        """Change credentials; the outcome of each user. With one error, none of a user's changes is made."""
        given = list(changes)
        request = AlterUserScramCredentialsRequest(
            deletions=tuple(
                ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
                for each in given
                if isinstance(each, CredentialDeletion)
            ),
            upsertions=tuple(_upsertion(each) for each in given if isinstance(each, CredentialUpsertion)),
        )
        response = await self.ask(request, AlterUserScramCredentialsResponse)
        return Outcomes.of({each.user: (each.error_code, each.error_message) for each in response.results})


def _upsertion(given: CredentialUpsertion) -> ScramCredentialUpsertion:
    salted = salted_password(given.mechanism.word, given.password, given.salt, given.iterations)
    return ScramCredentialUpsertion(
        name=given.user,
        mechanism=given.mechanism,
        iterations=given.iterations,
        salt=given.salt,
        salted_password=salted,
    )
