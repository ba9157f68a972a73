"""The offsets log has one leader, and memory agrees with it."""

from __future__ import annotations

from collections.abc import Iterator

from rejoin.coordinator.core.groups.classic.state import EMPTY, STABLE
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.search.observations import Observations


def the_log_differs_from_memory(observed: Observations) -> Iterator[str]:
    for node, group in observed.active_groups():
        if not observed.is_quiet(node, group):
            continue
        log = observed.simulation.disk.log(group.partition)
        assert node.core is not None, "only a node that is up serves groups"
        offsets = node.core.describe_offsets(group.group_id, observed.simulation.world.now)
        stored = {(each.topic, each.partition): each.offset for each in offsets}
        written = {
            (key[1], int(key[2])): offsets[-1] for key, offsets in log.newest.items() if key[0] == group.group_id
        }
        if stored != written:
            differ = {key for key in {*stored, *written} if stored.get(key) != written.get(key)}
            yield f"{group.group_id}: offsets of {sorted(differ)}"
        record = log.groups.get(group.group_id)
        if record is None or record.value is None or observed.lost_group_record(group):
            continue
        value = record.value.data
        if group.state is EMPTY and (value.members or value.generation != group.generation):
            yield f"{group.group_id} is Empty in generation {group.generation}, the log has {value.generation}"
        if group.state is STABLE:
            here = {member_id: member.assignment for member_id, member in group.members.items()}
            there = {member.member_id: member.assignment for member in value.members}
            if (group.generation, group.leader, here) != (value.generation, value.leader, there):
                yield f"{group.group_id}: generation {group.generation} against {value.generation}, or its members"


def an_offsets_partition_has_two_leaders(observed: Observations) -> Iterator[str]:
    now = observed.simulation.world.now
    leaders: dict[TopicPartition, str] = {}
    for node in observed.simulation.cluster.nodes:
        holder = node.lease_holder
        if holder is None or node.paused_until > now or (holder.leases.valid_until() or now) <= now:
            continue
        for partition in holder.leases.held:
            if leaders.setdefault(partition, node.name) != node.name:
                yield f"{partition}: both {leaders[partition]} and {node.name}"
