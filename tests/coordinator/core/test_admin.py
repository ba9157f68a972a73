"""What an administrator sees: lists, descriptions, rights, and the versions of every request."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.registry import APIS
from tests.coordinator.core.desk import GROUP, Desk, commit, join


def listed(desk: Desk, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[str]:
    answer = desk.ask(ListGroupsRequest(states_filter=states, types_filter=types), 5)
    return [group.group_id for group in answer.groups]


def described(desk: Desk, *group_ids: str, operations: bool = False) -> Any:
    return desk.ask(DescribeGroupsRequest(groups=group_ids, include_authorized_operations=operations), 5).groups


@pytest.fixture
def desk() -> Desk:
    """A simple group ``g`` and a group ``h`` that prepares."""
    made = Desk()
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
def test_lists_can_be_filtered(desk: Desk, states: tuple[str, ...], types: tuple[str, ...], groups: list[str]) -> None:
    """Case does not matter, nor spaces around a state; unknown words match nothing; both filters must let through."""
    assert listed(desk, states, types) == groups


def test_a_list_names_state_and_type(desk: Desk) -> None:
    simple, joining = desk.ask(ListGroupsRequest(states_filter=(), types_filter=()), 5).groups
    assert (simple.protocol_type, simple.group_state, simple.group_type) == ("", "Empty", "classic")
    assert (joining.protocol_type, joining.group_state, joining.group_type) == (
        "consumer",
        "PreparingRebalance",
        "classic",
    )


def test_who_may_describe_the_cluster_sees_every_group() -> None:
    hidden = "User:*:DESCRIBE:group=g"
    desk = Desk(emulator_deny=(hidden,))
    desk.ask(commit(), 9)
    assert listed(desk) == ["g"]
    desk = Desk(emulator_deny=(hidden, "User:*:DESCRIBE:cluster=kafka-cluster"))
    desk.ask(commit(), 9)
    assert listed(desk) == []


def test_a_description_names_the_client() -> None:
    desk = Desk()
    desk.joins(join(group_instance_id="i"))
    desk.elapse(3_000)
    (group,) = described(desk, GROUP)
    (member,) = group.members
    assert (member.client_id, member.client_host, member.group_instance_id) == ("client", "/127.0.0.1", "i")
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("CompletingRebalance", "consumer", "")


def test_each_group_of_a_description_stands_for_itself() -> None:
    desk = Desk(emulator_deny=("User:*:DESCRIBE:group=secret",))
    desk.ask(commit(), 9)
    answers = described(desk, "secret", GROUP, "nobody", GROUP)
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
def test_a_description_tells_what_one_may_do(denied: tuple[str, ...], operations: int) -> None:
    """Only if asked; one bit for each operation, by its number (KIP-430)."""
    desk = Desk(emulator_deny=denied)
    desk.ask(commit(), 9)
    assert described(desk, GROUP, operations=True)[0].authorized_operations == operations
    assert described(desk, GROUP)[0].authorized_operations == -(2**31)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_every_request_is_announced_with_its_versions(version: int) -> None:
    names = {"client_software_name": "test", "client_software_version": "1"} if version >= 3 else {}
    answer = Desk().ask(ApiVersionsRequest(**names), version)
    assert answer.error_code is ErrorCode.NONE
    assert [(key.api_key, key.min_version, key.max_version) for key in answer.api_keys] == [
        (api.key, api.min_version, api.max_version) for api in APIS
    ]
