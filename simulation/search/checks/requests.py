"""Every request is answered, once, and the core does not fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.coordinator.core.effects import Reply
from rejoin.journal.events.coordinator import (
    CoreFailed,
)
from rejoin.protocol.messages.records.fetch import FetchRequest
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.simulation.actors.node_requests import TIMEOUT_MS
from rejoin.simulation.search.observations import Observations, ObservedStep

PATIENCE_MS: Final = 8_000
"""Longer than an append may take: a request that waits for longer is parked, or forgotten."""


def the_core_fails(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(CoreFailed):
        yield f"{event.doing}: {event.problem}"


def a_request_is_answered_twice(observed: Observations, step: ObservedStep) -> Iterator[str]:
    seen: list[object] = []
    for effect in step.effects:
        if isinstance(effect, Reply):
            if any(token is effect.token for token in seen) or observed.was_answered(effect.token):
                yield f"{type(effect.response).__name__} for one that has its answer"
            seen.append(effect.token)


def a_request_is_never_answered(observed: Observations) -> Iterator[str]:
    now = observed.simulation.world.now
    for exchange, (node, life, since) in observed.open.items():
        waited = now - max(since, node.paused_until)
        patience = PATIENCE_MS
        if isinstance(exchange.request, ProduceRequest):
            patience += exchange.request.timeout_ms  # so long it may wait for the log
        if isinstance(exchange.request, FetchRequest):
            patience += exchange.request.max_wait_ms  # so long it may wait for records
        if isinstance(exchange.request, (ProduceRequest, TxnOffsetCommitRequest)):
            patience += TIMEOUT_MS  # so long it may wait for the coordinator of its transaction
        if life == node.incarnation and waited > patience and not observed.is_parked(node, exchange):
            who = exchange.connection.client.name
            yield f"{type(exchange.request).__name__} of {who}, asked {now - since} ms ago"
