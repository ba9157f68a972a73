"""Delegation tokens: kept over restarts, bounded, removed when they have expired, gone with another secret."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import SecretStr

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context, TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.security.delegation_tokens import DelegationTokens
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.delegation_tokens import (
    CreatableRenewer,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from tests.coordinator.core.driver import DrivenNode

SECRET: Final = SecretStr("secret")
ALICE: Final = Context(2, "test", principal="User:alice")
MINUTE: Final = 60_000


def ask(driven: DrivenNode, request: Any, context: Context = ALICE) -> Any:
    token = object()
    driven.request(token, request, context)
    return driven.replies[token]


def create(driven: DrivenNode, lifetime_ms: int = -1, renewers: tuple[str, ...] = ()) -> CreateDelegationTokenResponse:
    principals = tuple([CreatableRenewer(principal_type="User", principal_name=name) for name in renewers])
    answer = ask(driven, CreateDelegationTokenRequest(renewers=principals, max_lifetime_ms=lifetime_ms))
    assert isinstance(answer, CreateDelegationTokenResponse)
    return answer


def ids(driven: DrivenNode) -> list[str]:
    return [token.token_id for token in ask(driven, DescribeDelegationTokenRequest(owners=None)).tokens]


def test_expired_tokens_are_removed_at_intervals_and_no_timer_is_left() -> None:
    driven = DrivenNode(delegation_token_secret_key=SECRET, delegation_token_expiry_check_interval_ms=MINUTE)
    short, long = create(driven, 90_000), create(driven, 5 * MINUTE)
    driven.elapse(119_999)
    assert ids(driven) == [short.token_id, long.token_id], "it has expired, and is there until the next look"
    expired = ask(driven, RenewDelegationTokenRequest(hmac=short.hmac, renew_period_ms=1))
    assert expired.error_code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    driven.elapse(1)
    assert ids(driven) == [long.token_id]
    driven.elapse(3 * MINUTE)
    assert ids(driven) == [long.token_id], "at the instant itself it has not expired"
    driven.elapse(MINUTE)
    assert ids(driven) == []
    due = driven.next_deadline()
    driven.elapse(2 * MINUTE)
    assert due is None or due > driven.now or driven.next_deadline() != due


def test_a_renewed_token_lives_on() -> None:
    driven = DrivenNode(
        delegation_token_secret_key=SECRET,
        delegation_token_expiry_time_ms=MINUTE,
        delegation_token_expiry_check_interval_ms=MINUTE,
        delegation_token_max_lifetime_ms=3 * MINUTE,
    )
    token = create(driven)
    for _ in range(3):
        driven.elapse(MINUTE - 1)
        renewed = ask(driven, RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1))
        assert renewed.expiry_timestamp_ms == min(driven.now + MINUTE, token.max_timestamp_ms)
    driven.elapse(2 * MINUTE)
    assert ids(driven) == []


def test_a_node_that_reads_the_log_knows_the_tokens_with_the_same_secret_alone() -> None:
    driven = DrivenNode(delegation_token_secret_key=SECRET)
    token, gone = create(driven, renewers=("bob",)), create(driven)
    ask(driven, ExpireDelegationTokenRequest(hmac=gone.hmac, expiry_time_period_ms=-1))
    records = driven.node.delegation_tokens.records()
    assert "hmac" not in str(records)
    same = Node(Settings(delegation_token_secret_key=SECRET), str, topics_logged=True)
    same.step(TopicsChanged(((1, records),), 1), 0)
    assert same.delegation_tokens.by_id == driven.node.delegation_tokens.by_id
    found = same.delegation_tokens.with_hmac(token.hmac)
    assert found is not None
    assert found.renewers == ("User:bob",)
    assert same.next_deadline() is not None, "it looks for expired tokens"
    same.step(TopicsChanged((), 2, whole=True), 0)
    assert same.delegation_tokens.by_id == {}
    for secret in ("other", ""):
        other = DelegationTokens(secret)
        for record in records:
            other.replay(record)  # type: ignore[arg-type]
        assert other.with_hmac(token.hmac) is None
        assert other.records() == records, "a node without the secret keeps them for those that have it"


def test_the_keys_of_a_token_go_with_it() -> None:
    driven = DrivenNode(delegation_token_secret_key=SECRET)
    token = create(driven)
    tokens = driven.node.delegation_tokens
    keys = tokens.credential("SCRAM-SHA-256", token.token_id)
    assert keys is not None
    assert keys is tokens.credential("SCRAM-SHA-256", token.token_id)
    assert keys != tokens.credential("SCRAM-SHA-512", token.token_id)
    ask(driven, ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
    assert tokens.credential("SCRAM-SHA-256", token.token_id) is None


def test_their_number_is_bounded() -> None:
    driven = DrivenNode(delegation_token_secret_key=SECRET, emulator_max_delegation_tokens=2)
    first, second = create(driven), create(driven)
    assert create(driven).error_code is ErrorCode.POLICY_VIOLATION
    ask(driven, ExpireDelegationTokenRequest(hmac=first.hmac, expiry_time_period_ms=-1))
    third = create(driven)
    assert ids(driven) == [second.token_id, third.token_id]


@pytest.mark.parametrize("renewers", [("a" * 1_025,), ("bob",) * 101], ids=["long", "many"])
def test_what_is_too_long_is_refused(renewers: tuple[str, ...]) -> None:
    driven = DrivenNode(delegation_token_secret_key=SECRET)
    assert create(driven, renewers=renewers).error_code is ErrorCode.POLICY_VIOLATION
    assert ids(driven) == []


def test_a_principal_by_client_id_may_make_tokens() -> None:
    driven = DrivenNode(delegation_token_secret_key=SECRET, emulator_principals="app=User:alice")
    request = CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1)
    made = ask(driven, request, Context(3, "app"))
    assert (made.error_code, made.principal_name) == (ErrorCode.NONE, "alice")
    refused = ask(driven, request, Context(3, "other"))
    assert refused.error_code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
