"""Every request in every state of a group, and every check that comes before a group is looked at.

The matrix is the table that Kafka's coordinator follows. A cell is the answer: ``park`` for none yet, otherwise the
number of the error (0: none); ``>`` is followed by the state after it where that is another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rejoin.coordinator.core.groups.classic.state import GroupState
from rejoin.coordinator.core.inputs import ClusterSeen
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchResponse,
)
from tests.coordinator.core.driver import GROUP, DrivenNode, commit, join
from tests.coordinator.core.group_states import (
    CHANGED,
    FOREIGN,
    Scene,
    bring,
    committing,
    delete_offsets,
    error_of,
    fetch,
    heartbeat,
    leave,
    refusing_node,
    sync,
    txn,
)
from tests.suite.cases import for_each

COLUMNS = ("Empty", "Initial", "Preparing", "LastOne", "Completing", "Stable", "Dead")
"""``Initial``: a group that was Empty prepares. ``Preparing``: others are missing, too. ``LastOne``: no other is."""

MATRIX = """
request                        versions | Empty    Initial  Preparing LastOne  Completing Stable   Dead

join new dynamic               4 9      | 79       79       79        79       79         79       15
join new dynamic               0 3      | park>P   park     park      park     park>P     park>P   15
join with a pending id         4 9      | park>P   park     park      0>C      park>P     park>P   15
join new static                5 9      | park>P   park     park      park     park>P     park>P   15
join static again              5 9      | park>P   park     park      0>C      park>P     0        15
join leader, same              1 9      | 25       park     park      0>C      0          park>P   15
join follower, same            1 9      | 25       park     park      0>C      0          0        15
join follower, changed         1 9      | 25       park     park      0>C      park>P     park>P   15
join unknown id                0 9      | 25       25       25        25       25         25       15
join static, other id          5 9      | 25       82       82        82       82         82       15
join new, other type           0 9      | -        23       23        23       23         23       15
join new, nothing in common    0 9      | -        23       23        23       23         23       15
join new, without protocols    0 9      | 23       23       23        23       23         23       15
join follower, wrong protocols 0 9      | 25       23       23        23       23         23       15

sync leader                    0 5      | 25       27       27        27       0>S        0        15
sync follower                  0 5      | 25       27       27        27       park       0        15
sync other generation          0 5      | 25       22       22        22       22         22       15
sync unknown id                0 5      | 25       25       25        25       25         25       15
sync static, other id          3 5      | 25       82       82        82       82         82       15

heartbeat                      0 4      | 25       27       27        27       0          0        15
heartbeat other generation     0 4      | 25       22       22        22       22         22       15
heartbeat unknown id           0 4      | 25       25       25        25       25         25       15
heartbeat pending id           0 4      | 25       25       25        25       25         25       15
heartbeat static, other id     3 4      | 25       82       82        82       82         82       15

leave                          0 2      | 25       0        0         0>C      0>P        0>P      15
leave                          3 5      | 25       0        0         0>C      0>P        0>P      15
leave pending id               0 5      | 0        0        0         0>C      0>P        0>P      15
leave unknown id               0 5      | 25       25       25        25       25         25       15
leave static, other id         3 5      | 25       82       82        82       82         82       15

commit from outside            0 9      | 0        25       25        25       25         25       15
commit                         1 9      | 25       0        0         0        27         0        15
commit other generation        1 9      | 25       22       22        22       22         22       15
commit without generation      1 9      | 0        22       22        22       22         22       15
commit unknown id              1 9      | 25       25       25        25       25         25       15
commit static, other id        7 9      | 25       82       82        82       82         82       15

txn from outside               0 4      | 0        0        0         0        0          0        15
txn                            3 4      | 25       0        0         0        0          0        15
txn other generation           3 4      | 25       22       22        22       22         22       15
txn unknown id                 3 4      | 25       25       25        25       25         25       15
txn static, other id           3 4      | 25       82       82        82       82         82       15

