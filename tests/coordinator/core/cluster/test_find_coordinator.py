"""FindCoordinator: which node to ask about a group, in every version, with every error."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Broker, ClusterSeen
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from tests.coordinator.core.driver import Driver

NODES = (Broker(1, "node-1", 9095), Broker(2, "node-2", 9096))
GROUP, TRANSACTION, SHARE = 0, 1, 2


def cluster(leaders: dict[int, int] | None = None, brokers: tuple[Broker, ...] = NODES, **settings: Any) -> Driver:
    """Node 1 of two. Partitions are led in turn, unless ``leaders`` says otherwise."""
    node = Driver(Node(Settings(**settings), lambda: "id"))
    if leaders is None:
        leaders = {number: 1 + number % 2 for number in range(50)}
    node.step(ClusterSeen(brokers, {offsets_partition(number): leader for number, leader in leaders.items()}))
    return node


def ask(node: Driver, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    request.check_version(version)
    node.receive("token", request, version)
    response = node.replies.pop("token")
    assert isinstance(response, FindCoordinatorResponse)
    return response


def find(node: Driver, key: str, version: int, key_type: int = GROUP) -> tuple[ErrorCode, int, str, int]:
    """Error, node id, host and port for one key, in a version of either kind."""
    if version >= 4:
        answer = ask(node, FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type), version)
        (one,) = answer.coordinators
        said = "INVALID_REQUEST" if one.error_code is ErrorCode.INVALID_REQUEST else ""
        assert (one.key, one.error_message) == (key, said)
        return one.error_code, one.node_id, one.host, one.port
    answer = ask(node, FindCoordinatorRequest(key=key, key_type=key_type), version)
    assert answer.coordinators == ()
    return answer.error_code, answer.node_id, answer.host, answer.port


def no_node(error: ErrorCode) -> tuple[ErrorCode, int, str, int]:
    return error, -1, "", -1


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize(("key", "node_id"), [("orders", 2), ("my-group", 1), ("", 1)])
def test_the_leader_of_the_partition_coordinates(version: int, key: str, node_id: int) -> None:
    """The key may be anything: whether a group may have the empty id is not looked at here."""
    assert partition_for(key, 50) % 2 == node_id - 1
    assert find(cluster(), key, version) == (ErrorCode.NONE, node_id, f"node-{node_id}", 9094 + node_id)


@pytest.mark.parametrize("version", [1, 3, 4, 6])
def test_transactional_ids_are_looked_up_alike(version: int) -> None:
    assert find(cluster(), "orders", version, TRANSACTION) == (ErrorCode.NONE, 2, "node-2", 9096)


def test_each_key_of_a_batch_stands_for_itself() -> None:
    node = cluster({partition_for("orders", 50): 2}, emulator_deny=("User:*:DESCRIBE:group=secret",))
    answer = ask(node, FindCoordinatorRequest(coordinator_keys=("orders", "secret", "my-group", "orders")), 4)
    assert [(one.key, one.error_code, one.node_id) for one in answer.coordinators] == [
        ("orders", ErrorCode.NONE, 2),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED, -1),
        ("my-group", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1),
        ("orders", ErrorCode.NONE, 2),
    ]


def test_a_batch_may_be_empty() -> None:
    assert ask(cluster(), FindCoordinatorRequest(coordinator_keys=()), 4).coordinators == ()


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_without_a_leader_there_is_no_coordinator(version: int) -> None:
    assert find(cluster({}), "orders", version) == no_node(ErrorCode.COORDINATOR_NOT_AVAILABLE)


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_a_leader_that_is_not_alive_is_none(version: int) -> None:
    node = cluster(brokers=NODES[:1])
    assert find(node, "orders", version) == no_node(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert find(node, "my-group", version)[0] is ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 4])
def test_before_the_cluster_is_known_there_is_no_coordinator(version: int) -> None:
    assert find(Driver(Node(Settings(), lambda: "id")), "orders", version) == no_node(
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    )


@pytest.mark.parametrize(
    ("version", "key_type"), [(1, SHARE), (4, SHARE), (5, SHARE), (1, 3), (6, 3), (6, -1), (6, 127)]
)
def test_other_key_types_are_invalid(version: int, key_type: int) -> None:
    assert find(cluster(), "orders", version, key_type) == no_node(ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_a_client_that_may_not_see_the_group_gets_no_coordinator(version: int) -> None:
    node = cluster(emulator_deny=("User:*:DESCRIBE:group=secret*", "User:*:DESCRIBE:transactional-id=x"))
    assert find(node, "secret-1", version) == no_node(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert find(node, "x", version)[0] is ErrorCode.NONE


@pytest.mark.parametrize("version", [1, 4])
def test_a_client_that_may_not_see_the_transaction_gets_no_coordinator(version: int) -> None:
    node = cluster(emulator_deny=("User:*:DESCRIBE:transactional-id=x",))
    assert find(node, "x", version, TRANSACTION) == no_node(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def test_the_number_of_partitions_decides() -> None:
    """It is fixed when the offsets topic is made; another number is another mapping."""
    node = cluster({0: 1, 1: 2}, offsets_topic_num_partitions=2)
    assert partition_for("payments", 2) == 1
    assert find(node, "payments", 6)[1] == 2


def test_the_message_comes_with_v1_and_goes_with_v4() -> None:
    node = cluster({})
    single = ask(node, FindCoordinatorRequest(key="orders"), 1)
    assert single.error_message == "COORDINATOR_NOT_AVAILABLE"
    assert b"errorMessage" not in single.to_json(0)
    assert b"errorMessage" in single.to_json(1)
    assert b"throttleTimeMs" not in single.to_json(0)
    batch = ask(node, FindCoordinatorRequest(coordinator_keys=("orders",)), 4).to_json(4)
    assert b'"nodeId":-1,"host":"","port":-1' in batch
    assert batch.count(b"errorCode") == 1, "the answer itself has no error any more"
