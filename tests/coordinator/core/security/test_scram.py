"""Users of SCRAM: those of the file and those that clients make, over restarts, within bounds, at every node."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context, TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.security.scram_credentials import FileUsers, ScramCredentials
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from rejoin.protocol.records.security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from rejoin.protocol.sasl.scram import ScramCredential, salted_password
from tests.coordinator.core.driver import DrivenNode

SHA_256, SHA_512 = 1, 2
SALT: Final = b"salt"
FILE: Final[FileUsers] = {"alice": {SHA_256: 4_096, SHA_512: 8_192}}


def upsertion(name: str, **changed: Any) -> ScramCredentialUpsertion:
    salted = salted_password("SCRAM-SHA-256", "secret", SALT, 4_096)
    fields: dict[str, Any] = {"mechanism": SHA_256, "iterations": 4_096, "salt": SALT, "salted_password": salted}
    return ScramCredentialUpsertion(name=name, **{**fields, **changed})


def ask(driven: DrivenNode, request: Any) -> Any:
    token = object()
    driven.request(token, request, Context(0))
    return driven.replies[token]


def alter(driven: DrivenNode, *upsertions: ScramCredentialUpsertion, removed: tuple[str, ...] = ()) -> list[ErrorCode]:
    deletions = tuple(ScramCredentialDeletion(name=name, mechanism=SHA_256) for name in removed)
    answer = ask(driven, AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions))
    return [each.error_code for each in answer.results]


def described(driven: DrivenNode) -> dict[str, dict[int, int]]:
    answer = ask(driven, DescribeUserScramCredentialsRequest(users=None))
    return {each.user: {info.mechanism: info.iterations for info in each.credential_infos} for each in answer.results}


def test_a_credential_is_that_of_the_password_that_was_salted() -> None:
    driven = DrivenNode()
    assert alter(driven, upsertion("carol")) == [ErrorCode.NONE]
    made = driven.node.scram_credentials.credential("SCRAM-SHA-256", "carol")
    assert made == ScramCredential.of("SCRAM-SHA-256", "secret", SALT)
    assert driven.node.scram_credentials.credential("SCRAM-SHA-512", "carol") is None


def replayed(table: ScramCredentials, file_users: FileUsers) -> ScramCredentials:
    """The table of a node that reads the records of another."""
    other = ScramCredentials(file_users)
    for record in table.records():
        assert isinstance(record, UserScramCredentialRecord | RemoveUserScramCredentialRecord)
        other.replay(record)
    return other


def test_changes_of_users_of_the_file_are_kept_without_the_file() -> None:
    driven = DrivenNode(file_users=FILE)
    assert described(driven) == FILE
    assert alter(driven, upsertion("carol"), removed=("alice",)) == [ErrorCode.NONE] * 2
    expected = {"alice": {SHA_512: 8_192}, "carol": {SHA_256: 4_096}}
    assert described(driven) == expected
    for file_users in (FILE, {}):
        table = replayed(driven.node.scram_credentials, file_users)
        assert table.is_removed("SCRAM-SHA-256", "alice"), "a node without the file keeps it for those that have it"
        again = replayed(table, FILE)
        assert {name: again.iterations(name) for name in again.names()} == expected
    assert alter(driven, upsertion("alice", iterations=5_000)) == [ErrorCode.NONE]
    assert described(driven)["alice"] == {SHA_256: 5_000, SHA_512: 8_192}


def test_a_user_without_credentials_is_not_listed() -> None:
    driven = DrivenNode(file_users={"alice": {SHA_256: 4_096}})
    assert alter(driven, upsertion("carol"), removed=("alice",)) == [ErrorCode.NONE] * 2
    assert alter(driven, removed=("carol", "alice")) == [ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND]
    assert described(driven) == {}
    assert driven.node.scram_credentials.made == 0


def test_a_log_that_is_read_anew_replaces_what_was_known() -> None:
    driven = DrivenNode(file_users=FILE)
    alter(driven, upsertion("carol"), removed=("alice",))
    node = Node(Settings(), str, topics_logged=True, file_users=FILE)
    node.step(TopicsChanged(((1, driven.node.scram_credentials.records()),), 1), 0)
    assert node.scram_credentials.names() == ("alice", "carol")
    assert node.scram_credentials.iterations("alice") == {SHA_512: 8_192}
    node.step(TopicsChanged((), 2, whole=True), 0)
    assert node.scram_credentials.names() == ("alice",)
    assert node.scram_credentials.iterations("alice") == FILE["alice"]


@pytest.mark.parametrize(
    "wrong",
    [{"name": "a" * 1_025}, {"salt": b"s" * 1_025}, {"salted_password": b"s" * 1_025}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_is_too_long_is_refused(wrong: dict[str, Any]) -> None:
    driven = DrivenNode()
    assert alter(driven, upsertion(**{"name": "carol", **wrong})) == [ErrorCode.POLICY_VIOLATION]
    assert described(driven) == {}


def test_their_number_is_bounded() -> None:
    driven = DrivenNode(emulator_max_scram_credentials=2)
    assert alter(driven, upsertion("a"), upsertion("b")) == [ErrorCode.NONE] * 2
    assert alter(driven, upsertion("c"), upsertion("a")) == [ErrorCode.POLICY_VIOLATION, ErrorCode.NONE]
    assert alter(driven, removed=("a",)) == [ErrorCode.NONE]
    assert alter(driven, upsertion("c")) == [ErrorCode.NONE]


def test_a_key_is_not_shown() -> None:
    driven = DrivenNode()
    alter(driven, upsertion("carol"))
    assert "ScramCredential(...)" in repr(driven.node.scram_credentials.credential("SCRAM-SHA-256", "carol"))