fetch                          0 9      | 5        5        5         5        5          5        -1
describe                       0 5      | 0        0        0         0        0          0        0
delete group                   0 2      | 0>gone   68       68        68       68         68       69
delete offsets                 0 0      | 0        86       86        86       86         86       69
"""
"""For ``fetch`` the cell is the offset. Where there is a dash, the case does not exist."""

OTHER_GENERATION = 77
SHORT = {"P": "PreparingRebalance", "C": "CompletingRebalance", "S": "Stable", "gone": None}

REQUESTS: dict[str, Callable[[Scene, int], Request]] = {
    "join new dynamic": lambda _, v: join(v),
    "join with a pending id": lambda scene, v: join(v, member_id=scene.pending),
    "join new static": lambda _, v: join(v, group_instance_id="T"),
    "join static again": lambda _, v: join(v, group_instance_id="S"),
    "join leader, same": lambda scene, v: join(v, member_id=scene.leader),
    "join follower, same": lambda scene, v: join(v, member_id=scene.follower),
    "join follower, changed": lambda scene, v: join(v, member_id=scene.follower, protocols=CHANGED),
    "join unknown id": lambda _, v: join(v, member_id="x-9"),
    "join static, other id": lambda _, v: join(v, member_id="x-9", group_instance_id="S"),
    "join new, other type": lambda _, v: join(v, protocol_type="connect"),
    "join new, nothing in common": lambda _, v: join(v, protocols=FOREIGN),
    "join new, without protocols": lambda _, v: join(v, protocols=()),
    "join follower, wrong protocols": lambda scene, v: join(v, member_id=scene.follower, protocols=FOREIGN),
    "sync leader": lambda scene, v: sync(scene, scene.leader, version=v),
    "sync follower": lambda scene, v: sync(scene, scene.follower, version=v),
    "sync other generation": lambda scene, v: sync(scene, scene.leader, generation_id=OTHER_GENERATION, version=v),
    "sync unknown id": lambda scene, v: sync(scene, "x-9", version=v),
    "sync static, other id": lambda scene, v: sync(scene, "x-9", group_instance_id="S", version=v),
    "heartbeat": lambda scene, _: heartbeat(scene, scene.follower),
    "heartbeat other generation": lambda scene, _: heartbeat(scene, scene.follower, generation_id=OTHER_GENERATION),
    "heartbeat unknown id": lambda scene, _: heartbeat(scene, "x-9"),
    "heartbeat pending id": lambda scene, _: heartbeat(scene, scene.pending),
    "heartbeat static, other id": lambda scene, _: heartbeat(scene, "x-9", group_instance_id="S"),
    "leave": lambda scene, v: leave(v, scene.follower),
    "leave pending id": lambda scene, v: leave(v, scene.pending),
    "leave unknown id": lambda _, v: leave(v, "x-9"),
    "leave static, other id": lambda _, v: leave(v, "x-9", "S"),
    "commit from outside": lambda _, __: commit(),
    "commit": lambda scene, _: committing(scene, scene.follower),
    "commit other generation": lambda scene, _: committing(
        scene, scene.follower, generation_id_or_member_epoch=OTHER_GENERATION
    ),
    "commit without generation": lambda scene, _: committing(scene, scene.follower, generation_id_or_member_epoch=-1),
    "commit unknown id": lambda scene, _: committing(scene, "x-9"),
    "commit static, other id": lambda scene, _: committing(scene, "x-9", group_instance_id="S"),
    "txn from outside": lambda _, __: txn(),
    "txn": lambda scene, _: txn(member_id=scene.follower, generation_id_or_member_epoch=scene.generation),
    "txn other generation": lambda scene, _: txn(
        member_id=scene.follower, generation_id_or_member_epoch=OTHER_GENERATION
    ),
    "txn unknown id": lambda scene, _: txn(member_id="x-9", generation_id_or_member_epoch=scene.generation),
    "txn static, other id": lambda scene, _: txn(
        member_id="x-9", group_instance_id="S", generation_id_or_member_epoch=scene.generation
    ),
    "fetch": lambda _, v: fetch(v),
    "describe": lambda _, v: describe(v),
    "delete group": lambda _, __: DeleteGroupsRequest(groups_names=(GROUP,)),
    "delete offsets": lambda _, __: delete_offsets(),
}
"""How each row asks."""

MISSING = {"join leader, same": "leader", "join static again": "static"}
"""Who is the last one missing in ``LastOne``, if it is neither the follower nor a new member."""


def describe(version: int) -> DescribeGroupsRequest:
    if version < 3:
        return DescribeGroupsRequest(groups=(GROUP,))
    return DescribeGroupsRequest(groups=(GROUP,), include_authorized_operations=False)


def outcome(response: Response | None) -> str:
    """What a cell says of the answer."""
    if response is None:
        return "park"
    if isinstance(response, OffsetFetchResponse):
        group: Any = response.groups[0] if response.groups else response
        assert group.error_code is ErrorCode.NONE
        return str(group.topics[0].partitions[0].committed_offset)
    return str(int(error_of(response)))


def cells() -> Iterator[Any]:
    for line in MATRIX.strip().splitlines()[1:]:
        if not line:
            continue
        asked, answers = line.split("|")
        *words, first, last = asked.split()
        for version in sorted({int(first), int(last)}):
            for column, cell in zip(COLUMNS, answers.split(), strict=True):
                if cell != "-":
                    name = " ".join(words)
                    yield name, version, column, cell


def named(cell: tuple[Any, ...]) -> str:
    name, version, state, _ = cell
    return f"{name} v{version}-{state}"


@for_each("name, version, state, cell", cells(), ids=named)
def test_a_request_in_a_state(name: str, version: int, state: str, cell: str) -> None:
    with_pending_id = "pending" in name
    is_new = with_pending_id or " new" in name
    scene = bring(state, "" if is_new else MISSING.get(name, "follower"), with_pending_id)
    before = None if scene.driven.group is None else scene.driven.group.state.value
    answer = scene.driven.ask(REQUESTS[name](scene, version), version)
    expected, moved, state_after = cell.partition(">")
    assert outcome(answer) == expected
    after = None if scene.driven.group is None else scene.driven.group.state.value
    assert after == (SHORT[state_after] if moved else before)


def test_a_static_member_of_a_group_without_members_is_an_error() -> None:
    """It cannot be: an Empty group has no instance ids. Kafka answers with an unknown error, and so it is here."""
    scene = bring("Stable", "", False)
    assert scene.driven.group is not None
    scene.driven.group.state = GroupState.EMPTY
    answer = scene.driven.ask(join(group_instance_id="S"), 9)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")


# --- what comes before a group is looked at

ADMISSION = """
request        versions | inactive no-group loading elsewhere denied

