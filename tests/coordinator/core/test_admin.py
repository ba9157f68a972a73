"""What an administrator sees: lists, descriptions, rights, and the versions of every request."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.brokers.offered_versions import ADVERTISED_FROM, offered
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.registry import APIS
from tests.coordinator.core.driver import GROUP, DrivenNode, commit, join
from tests.coordinator.core.groups.consumer_node import ConsumerNode


def listed(driven: DrivenNode, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[str]:
    answer = driven.ask(ListGroupsRequest(states_filter=states, types_filter=types), 5)
    return [group.group_id for group in answer.groups]


def described(driven: DrivenNode, *group_ids: str, operations: bool = False) -> Any:
    return driven.ask(DescribeGroupsRequest(groups=group_ids, include_authorized_operations=operations), 5).groups


@pytest.fixture
def driven() -> DrivenNode:
    """A simple group ``g`` and a group ``h`` that prepares."""
    made = DrivenNode()
    made.ask(commit(), 9)
    made.ask(join(3, group_id="h"), 3)
    return made


@pytest.mark.parametrize(
    ("states", "types", "groups"),
    [
        ((), (), ["g", "h"]),
        (("Empty",), (), ["g"]),
        ((" empty ",), (), ["g"]),
        (("PREPARINGREBALANCE",), (), ["h"]),
        (("Empty", "PreparingRebalance"), (), ["g", "h"]),
        (("Stable",), (), []),
        (("",), (), []),
        (("Preparing",), (), []),
        ((), ("classic",), ["g", "h"]),
        ((), ("Classic",), ["g", "h"]),
        ((), (" Classic",), []),
        ((), ("consumer", "classic"), ["g", "h"]),
        ((), ("consumer",), []),
        (("Empty",), ("consumer",), []),
    ],
)
def test_lists_can_be_filtered(
    driven: DrivenNode, states: tuple[str, ...], types: tuple[str, ...], groups: list[str]
) -> None:
    """Case does not matter, nor spaces around a state; unknown words match nothing; both filters must let through."""
    assert listed(driven, states, types) == groups


def test_a_list_names_state_and_type(driven: DrivenNode) -> None:
    simple, joining = driven.ask(ListGroupsRequest(states_filter=(), types_filter=()), 5).groups
    assert (simple.protocol_type, simple.group_state, simple.group_type) == ("", "Empty", "classic")
    assert (joining.protocol_type, joining.group_state, joining.group_type) == (
        "consumer",
        "PreparingRebalance",
        "classic",
    )


@pytest.mark.parametrize(
    ("states", "types", "groups"),
    [
        ((), (), ["g", "h"]),
        ((), ("Consumer",), ["g"]),
        ((), ("classic",), ["h"]),
        (("reconciling",), (), ["g"]),
        (("Reconciling",), ("classic",), []),
        (("Stable", "Empty"), (), ["h"]),
    ],
)
def test_consumer_groups_are_listed_by_state_and_type(
    states: tuple[str, ...], types: tuple[str, ...], groups: list[str]
) -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("b", 0)
    node.ask(commit(group_id="h"), 9)
    assert listed(node, states, types) == groups
    by_state = node.ask(ListGroupsRequest(states_filter=states), 4).groups
    assert [each.group_id for each in by_state] == listed(node, states)
    (found,) = node.ask(ListGroupsRequest(states_filter=(), types_filter=("consumer",)), 5).groups
    assert (found.protocol_type, found.group_state, found.group_type) == ("consumer", "Reconciling", "consumer")


def test_who_may_describe_the_cluster_sees_every_group() -> None:
    hidden = "User:*:DESCRIBE:group=g"
    driven = DrivenNode(emulator_deny=(hidden,))
    driven.ask(commit(), 9)
    assert listed(driven) == ["g"]
    driven = DrivenNode(emulator_deny=(hidden, "User:*:DESCRIBE:cluster=kafka-cluster"))
    driven.ask(commit(), 9)
    assert listed(driven) == []


def test_a_description_names_the_client() -> None:
    driven = DrivenNode()
    driven.joins(join(group_instance_id="i"))
    driven.elapse(3_000)
    (group,) = described(driven, GROUP)
    (member,) = group.members
    assert (member.client_id, member.client_host, member.group_instance_id) == ("client", "/127.0.0.1", "i")
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("CompletingRebalance", "consumer", "")


def test_each_group_of_a_description_stands_for_itself() -> None:
    driven = DrivenNode(emulator_deny=("User:*:DESCRIBE:group=secret",))
    driven.ask(commit(), 9)
    answers = described(driven, "secret", GROUP, "nobody", GROUP)
    assert [(group.group_id, group.error_code, group.group_state) for group in answers] == [
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED, ""),
        (GROUP, ErrorCode.NONE, "Empty"),
        ("nobody", ErrorCode.NONE, "Dead"),
        (GROUP, ErrorCode.NONE, "Empty"),
    ]


READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = (1 << bit for bit in (3, 6, 8, 10, 11))


@pytest.mark.parametrize(
    ("denied", "operations"),
    [
        ((), READ | DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS),
        (("User:*:READ:group=g",), DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS),
        (("User:*:READ:group=x", "User:*:DELETE:group=g"), READ | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS),
    ],
)
def test_a_description_has_the_authorized_operations(denied: tuple[str, ...], operations: int) -> None:
    """Only if asked; one bit for each operation, by its number (KIP-430)."""
    driven = DrivenNode(emulator_deny=denied)
    driven.ask(commit(), 9)
    assert described(driven, GROUP, operations=True)[0].authorized_operations == operations
    assert described(driven, GROUP)[0].authorized_operations == -(2**31)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_every_request_is_announced_with_its_versions(version: int) -> None:
    named = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = DrivenNode().ask(named if version >= 3 else ApiVersionsRequest(), version)
    assert answer.error_code is ErrorCode.NONE
    assert [(key.api_key, key.min_version, key.max_version) for key in answer.api_keys] == [
        (key, ADVERTISED_FROM.get(key, first), last) for key, (first, last) in offered().items()
    ]
    assert [key.api_key for key in answer.api_keys] == [api.key for api in APIS]
