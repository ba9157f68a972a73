"""Which groups and partitions a command is about."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rejoin.client.admin import Admin
from rejoin.client.commands.groups.parsing import topic_partitions
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition


async def group_ids(admin: Admin, options: argparse.Namespace) -> list[str]:
    """The groups of ``--group`` or ``--all-groups``."""
    if options.all_groups:
        return [group.group_id for group in await admin.list_groups()]
    return sorted(set(options.group))


async def partitions_of(admin: Admin, topics: Sequence[str]) -> tuple[list[TopicPartition], dict[str, ErrorCode]]:
    """The partitions of ``--topic``, and the errors of topics whose partitions are unknown. Raises UsageError."""
    partitions = [partition for topic in topics if ":" in topic for partition in topic_partitions(topic)]
    errors: dict[str, ErrorCode] = {}
    whole = [topic for topic in topics if ":" not in topic]
    for topic, count in (await admin.partitions(whole)).items() if whole else ():
        if isinstance(count, ErrorCode):
            errors[topic] = count
        else:
            partitions += [TopicPartition(topic, index) for index in range(count)]
    return partitions, errors
