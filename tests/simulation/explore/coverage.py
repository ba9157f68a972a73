"""The parts of a coordinator that were reached: by state and kind of request, the errors of its answers.

The state is that of the group that a request names, or else of the transactional id. Where a share consumer asks the
leader of a partition, the states of the group's records there stand for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest
from pydantic import BaseModel

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Received
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from rejoin.protocol.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest

Reached: TypeAlias = tuple[str, str, str]
"""State of the group or transaction before the step, API of the answer, error."""


@contextmanager
def recorded() -> Iterator[set[Reached]]:
    """Collect all that the nodes of this process reach meanwhile."""
    found: set[Reached] = set()
    right = Node.step

    def step(self: Node, what: Any, now: int, **how: Any) -> list[Any]:
        state = _state(self, what.request, now) if isinstance(what, Received) else "no request"
        effects = right(self, what, now, **how)
        for effect in effects:
            if isinstance(effect, Reply):
                response = effect.response
                api = type(response).__name__.removesuffix("Response")
                found.update((state, api, code) for code in _codes(response))
        return effects

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, "step", step)
        yield found


def _state(node: Node, request: object, now: int) -> str:
    group_id = getattr(request, "group_id", None)
    if isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest) and group_id is not None:
        return _records(node, group_id, now)
    if group_id is not None:
        return _state_of_group(node, group_id)
    transactional_id = _transactional_id(request)
    return "no request" if not transactional_id else _state_of_transaction(node, transactional_id)


def _state_of_group(node: Node, group_id: str) -> str:
    group = node.group(group_id)
    if group is not None:
        return f"classic {group.state}"
    modern = node.consumer_group(group_id)
    if modern is not None:
        return f"consumer {modern.state}"
    other = node.summarize_group(group_id)
    return "no group" if other is None else f"{other.protocol_type} {other.state}"


def _records(node: Node, group_id: str, now: int) -> str:
    found = {run.state for view in node.share_states(group_id, now) for run in view.records}
    return f"share records {'+'.join(sorted(found)) or 'none'}"


def _transactional_id(request: object) -> str | None:
    """The transactional id of a request: of a client, or the first one of a broker."""
    if isinstance(request, AddPartitionsToTxnRequest):
        first = next(iter(request.transactions), None)
        return request.v3_and_below_transactional_id if first is None else first.transactional_id
    found: str | None = getattr(request, "transactional_id", None)
    return found


def _state_of_transaction(node: Node, transactional_id: str) -> str:
    """The state, and whether it is being changed."""
    shard = node._requests.transactions.coordinator.find(transactional_id)
    if isinstance(shard, ErrorCode):
        return "transaction elsewhere"
    found = shard.transactions.get(transactional_id)
    if found is None:
        return "no transaction"
    change = "" if found.pending_state is None else f", {found.pending_state.name} next"
    return f"transaction {found.state.name}{change}"


def _codes(value: object) -> Iterator[str]:
    """The errors in an answer; NONE where it has only that."""
    if isinstance(value, BaseModel):
        for name, each in value.__dict__.items():
            if name == "error_code":
                yield each.name
            else:
                yield from _codes(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _codes(each)
