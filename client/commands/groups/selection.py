"""Which groups and partitions a command is about."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rejoin.client.admin.admin import Admin, GroupListing
from rejoin.client.commands.groups.parsing import topic_partitions
from rejoin.client.core.errors import KafkaError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition


@asynccontextmanager
async def selected_groups(admin: Admin, options: argparse.Namespace) -> AsyncIterator[list[str]]:
    """The groups of ``--group`` or ``--all-groups``. Raises KafkaError at the end if nodes did not answer."""
    if not options.all_groups:
        yield sorted(set(options.group))
        return
    listing = await admin.list_reachable_groups()
    yield [group.group_id for group in listing.groups]
    check_complete(listing)


def check_complete(listing: GroupListing) -> None:
    """Raise KafkaError with the nodes that did not answer, if there are any."""
    # Differs: Kafka's tool does nothing then, also for the groups of other nodes.
    if listing.unanswered:
        raise KafkaError(f"{', '.join(listing.unanswered)}; groups of nodes that do not answer are left out")


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
