"""Actions of ``rejoin reassign``, one function each."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from rejoin.client.admin.admin import Admin
from rejoin.client.admin.asking import Outcomes
from rejoin.client.admin.configs import ConfigResource
from rejoin.client.commands.replicas.files import (
    ANY_DIRECTORY,
    VERSION,
    check_once,
    new_replicas,
    replicas_of,
    topics_to_move,
)
from rejoin.client.commands.replicas.placement import spread
from rejoin.client.commands.tools.connecting import ToolRefusal, runs
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import CodedError
from rejoin.output import print_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.types import TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

_EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
_MUST_VERIFY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


class TerseRefusal(ToolRefusal):
    """A refusal that the tool prints as it is."""


class _Move(NamedTuple):
    """The brokers that a partition is copied from, and those that get it."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]


async def generate(admin: Admin, options: argparse.Namespace) -> None:
    """``--generate``."""
    check_once(options.brokers, "Broker list")
    cluster = await admin.cluster(topics_to_move(options.topics_to_move_json_file))
    now = _replicas(cluster)
    racks = {
        each.node_id: None if options.disable_rack_aware else each.rack
        for each in cluster.brokers
        if each.node_id in options.brokers
    }
    if None in racks.values() and any(racks.values()):
        remedy = "Add --disable-rack-aware in command line to make replica assignment without rack information."
        raise ToolRefusal(f"Not all brokers have rack information. {remedy}")
    draw = random.Random()
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in sorted({partition.topic for partition in now}):
        indexes = sorted(partition.partition for partition in now if partition.topic == topic)
        factor = len(now[TopicPartition(topic, indexes[0])])
        found = spread(racks, len(indexes), factor, draw)
        proposed |= {TopicPartition(topic, index): found[at] for at, index in enumerate(indexes)}
    print_text(f"Current partition replica assignment\n{_json(now)}\n")
    print_text(f"Proposed partition reassignment configuration\n{_json(proposed)}")


async def execute(admin: Admin, options: argparse.Namespace) -> None:
    """``--execute``."""
    wanted = new_replicas(options.reassignment_json_file)
    ongoing = await admin.list_partition_reassignments()
    if ongoing and not options.additional:
        raise TerseRefusal(_EXISTING)
    cluster = await admin.cluster({partition.topic for partition in wanted})
    known = {each.node_id for each in cluster.brokers}
    for broker in sorted({each for replicas in wanted.values() for each in replicas}):
        if broker not in known:
            raise ToolRefusal(f"Unknown broker id {broker}")
    now = {partition: replicas for partition, replicas in _replicas(cluster).items() if partition in wanted}
    if missing := sorted(wanted.keys() - now.keys()):
        text = f"Unable to find partition: {', '.join(map(str, missing))}"
        raise CodedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    print_text(f"Current partition replica assignment\n\n{_json(now)}\n")
    print_text("Save this to use as the --reassignment-json-file option during rollback")
    moves = {
        partition: _Move(tuple(each for each in going.replicas if each not in going.adding), going.adding)
        for partition, going in ongoing.items()
    }
    for partition, replicas in wanted.items():
        sources = moves[partition].sources if partition in moves else now[partition]
        moves[partition] = _Move(sources, tuple(each for each in replicas if each not in sources))
    await _throttle(admin, options, cluster, moves)
    _raise_errors("Error reassigning partition(s)", await admin.alter_partition_reassignments(wanted))
    print_text(f"Successfully started partition reassignment{_s(wanted)} for {_names(wanted)}")


async def verify(admin: Admin, options: argparse.Namespace) -> None:
    """``--verify``."""
    wanted = replicas_of(options.reassignment_json_file)
    ongoing = await admin.list_partition_reassignments()
    cluster = await admin.cluster({partition.topic for partition, _ in wanted if partition not in ongoing})
    now = _replicas(cluster, unknown_is_empty=True)
    print_text("Status of partition reassignment:")
    for partition, replicas in sorted(dict(wanted).items()):
        there = now.get(partition, ())
        if partition in ongoing:
            print_text(f"Reassignment of partition {partition} is still in progress.")
        elif there == replicas:
            print_text(f"Reassignment of partition {partition} is completed.")
        else:
            sets = f"replica set is {_numbers(there)} rather than {_numbers(replicas)}"
            print_text(f"There is no active reassignment of partition {partition}, but {sets}.")
    # The place of moves between directories.
    print_text()
    if not ongoing and not options.preserve_throttles:
        await _clear_throttles(admin, cluster, wanted)


async def cancel(admin: Admin, options: argparse.Namespace) -> None:
    """``--cancel``."""
    given = replicas_of(options.reassignment_json_file)
    found = await admin.list_partition_reassignments(partition for partition, _ in given)
    # Kafka: cancelAssignment; one that only adds replicas is not taken for active.
    active = [partition for partition, each in found.items() if not each.adding or each.removing]
    if active:
        outcomes = await admin.alter_partition_reassignments(dict.fromkeys(active))
        failed = sum(1 for problem in outcomes.values() if problem is not None)
        _raise_errors(f"Error cancelling partition reassignment{'' if failed == 1 else 's'} for", outcomes)
        print_text(f"Successfully cancelled partition reassignment{_s(active)} for: {_names(active)}")
    else:
        print_text("None of the specified partition reassignments are active.")
    # Kafka ends this line only where nothing follows it.
    print_text("None of the specified partition moves are active.", end="")
    if not options.preserve_throttles:
        await _clear_throttles(admin, await admin.cluster(), given)


