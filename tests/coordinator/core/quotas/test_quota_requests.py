"""Quotas are kept by records of the topics log, and their number is bounded."""

from __future__ import annotations

from rejoin.coordinator.core.inputs import TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    QuotaAlteration,
    QuotaEntityData,
    QuotaOperation,
)
from tests.coordinator.core.driver import DrivenNode


def alter(driven: DrivenNode, kind: str, name: str | None, **limits: float | None) -> ErrorCode:
    """Set limits of an entity of one type, and remove those that are none."""
    ops = tuple(
        QuotaOperation(key=key, value=0.0 if value is None else value, remove=value is None)
        for key, value in limits.items()
    )
    entry = QuotaAlteration(entity=(QuotaEntityData(entity_type=kind, entity_name=name),), ops=ops)
    answer = driven.ask(AlterClientQuotasRequest(entries=(entry,), validate_only=False), 1)
    found: ErrorCode = answer.entries[0].error_code
    return found


def described(driven: DrivenNode) -> dict[tuple[str, str | None], dict[str, float]]:
    """Every entity with its limits."""
    answer = driven.ask(DescribeClientQuotasRequest(components=(), strict=False), 1)
    return {
        (part.entity_type, part.entity_name): {each.key: each.value for each in entry.values}
        for entry in answer.entries
        for part in entry.entity
    }


def test_quotas_are_read_from_the_log_again() -> None:
    driven = DrivenNode()
    assert alter(driven, "user", "alice", producer_byte_rate=1_000.0, request_percentage=0.5) is ErrorCode.NONE
    assert alter(driven, "user", None, consumer_byte_rate=7.0) is ErrorCode.NONE
    assert alter(driven, "user", "alice", request_percentage=None) is ErrorCode.NONE
    kept = {("user", "alice"): {"producer_byte_rate": 1_000.0}, ("user", None): {"consumer_byte_rate": 7.0}}
    assert described(driven) == kept
    records = driven.node.topics_records()
    driven.node = Node(driven.node.settings, driven._new_id)
    driven.see_cluster()
    assert described(driven) == {}
    driven.step(TopicsChanged(((1, records),), 1, whole=True))
    assert described(driven) == kept
    driven.step(TopicsChanged(((2, ()),), 2, whole=True))
    assert described(driven) == {}


def test_the_number_of_entities_is_bounded_and_the_length_of_their_names() -> None:
    driven = DrivenNode(emulator_max_client_quotas=1)
    assert alter(driven, "user", "alice", producer_byte_rate=1.0) is ErrorCode.NONE
    assert alter(driven, "user", "bob", producer_byte_rate=1.0) is ErrorCode.POLICY_VIOLATION
    assert alter(driven, "user", "bob", producer_byte_rate=None) is ErrorCode.NONE
    assert alter(driven, "user", "alice", consumer_byte_rate=1.0) is ErrorCode.NONE
    assert alter(driven, "user", "x" * 1_025, producer_byte_rate=1.0) is ErrorCode.INVALID_REQUEST
    assert list(described(driven)) == [("user", "alice")]
