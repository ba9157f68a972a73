"""Parts of share groups, and of the logs that they read, whose numbers and times would keep equal states apart.

Epochs of sessions only grow. A node compares an epoch with that of the next request, and nothing else is done with it
but this: a request begins with the partition that its epoch says, in rotation. So a form has the distances of epochs,
for each member from its lowest, and that one modulo the numbers of partitions.
"""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rejoin.client.core.share.session import ShareSessionHandler
from rejoin.coordinator.core.groups.share.model.state_partitions import StatePartitions
from rejoin.coordinator.core.share.sessions import ShareSession
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.share_processes import shared_topics

if TYPE_CHECKING:
    from rejoin.simulation.explore.canonical.form import Writing

REQUESTS: Final = (ShareFetchRequest, ShareAcknowledgeRequest)


class MemberOf(NamedTuple):
    """The member whose process follows in a form; empty where it has none."""

    member_id: str


class EpochOf(NamedTuple):
    """The place of an epoch in a form, until its distance stands there."""

    member_id: str
    epoch: int


def rotation_of(scenario: Scenario) -> int:
    """Epochs that differ by so much begin with the same partition."""
    counts = [sum(topics.values()) for topics in shared_topics(scenario).partitions.values()]
    return lcm(*(number for count in counts for number in range(1, count + 1)))


def write_member(value: MemberOf, writing: Writing) -> None:
    """Take note of whose sessions follow."""
    writing.member_id = value.member_id


def write_handler(value: ShareSessionHandler, writing: Writing) -> None:
    """A member's side of a session."""
    writing.out.append("ShareSessionHandler")
    _epoch(writing.member_id, value.epoch, writing)
    writing.write((value.partitions,))


def write_session(value: ShareSession, writing: Writing) -> None:
    """A node's side of a session."""
    writing.out.append("ShareSession")
    writing.write((value.key, value.connection))
    _epoch(value.key.member_id, value.epoch, writing)
    writing.write((value.partitions,))


def write_request(value: Any, writing: Writing) -> None:
    """A request with the epoch of its session."""
    writing.out.append(type(value).__name__)
    for name, each in value.__dict__.items():
        if name == "share_session_epoch":
            _epoch(value.member_id or "", each, writing)
        else:
            writing.write((each,))


def _epoch(member_id: str, epoch: int, writing: Writing) -> None:
    if epoch > 0:
        writing.epochs.append(len(writing.out))
        writing.out.append(EpochOf(member_id, epoch))
    else:
        writing.out.append(epoch)


def put_distances(out: list[Any], epochs: list[int], rotation: int) -> None:
    """Put distances in place of epochs."""
    lowest: dict[str, int] = {}
    for at in epochs:
        member_id, epoch = out[at]
        lowest[member_id] = min(epoch, lowest.get(member_id, epoch))
    for at in epochs:
        member_id, epoch = out[at]
        out[at] = ("epoch", epoch - lowest[member_id], lowest[member_id] % rotation)


def write_partitions(value: StatePartitions, writing: Writing) -> None:
    """The share-partitions of a group. Since when they are there matters only until their state is."""
    writing.out.append("StatePartitions")
    initialized = {topic_id: (each.name, each.partitions) for topic_id, each in value.initialized.items()}
    writing.kept.append(initialized)
    writing.write((value.initializing, initialized, value.deleting))
