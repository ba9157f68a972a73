"""The events of whole logs in plain Python, where the product follows each group in a task of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rejoin.pipeline.reading.broker_logs.brokers import topic_events
from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.reconstruction import partition_events, reconstruct_group
from rejoin.pipeline.reading.broker_logs.statements import PARTITION_CREATED, Statement
from rejoin.pipeline.reading.broker_logs.transactions import OF_TRANSACTIONS, transaction_events


def reconstruct(statements: Iterable[Statement]) -> Iterator[EventRow]:
    """The events of all groups and partitions, from statements in their order (``order_ms``); group after group."""
    groups: dict[str, list[Statement]] = {}
    others: list[Statement] = []
    topics: dict[str, list[Statement]] = {}
    ids: dict[str, list[Statement]] = {}
    for statement in statements:
        if statement.kind == PARTITION_CREATED:
            topics.setdefault(statement.values["topic"], []).append(statement)
        elif statement.kind.startswith(OF_TRANSACTIONS):
            ids.setdefault(statement.values.get("transactional_id", ""), []).append(statement)
        elif statement.group is None:
            others.append(statement)
        else:
            groups.setdefault(statement.group, []).append(statement)
    yield from partition_events(others)
    for created in topics.values():
        yield from topic_events(created)
    for mine in ids.values():
        yield from transaction_events(mine)
    for group_id, mine in groups.items():
        yield from reconstruct_group(group_id, mine)
