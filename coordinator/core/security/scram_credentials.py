"""Credentials of SCRAM's users: those of the users file, those that clients have made, and those they have removed.

Kafka: ScramControlManager, ScramImage. There the first users are records of ``kafka-storage``; here they are a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import TopicsRecords
from rejoin.coordinator.core.security.recorded_state import RecordedState
from rejoin.protocol.message import Struct
from rejoin.protocol.records.security import (
    RemoveUserScramCredentialData,
    RemoveUserScramCredentialRecord,
    UserScramCredentialData,
    UserScramCredentialRecord,
)
from rejoin.protocol.sasl.scram import MECHANISM_NUMBERS, ScramCredential

FileUsers: TypeAlias = Mapping[str, Mapping[int, int]]
"""Iterations of the users file's credentials, by the user's name and the mechanism's number. Keys stay outside."""

NO_USERS: Final[FileUsers] = {}


class CredentialKey(NamedTuple):
    """A user has at most one credential for each mechanism."""

    name: str
    mechanism: int


class ScramCredentials(RecordedState):
    """Changes of the credentials that the users file has."""

    RECORDS: ClassVar[tuple[type[Struct], ...]] = (UserScramCredentialRecord, RemoveUserScramCredentialRecord)

    def __init__(self, file_users: FileUsers = NO_USERS) -> None:
        self._file_users = file_users
        self._made: dict[CredentialKey, ScramCredential] = {}
        self._removed: dict[CredentialKey, None] = {}

    def credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """A credential that a client has made."""
        return self._made.get(CredentialKey(name, MECHANISM_NUMBERS[mechanism]))

    def is_removed(self, mechanism: str, name: str) -> bool:
        """Whether a client has removed what the users file has for this user."""
        return CredentialKey(name, MECHANISM_NUMBERS[mechanism]) in self._removed

    @property
    def made(self) -> int:
        """How many credentials clients have made."""
        return len(self._made)

    def names(self) -> tuple[str, ...]:
        """All users that have a credential."""
        of_file = [name for name in self._file_users if self.iterations(name)]
        return tuple(dict.fromkeys([*of_file, *(key.name for key in self._made)]))

    def iterations(self, name: str) -> dict[int, int]:
        """The iterations of a user's credentials, by the number of the mechanism."""
        found = {}
        for mechanism in MECHANISM_NUMBERS.values():
            key = CredentialKey(name, mechanism)
            of_file = self._file_users.get(name, {}).get(mechanism)
            if (made := self._made.get(key)) is not None:
                found[mechanism] = made.iterations
            elif of_file is not None and key not in self._removed:
                found[mechanism] = of_file
        return found

    def replay(self, record: UserScramCredentialRecord | RemoveUserScramCredentialRecord) -> None:
        data = record.data
        key = CredentialKey(data.name, data.mechanism)
        if isinstance(data, UserScramCredentialData):
            self._made[key] = ScramCredential(data.salt, data.stored_key, data.server_key, data.iterations)
            self._removed.pop(key, None)
            return
        was_made = self._made.pop(key, None) is not None
        # Nodes may have different files: what was not made by a client is in the file of another node.
        if not was_made or key.mechanism in self._file_users.get(key.name, {}):
            self._removed[key] = None

    def records(self) -> TopicsRecords:
        made = [creation(key, credential) for key, credential in self._made.items()]
        return (*made, *[removal(key) for key in self._removed])

    def clear(self) -> None:
        self._made.clear()
        self._removed.clear()


def creation(key: CredentialKey, credential: ScramCredential) -> UserScramCredentialRecord:
    """The record of a new credential, or of one that replaces another."""
    data = UserScramCredentialData(
        name=key.name,
        mechanism=key.mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )
    return UserScramCredentialRecord(data=data)


def removal(key: CredentialKey) -> RemoveUserScramCredentialRecord:
    """The record that removes a credential."""
    return RemoveUserScramCredentialRecord(data=RemoveUserScramCredentialData(name=key.name, mechanism=key.mechanism))
