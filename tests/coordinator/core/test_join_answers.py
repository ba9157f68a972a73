"""What a JoinGroup is answered, version by version: refusals, generations, returning static members."""

from __future__ import annotations

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from tests.coordinator.core.driver import GROUP, DrivenNode, join
from tests.coordinator.core.group_states import (
    CHANGED,
    FOREIGN,
    Scene,
    bring,
    leave,
    refusing_node,
    sync,
)

ECHOES = """
the request's own id    | inactive no-group session
an empty id             | loading elsewhere denied
"""


@pytest.mark.parametrize("version", [0, 6, 7, 9])
@pytest.mark.parametrize(
    ("state", "echoed"),
    [(state, "own" in line) for line in ECHOES.strip().splitlines() for state in line.split("|")[1].split()],
)
def test_a_join_that_is_not_let_in_says_nothing_of_a_generation(state: str, echoed: bool, version: int) -> None:
    request = join(
        version,
        group_id="" if state == "no-group" else GROUP,
        member_id="m-1",
        session_timeout_ms=1 if state == "session" else 10_000,
    )
    check_refusal(refusing_node(state).ask(request, version), "m-1" if echoed else "", version)


def check_refusal(answer: JoinGroupResponse, member_id: str, version: int) -> None:
    """What all refusals have in common; before v7 a protocol name cannot be null."""
    assert answer.error_code is not ErrorCode.NONE
    assert answer.generation_id == -1
    assert answer.leader == ""
    assert answer.members == ()
    assert answer.protocol_type is None
    assert answer.protocol_name == (None if version >= 7 else "")
    assert answer.skip_assignment is False
    assert answer.member_id == member_id


@pytest.mark.parametrize("version", [5, 6, 7, 9])
def test_a_join_that_a_group_refuses_says_nothing_of_a_generation(version: int) -> None:
    scene = bring("Stable", "", True)
    driven = scene.driven
    refused = [
        (join(member_id="x-9"), "x-9"),
        (join(member_id="x-9", protocols=FOREIGN), "x-9"),
        (join(protocols=FOREIGN), ""),
        (join(member_id=scene.leader, group_instance_id="S"), scene.leader),
        (join(member_id=scene.leader, group_instance_id="T"), scene.leader),
        (join(member_id=scene.pending, group_instance_id="T"), ""),
    ]
    for request, member_id in refused:
        check_refusal(driven.ask(request, version), member_id, version)


@pytest.mark.parametrize("version", [6, 7])
def test_a_parked_join_of_a_removed_member_is_refused_without_an_id(version: int) -> None:
    scene = bring("Stable", "", False)
    number = scene.driven.send(join(member_id=scene.follower, protocols=CHANGED), version)
    scene.driven.send(leave(5, scene.follower), 5)
    answer = scene.driven.replies[number]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID
    check_refusal(answer, "", version)


@pytest.mark.parametrize("version", [3, 4, 9])
def test_a_full_group_refuses_without_an_id(version: int) -> None:
    driven = DrivenNode(group_max_size=1)
    driven.joins(join())
    answer = driven.ask(join(version, member_id="" if version < 4 else "x-9"), version)
    assert answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    check_refusal(answer, "", version)


@pytest.mark.parametrize("version", [0, 3, 4, 6, 7, 9])
def test_a_join_that_succeeds_has_the_generation(version: int) -> None:
    driven = DrivenNode()
    number = driven.send(join(version), version)
    if version >= 4:
        refused = driven.replies[number]
        assert isinstance(refused, JoinGroupResponse)
        number = driven.send(join(version, member_id=refused.member_id), version)
    driven.elapse(3_000)
    answer = driven.replies[number]
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert answer.leader == answer.member_id
    assert [member.member_id for member in answer.members] == [answer.member_id]
    assert (b"protocolType" in answer.to_json(version)) == (version >= 7)


@pytest.mark.parametrize(("version", "skips"), [(5, False), (8, False), (9, True)])
def test_a_returning_static_leader(version: int, skips: bool) -> None:
    """Before v9 its old id is given as the leader, so that it does not assign; from v9 on it is asked not to."""
    driven = DrivenNode()
    old_id = driven.joins(join(group_instance_id="S"))
    driven.elapse(3_000)
    scene = Scene(driven, leader=old_id)
    driven.send(sync(scene, old_id), 5)
    answer = driven.ask(join(version, group_instance_id="S"), version)
    assert answer.error_code is ErrorCode.NONE
    assert answer.member_id != old_id
    assert answer.leader == (answer.member_id if skips else old_id)
    assert answer.skip_assignment is skips
    assert len(answer.members) == (1 if skips else 0)


@pytest.mark.parametrize("version", [6, 7, 9])
def test_a_static_replacement_that_cannot_be_stored(version: int) -> None:
    """It has the current generation and the leader of before, but no member id: there is none."""
    scene = bring("Stable", "", False)
    scene.driven.logs.defers_appends = True
    number = scene.driven.send(join(version, group_instance_id="S"), version)
    scene.driven.logs.end_append(ErrorCode.KAFKA_STORAGE_ERROR)
    answer = scene.driven.replies[number]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert (answer.generation_id, answer.member_id, answer.leader) == (1, "", scene.leader)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert scene.driven.group is not None
    assert scene.static in scene.driven.group.members


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_new_group_is_described_once_its_first_join_is_answered(brokers: int) -> None:
    """On a broker alone; with followers Kafka answers MEMBER_ID_REQUIRED before the group is committed, too."""
    driven = DrivenNode(topics_logged=True)
    driven.see_cluster(brokers)
    driven.logs.defers_appends = True
    number = driven.send(join(9), 9)
    assert (number in driven.replies) == (brokers > 1)
    assert described(driven) == "Dead"
    driven.logs.end_append()
    answer = driven.replies[number]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert described(driven) == "Empty"


def described(driven: DrivenNode) -> str:
    answer = driven.ask(DescribeGroupsRequest(groups=("g",), include_authorized_operations=False), 5)
    assert isinstance(answer, DescribeGroupsResponse)
    return answer.groups[0].group_state
