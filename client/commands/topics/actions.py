"""Actions of ``rejoin topics``, one function each."""

from __future__ import annotations

import argparse
import re
from typing import Final

from rejoin.client.admin.admin import Admin
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.commands.tools.connecting import ToolRefusal, runs
from rejoin.client.core.errors import CodedError
from rejoin.output import print_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from rejoin.protocol.messages.cluster.metadata import MetadataResponseTopic
from rejoin.protocol.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rejoin.protocol.printable import printable
from rejoin.protocol.types import ZERO_UUID

TOPIC_RESOURCE: Final = 2
DEFAULT_CONFIG: Final = 5
"""The source of a setting that has its default. Kafka: DescribeConfigsResponse.ConfigSource."""

_NAMES_IN_METRICS: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)


async def list_topics(admin: Admin, options: argparse.Namespace) -> None:
    """``--list``."""
    for topic in await _chosen(admin, options):
        print_text(printable(topic.name or ""))


async def describe(admin: Admin, options: argparse.Namespace) -> None:
    """``--describe``."""
    topics = await _chosen(admin, options)
    _require(options, topics)
    configs = await _configs(admin, [topic.name or "" for topic in topics])
    for topic in topics:
        name = printable(topic.name or "")
        partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
        fields = [f"Topic: {name}"]
        if topic.topic_id != ZERO_UUID:
            fields.append(f"TopicId: {topic.topic_id}")
        replicas = len(partitions[0].replica_nodes) if partitions else 0
        fields += [f"PartitionCount: {len(partitions)}", f"ReplicationFactor: {replicas}"]
        print_text("\t".join([*fields, f"Configs: {configs.get(topic.name or '', '')}"]))
        for each in partitions:
            leader = each.leader_id if each.leader_id >= 0 else "none"
            numbers = [",".join(map(str, nodes)) for nodes in (each.replica_nodes, each.isr_nodes)]
            where = f"\tTopic: {name}\tPartition: {each.partition_index}\tLeader: {leader}"
            print_text(f"{where}\tReplicas: {numbers[0]}\tIsr: {numbers[1]}\tElr: N/A\tLastKnownElr: N/A")


async def create(admin: Admin, options: argparse.Namespace) -> None:
    """``--create``."""
    name = options.topic
    if "." in name or "_" in name:
        print_text(_NAMES_IN_METRICS)
    if options.if_not_exists and any(topic.name == name for topic in await admin.topics()):
        return
    settings = [pair.partition("=") for pair in options.config]
    wanted = CreatableTopic(
        name=name,
        num_partitions=-1 if options.partitions is None else options.partitions,
        replication_factor=-1 if options.replication_factor is None else options.replication_factor,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key.strip(), value=value.strip()) for key, _, value in settings),
    )
    request = CreateTopicsRequest(topics=(wanted,), timeout_ms=options.timeout)
    response = await admin.ask(request, CreateTopicsResponse)
    for result in response.topics:
        _raise(result.error_code, result.error_message)
    print_text(f"Created topic {printable(name)}.")


async def alter(admin: Admin, options: argparse.Namespace) -> None:
    """``--alter``."""
    topics = await _chosen(admin, options)
    _require(options, topics)
    wanted = tuple(
        CreatePartitionsTopic(name=topic.name or "", count=options.partitions, assignments=None) for topic in topics
    )
    if not wanted:
        return
    request = CreatePartitionsRequest(topics=wanted, timeout_ms=options.timeout, validate_only=False)
    for result in (await admin.ask(request, CreatePartitionsResponse)).results:
        _raise(result.error_code, result.error_message)


async def delete(admin: Admin, options: argparse.Namespace) -> None:
    """``--delete``."""
    topics = await _chosen(admin, options)
    _require(options, topics)

    if topics:
        for result in await admin.delete_topics([topic.name or "" for topic in topics]):
            _raise(result.error_code, result.error_message)


async def _chosen(admin: Admin, options: argparse.Namespace) -> list[MetadataResponseTopic]:
    """The topics that ``--topic`` names, by name; all without it."""
    topics = [each for each in await admin.topics() if not (options.exclude_internal and each.is_internal)]
    if options.topic is None:
        return topics
    # Kafka: IncludeList. Commas separate alternatives.
    pattern = "|".join(part.strip() for part in options.topic.strip("\"'").split(",") if part.strip())
    try:
        matches = re.compile(pattern)
    except re.error as problem:
        raise UsageError(f"{options.topic} is an invalid regex: {problem}") from None
    return [each for each in topics if matches.fullmatch(each.name or "")]


def _require(options: argparse.Namespace, topics: list[MetadataResponseTopic]) -> None:
    # Kafka: ensureTopicExists.
    if not topics and options.topic is not None and not options.if_exists:
        raise ToolRefusal(f"Topic '{options.topic}' does not exist as expected")


async def _configs(admin: Admin, topics: list[str]) -> dict[str, str]:
    """The settings of each topic that are not defaults, as the tool shows them."""
    if not topics:
        return {}
    resources = tuple(
        DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
        for name in topics
    )
    response = await admin.ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    return {
        result.resource_name: ",".join(
            f"{config.name}={config.value}" for config in result.configs if config.config_source != DEFAULT_CONFIG
        )
        for result in response.results
    }


def _raise(error: ErrorCode, message: str | None) -> None:
    if error is not ErrorCode.NONE:
        raise ToolRefusal(message or error.name)


def _refusal(problem: CodedError | ToolRefusal) -> str:
    return f"Error while executing topic command : {problem}"


run_action: Final = runs(
    {
        "--list": list_topics,
        "--describe": describe,
        "--create": create,
        "--alter": alter,
        "--delete": delete,
    },
    Admin,
    _refusal,
)