join             0 9    | 15       24       14      16        30
join, bad session 0 9   | 15       24       26      26        30
sync             0 5    | 15       24       27      16        30
sync, no names   5 5    | 23       23       23      23        23
heartbeat        0 4    | 15       24       0       16        30
leave            0 5    | 15       24       14      16        30
commit           0 9    | 3        0        14      16        30
txn              2 5    | 3        24       14      16        30
txn              0 1    | 3        24       15      16        30
fetch            0 9    | 15       0        14      16        30
delete offsets   0 0    | 15       24       14      16        30
describe         0 5    | 15       0        14      16        30
delete group     0 2    | 15       69       14      16        30
list             0 5    | 15       0        14      0         0
"""
"""``no-group``: the empty group id. ``inactive``: the node knows no cluster yet. It has no topics then, so a commit is
not even asked of the coordinator."""

OUTSIDE_REQUESTS: dict[str, Callable[[str, int], Request]] = {
    "join": lambda group_id, v: join(v, group_id=group_id, member_id="m-1"),
    "join, bad session": lambda group_id, v: join(v, group_id=group_id, member_id="m-1", session_timeout_ms=1),
    "sync": lambda group_id, v: bare_sync(group_id, named=v >= 5),
    "sync, no names": lambda group_id, _: bare_sync(group_id, named=False),
    "heartbeat": lambda group_id, _: HeartbeatRequest(group_id=group_id, generation_id=1, member_id="m-1"),
    "leave": lambda group_id, v: leave(v, "m-1").model_copy(update={"group_id": group_id}),
    "commit": lambda group_id, _: commit(group_id=group_id),
    "txn": lambda group_id, _: txn().model_copy(update={"group_id": group_id}),
    "fetch": lambda group_id, v: fetch(v, group_id),
    "delete offsets": lambda group_id, _: delete_offsets(group_id),
    "describe": lambda group_id, v: describe(v).model_copy(update={"groups": (group_id,)}),
    "delete group": lambda group_id, _: DeleteGroupsRequest(groups_names=(group_id,)),
    "list": lambda _, v: ListGroupsRequest(states_filter=(), types_filter=()) if v >= 5 else ListGroupsRequest(),
}


def bare_sync(group_id: str, *, named: bool) -> SyncGroupRequest:
    request = SyncGroupRequest(group_id=group_id, generation_id=1, member_id="m-1", assignments=())
    return request.model_copy(update={"protocol_type": "consumer", "protocol_name": "range"} if named else {})


def admissions() -> Iterator[Any]:
    states = ("inactive", "no-group", "loading", "elsewhere", "denied")
    for line in ADMISSION.strip().splitlines()[1:]:
        if line:
            asked, answers = line.split("|")
            *words, first, last = asked.split()
            for version in sorted({int(first), int(last)}):
                for state, cell in zip(states, answers.split(), strict=True):
                    name = " ".join(words)
                    yield name, version, state, int(cell)


@for_each("name, version, state, error", admissions(), ids=named)
def test_a_request_that_is_not_let_in(name: str, version: int, state: str, error: int) -> None:
    group_id = "" if state == "no-group" else GROUP
    answer = refusing_node(state).ask(OUTSIDE_REQUESTS[name](group_id, version), version)
    assert fetch_error(answer) == error


def fetch_error(response: Response) -> ErrorCode:
    """The error of a response; a fetch has its own for the whole group, in the oldest versions on each partition."""
    if not isinstance(response, OffsetFetchResponse):
        return error_of(response)
    if response.groups:
        return response.groups[0].error_code
    return response.error_code or response.topics[0].partitions[0].error_code


def test_an_inactive_coordinator_refuses_commits() -> None:
    """A node that has topics and loses sight of the cluster."""
    driven = DrivenNode()
    driven.step(ClusterSeen((), {}))
    assert error_of(driven.ask(commit(), 9)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(driven.ask(txn().model_copy(update={"group_id": ""}), 5)) is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("checks", "error"),
    [
        ("denied inactive no-group session loading", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("inactive no-group session", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("no-group session loading", ErrorCode.INVALID_GROUP_ID),
        ("session loading", ErrorCode.INVALID_SESSION_TIMEOUT),
        ("loading", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
    ids=str,
)
def test_the_checks_of_a_join_have_an_order(checks: str, error: ErrorCode) -> None:
    driven = DrivenNode(
        knows_cluster="inactive" not in checks, emulator_deny=("User:*:READ:group=*",) if "denied" in checks else ()
    )
    if "loading" in checks:
        driven.logs.defers_reads = True
        driven.elect()
    request = join(
        group_id="" if "no-group" in checks else GROUP,
        member_id="m-1",
        session_timeout_ms=1 if "session" in checks else 10_000,
    )
    assert driven.ask(request, 9).error_code is error
