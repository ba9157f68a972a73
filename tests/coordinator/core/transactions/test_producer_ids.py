"""InitProducerId: every id once, over nodes and restarts."""

from __future__ import annotations

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.coordinator.core.driver import DrivenNode
from tests.coordinator.core.topics.test_topics_log import Member, two

REQUEST = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)


def answer(member: Member, number: int) -> InitProducerIdResponse:
    response = member.replies[number]
    assert isinstance(response, InitProducerIdResponse)
    return response


def producer_id(member: Member) -> int:
    """An id from a node, whose block is stored if it needs one."""
    number = member.ask(REQUEST, 5)
    if member.pending:
        assert number not in member.replies, "a block is taken before its ids are given out"
        member.end_append()
        while member.pending:
            member.end_append()
    return answer(member, number).producer_id


def test_ids_of_two_nodes_do_not_interleave() -> None:
    one, other = two()
    assert [producer_id(one), producer_id(other), producer_id(one), producer_id(other)] == [0, 1_000, 1, 1_001]


def test_the_rest_of_a_block_is_lost_with_its_node() -> None:
    one, _ = two()
    assert producer_id(one) == 0
    again = Member(1, one.topics_log)
    again.read_topics()
    assert producer_id(again) == 1_000


def test_all_that_ask_while_a_block_is_taken_get_an_id_of_it() -> None:
    one, _ = two()
    numbers = [one.ask(REQUEST, 5) for _ in range(3)]
    one.end_append()
    assert [answer(one, number).producer_id for number in numbers] == [0, 1, 2]


def test_no_block_can_be_had() -> None:
    one, _ = two()
    number = one.ask(REQUEST, 5)
    one.end_append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert answer(one, number).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert producer_id(one) == 0


def test_a_block_is_followed_by_the_next() -> None:
    driven = DrivenNode()
    found = [driven.ask(REQUEST, 5).producer_id for _ in range(1_001)]
    assert found == list(range(1_001))


def test_what_cannot_be_answered() -> None:
    driven = DrivenNode()
    half = REQUEST.model_copy(update={"producer_id": 5})
    assert driven.ask(half, 5).error_code is ErrorCode.INVALID_REQUEST
    unnamed = REQUEST.model_copy(update={"transactional_id": ""})
    assert driven.ask(unnamed, 5).error_code is ErrorCode.INVALID_REQUEST
    denied = DrivenNode(emulator_deny=("User:*:IDEMPOTENT_WRITE:cluster=*",))
    assert denied.ask(REQUEST, 5).error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