async def list_reassignments(admin: Admin, _: argparse.Namespace) -> None:
    """``--list``."""
    ongoing = await admin.list_partition_reassignments()
    print_text("Current partition reassignments:" if ongoing else "No partition reassignments found.")
    for partition, each in sorted(ongoing.items()):
        adding = f" adding: {_numbers(each.adding)}." if each.adding else ""
        removing = f" removing: {_numbers(each.removing)}." if each.removing else ""
        print_text(f"{partition}: replicas: {_numbers(each.replicas)}.{adding}{removing}")


def _replicas(cluster: MetadataResponse, *, unknown_is_empty: bool = False) -> dict[TopicPartition, tuple[int, ...]]:
    """Replicas of all partitions that were asked for. Raises CodedError for an unknown topic."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in cluster.topics:
        unknown = topic.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if unknown and unknown_is_empty:
            continue
        if topic.error_code is not ErrorCode.NONE:
            raise CodedError(topic.error_code, f"Topic {topic.name} not found." if unknown else "")
        for each in topic.partitions:
            found[TopicPartition(topic.name or "", each.partition_index)] = each.replica_nodes
    return found


# -- throttles


async def _throttle(
    admin: Admin, options: argparse.Namespace, cluster: MetadataResponse, moves: Mapping[TopicPartition, _Move]
) -> None:
    between, within = options.throttle, options.replica_alter_log_dirs_throttle
    if between < 0 and within < 0:
        return
    print_text(_MUST_VERIFY)
    if between >= 0:
        # Kafka: a set of texts in their order.
        listed: dict[str, tuple[set[str], set[str]]] = {}
        for (topic, index), move in moves.items():
            for texts, brokers in zip(listed.setdefault(topic, (set(), set())), move, strict=True):
                texts.update(f"{index}:{broker}" for broker in brokers)
        changes: dict[ConfigResource, dict[str, str | None]] = {
            ConfigResource.topic(topic): {
                LEADER_REPLICAS: ",".join(sorted(leaders)),
                FOLLOWER_REPLICAS: ",".join(sorted(followers)),
            }
            for topic, (leaders, followers) in listed.items()
        }
        for broker in sorted({each for move in moves.values() for brokers in move for each in brokers}):
            changes[ConfigResource.broker(broker)] = {LEADER_RATE: str(between), FOLLOWER_RATE: str(between)}
        (await admin.incremental_alter_configs(changes, _nodes(cluster))).check()
        print_text(f"The inter-broker throttle limit was set to {between} B/s")
    if within >= 0:
        # No replica moves between directories, so that no broker needs the setting.
        print_text(f"The replica-alter-dir throttle limit was set to {within} B/s")


async def _clear_throttles(
    admin: Admin, cluster: MetadataResponse, given: Iterable[tuple[TopicPartition, tuple[int, ...]]]
) -> None:
    moves = dict(given)
    brokers = sorted({each.node_id for each in cluster.brokers}.union(*moves.values()))
    print_text(f"Clearing broker-level throttles on broker{_s(brokers)} {_numbers(brokers)}")
    rates = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE))
    of_brokers = {ConfigResource.broker(broker): rates for broker in brokers}
    (await admin.incremental_alter_configs(of_brokers, _nodes(cluster))).check()
    topics = sorted({partition.topic for partition in moves})
    print_text(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    throttled = dict.fromkeys((LEADER_REPLICAS, FOLLOWER_REPLICAS))
    of_topics = {ConfigResource.topic(topic): throttled for topic in topics}
    (await admin.incremental_alter_configs(of_topics, {})).check()


def _nodes(cluster: MetadataResponse) -> dict[str, Endpoint]:
    return {str(each.node_id): Endpoint(each.node_id, each.host, each.port) for each in cluster.brokers}


# -- texts


def _raise_errors(what: str, outcomes: Outcomes[TopicPartition]) -> None:
    lines = [f"{partition}: {problem}" for partition, problem in sorted(outcomes.items()) if problem is not None]
    if lines:
        raise TerseRefusal("\n".join([f"{what}:", *lines]))


def _json(replicas: Mapping[TopicPartition, tuple[int, ...]]) -> str:
    entries = [
        {"topic": topic, "partition": index, "replicas": list(brokers), "log_dirs": [ANY_DIRECTORY] * len(brokers)}
        for (topic, index), brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": VERSION, "partitions": entries}, separators=(",", ":"))


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sorted(partitions)))


def _numbers(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _s(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"


def _refusal(problem: CodedError | ToolRefusal) -> str:
    if isinstance(problem, TerseRefusal):
        return str(problem)
    prefix = f"org.apache.kafka.common.errors.{problem.java_name}: " if isinstance(problem, CodedError) else ""
    return f"Error: {prefix}{problem}"


run_action: Final = runs(
    {
        "--generate": generate,
        "--execute": execute,
        "--verify": verify,
        "--cancel": cancel,
        "--list": list_reassignments,
    },
    Admin,
    _refusal,
)
