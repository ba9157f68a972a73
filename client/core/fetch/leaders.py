"""Who leads which partition, with the epochs of leaders: what is older than what is known does not count.

Source: Kafka's Metadata (updateLatestMetadata, updatePartitionLeadership).
"""

from __future__ import annotations

from collections.abc import Iterable

from rejoin.client.core import metadata
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.state.fetching import LeaderAndEpoch
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.types import TopicPartition


def leader_of(state: ConsumerState, partition: TopicPartition) -> tuple[Endpoint | None, int]:
    """The node that leads a partition, none while it is not known, and its epoch."""
    leader = state.cluster.leaders.get(partition)
    if leader is None:
        return None, -1
    return state.cluster.nodes.get(leader.node_id), leader.epoch


def learn_leader(state: ConsumerState, partition: TopicPartition, node_id: int, epoch: int) -> None:
    """A node said that another leads; that counts if its epoch is newer."""
    # Kafka: KIP-951.
    known = state.cluster.leaders.get(partition)
    if node_id >= 0 and node_id in state.cluster.nodes and (known is None or epoch > known.epoch):
        state.cluster.leaders[partition] = LeaderAndEpoch(node_id, epoch)


def by_leader(
    state: ConsumerState, ctx: StepContext, partitions: Iterable[TopicPartition]
) -> tuple[dict[Endpoint | None, list[TopicPartition]], list[TopicPartition]]:
    """Partitions by the node to ask about them, and those whose leader is not known yet: an update is asked for.

    Where records are not fetched, any node can answer.
    """
    if not ctx.reads_records:
        return {None: list(partitions)}, []
    led: dict[Endpoint | None, list[TopicPartition]] = {}
    unknown = []
    for partition in partitions:
        node, _ = leader_of(state, partition)
        if node is None:
            unknown.append(partition)
        else:
            led.setdefault(node, []).append(partition)
    if unknown:
        state.cluster.asked_topics |= {topic for topic, _ in unknown}
        metadata.request_update(state)
    return led, unknown
