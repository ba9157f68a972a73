"""Views of the cluster: ``GET /cluster``, and the readiness of this node."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.core.runtime.shards import CLUSTER_ID
from rejoin.coordinator.service.driver import Runtime
from rejoin.coordinator.service.http.problems import Problem
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition


def cluster(runtime: Runtime, store: str) -> dict[str, Any]:
    """Nodes, leases, epochs and load times: this node's partitions as they are now, others from the last view.

    Times are ms. ``loadMs`` counts from when a partition was taken, so it includes waiting behind others that were
    taken with it. That of another node's partition is what it reported when it last renewed its lease.
    """
    leadership = runtime.leadership
    described = runtime.node.describe()
    own = {TopicPartition(each.topic, each.partition): each for each in described.partitions}
    view = leadership.view()
    leaders = runtime.node.leaders
    partitions = []
    for index in range(runtime.node.settings.offsets_topic_num_partitions):
        partition = offsets_partition(index)
        lease = view.by_partition.get(partition)
        mine = own.get(partition)
        leader = leaders.get(partition)
        if mine is not None:
            state, epoch, load_ms = mine.state.lower(), mine.epoch, runtime.load_ms.get(partition)
        else:
            state = "free" if leader is None else "elsewhere"
            epoch = lease.epoch if lease is not None else -1
            load_ms = lease.load_ms if lease is not None and leader is not None else None
        expires = None
        if lease is not None and lease.ms_left is not None and leadership.lease_ms is not None:
            expires = max(0, lease.ms_left)
        partitions.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "leader": leader,
                "epoch": epoch,
                "state": state,
                "groups": mine.groups if mine is not None else None,
                "loadMs": load_ms,
                "leaseMsLeft": expires,
            }
        )
    nodes = [
        {
            "nodeId": node.node_id,
            "host": node.host,
            "port": node.port,
            "listeners": {each.listener: each.address for each in node.broker.endpoints},
            "alive": node.is_alive,
            "leads": sum(leader == node.node_id for leader in leaders.values()),
        }
        for node in view.nodes
    ]
    return {
        "clusterId": CLUSTER_ID,
        "nodeId": described.node_id,
        "store": store,
        "leaseMs": leadership.lease_ms,
        "nodes": nodes,
        "partitions": partitions,
        "counts": dict(leadership.counts),
    }


def readiness(runtime: Runtime, *, is_starting: bool = False, disk_problem: str = "") -> tuple[bool, dict[str, Any]]:
    """Whether this node is ready for requests, and the reason if not.

    A partition whose log is damaged is named. It does not make the node unready: all others are served.
    """
    node = runtime.node.describe()
    states = [partition.state.lower() for partition in node.partitions]
    counts = {state: states.count(state) for state in sorted(set(states))}
    problem = runtime.leadership.problem()
    if not problem and not node.brokers:
        problem = "not part of the cluster yet"
    if not problem and is_starting:
        problem = "starting"
    if not problem and any(state != "active" for state in states):
        problem = "loading"
    if not problem:
        problem = disk_problem
    body = {
        "status": "ready" if not problem else "not-ready",
        "nodeId": node.node_id,
        "partitions": counts,
        "damagedPartitions": [str(partition) for partition in runtime.node.damaged_partitions()],
    }
    return not problem, {**body, "problem": problem} if problem else body


def resign(runtime: Runtime, partition: int) -> dict[str, Any]:
    """Hand a partition to another node. A single node loads it again from the log, in a new epoch."""
    count = runtime.node.settings.offsets_topic_num_partitions
    if not 0 <= partition < count:
        raise Problem(404, "unknown-partition", f"there is no offsets partition {partition}; expected 0 to {count - 1}")
    led = offsets_partition(partition)
    if not runtime.resign(led):
        leader = runtime.node.leaders.get(led)
        where = "the partition has no leader now" if leader is None else f"node {leader} does; ask that node"
        raise Problem(409, "not-leading", f"this node does not lead offsets partition {partition}: {where}")
    alone = runtime.leadership.lease_ms is None and runtime.elect(led)
    return {"topic": led.topic, "partition": partition, "leading": alone}
