"""A client whose requests must be refused: late, mistaken or invented, as processes from before send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.client.core.consumer import ConsumerCore
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.coordinator.core.snapshots import ConsumerGroupSnapshot
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange

if TYPE_CHECKING:
    from rejoin.simulation.actors.consumer_process import ConsumerProcess
    from rejoin.simulation.actors.node import NodeActor
    from rejoin.simulation.simulation import Simulation


class MisbehavingClient:
    """Sends requests with a member's id and an old generation, or with an id that no member has."""

    def __init__(self, simulation: Simulation, every_ms: Millis, until: Millis) -> None:
        self.simulation = simulation
        self.every_ms = every_ms
        self.until = until
        self.random = simulation.world.new_random()
        simulation.world.control(every_ms, self._ask)

    def _ask(self, _: object) -> None:
        world = self.simulation.world
        for group_id in self.simulation.scenario.groups:
            consumers = [each for each in self.simulation.consumers.values() if each.core is not None]
            node = self.simulation.cluster.leader_of(group_id)
            if not consumers or node is None or not node.is_up:
                continue
            asked = self._ask_group(node, group_id)
            if asked is not None:
                request, version = asked
                exchange = voided(consumers[0], node.index, request, version, world.now)
                node.hand_in(Received(exchange, request, Context(version, "misbehaving")))
        if world.now < self.until:
            world.control(world.now + self.every_ms, self._ask)

    def _ask_group(self, node: NodeActor, group_id: str) -> tuple[Request, int] | None:
        """Requests for an existing group."""
        group, modern = node.group(group_id), node.consumer_group(group_id)
        if group is not None and group.members:
            member_id = self.random.choice([*group.members, "unknown-1"])
            member = group.members.get(member_id)
            generation = group.generation - (1 if member is not None else 0)
            instance_id = None if member is None else member.group_instance_id
            return self._request(group_id, member_id, instance_id, generation)
        if modern is not None and modern.members:
            return self._modern_request(modern)
        return None

    def _modern_request(self, group: ConsumerGroupSnapshot) -> tuple[Request, int]:
        """With an epoch that the member does not have, or with an id that no member has."""
        member_id = self.random.choice([*group.members, *group.members, "unknown-1"])
        member = group.members.get(member_id)
        epoch = max(1, (7 if member is None else member.epoch) + self.random.choice((-1, 1, 3)))
        instance_id = None if member is None else member.group_instance_id
        if member is not None and epoch == member.epoch:
            epoch += 1
        if self.random.random() < 0.5:
            heartbeat = ConsumerGroupHeartbeatRequest(
                group_id=group.group_id, member_id=member_id, member_epoch=epoch, instance_id=instance_id
            )
            return heartbeat, 1
        return self._commit(group.group_id, member_id, instance_id, epoch), 9

    def _request(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> tuple[Request, int]:
        kind = self.random.randrange(3)
        if kind == 0:
            return HeartbeatRequest(
                group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance_id
            ), 4
        if kind == 1:
            return SyncGroupRequest(
                group_id=group_id,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance_id,
                protocol_type="consumer",
                protocol_name=None,
                assignments=(),
            ), 4
        return self._commit(group_id, member_id, instance_id, generation), 8

    def _commit(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> OffsetCommitRequest:
        return _commit_of(self.simulation, group_id, member_id, instance_id, generation)


def _commit_of(
    simulation: Simulation, group_id: str, member_id: str, instance_id: str | None, generation: int
) -> OffsetCommitRequest:
    topic = simulation.scenario.topics_of(group_id)[0]
    entry = OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(entry,)),),
    )


def send_stale_heartbeat(simulation: Simulation, consumer: ConsumerProcess) -> None:
    """Send a heartbeat with the id of a consumer's member and an epoch that it does not have."""
    consumer.catch_up()
    core = consumer.core
    group_id = consumer.config.group_id or ""
    node = simulation.cluster.leader_of(group_id)
    if not isinstance(core, ConsumerCore) or not core.generation.member_id or node is None or not node.is_up:
        return
    member_id, instance_id = core.generation.member_id, consumer.config.group_instance_id
    epoch = core.generation.generation_id - 1 or 2
    request: Request
    if node.consumer_group(group_id) is not None:
        request, version = (
            ConsumerGroupHeartbeatRequest(
                group_id=group_id, member_id=member_id, member_epoch=epoch, instance_id=instance_id
            ),
            1,
        )
    else:
        request, version = (
            HeartbeatRequest(
                group_id=group_id, generation_id=epoch, member_id=member_id, group_instance_id=instance_id
            ),
            4,
        )
    exchange = voided(consumer, node.index, request, version, simulation.world.now)
    node.hand_in(Received(exchange, request, Context(version, "misbehaving")))


def commit_from_outside(simulation: Simulation, group_id: str) -> None:
    """Commit under a group's id without being its member, as a consumer with assign() does."""
    node = simulation.cluster.leader_of(group_id)
    consumers = [each for each in simulation.consumers.values() if each.config.group_id == group_id]
    if not consumers or node is None or not node.is_up:
        return
    request = _commit_of(simulation, group_id, "", None, -1)
    exchange = voided(consumers[0], node.index, request, 8, simulation.world.now)
    node.hand_in(Received(exchange, request, Context(8, "misbehaving")))


def voided(client: ConsumerProcess, node: int, request: Request, version: int, now: Millis) -> Exchange:
    """A token whose response is dropped."""
    return Exchange(client.connection_to(node, 1), -1, -1, request, version, now, now)
