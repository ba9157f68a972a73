"""Broken rules of topics that are deleted under their groups. Random scenarios of ``search`` delete none."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rejoin.client.core.offsets import fetching
from rejoin.client.core.state.membership import MetadataSnapshot
from rejoin.coordinator.core.groups.consumer.groups import ConsumerGroups
from rejoin.coordinator.core.offsets.deletion import OffsetDeletionCompletion, OffsetDeletions
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.protocol.errors import ErrorCode
from tests.simulation.search.mutations import Break, Mutation

OF_TOPICS: list[Mutation] = []

GOES, GOES_MODERN = "topic_goes_under_a_group", "topic_goes_under_a_consumer_group"
WITH_OFFSETS = "topic_goes_with_its_offsets"
WORLDS: Final = {"topics": (WITH_OFFSETS, GOES, GOES_MODERN)}
"""By schedule: the worlds in which a broken rule is looked for."""
FIRST: Final = {
    ("topics", "a_failed_fetch_brings_no_look_at_the_metadata"): GOES,
    ("topics", "the_leader_does_not_see_that_a_topic_is_gone"): GOES,
    ("topics", "a_consumer_group_does_not_see_that_a_topic_is_gone"): GOES_MODERN,
}
"""By schedule and name: the world that is tried first."""


def broken(mutation: Break) -> Break:
    """Register a broken rule. Any check may find it."""
    OF_TOPICS.append(Mutation(mutation, "", "topics", 0))
    return mutation


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


# --- offsets


@broken
def a_deleted_topic_leaves_its_offsets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetDeletions, "delete_topics", _nothing)


@broken
def a_deleted_topic_leaves_commits_that_are_being_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupOffsets, "partitions", lambda self: sorted({*self.stored, *self.holders}))


@broken
def offsets_of_a_deleted_topic_come_back(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group_id: str, offsets: Any, partitions: Any, why: Any, *_: Any) -> None:
        OffsetDeletionCompletion(self._ctx, group_id, offsets, partitions, why).ended_late(ErrorCode.NONE)

    patch.setattr(OffsetDeletions, "_append", wrong)


# --- members


@broken
def a_failed_fetch_brings_no_look_at_the_metadata(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fetching, "_fetch_failed", _nothing)


@broken
def the_leader_does_not_see_that_a_topic_is_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MetadataSnapshot, "matches", lambda self, other: self.topics.items() >= other.topics.items())


@broken
def a_consumer_group_does_not_see_that_a_topic_is_gone(patch: pytest.MonkeyPatch) -> None:
    right = ConsumerGroups.topics_changed

    def wrong(self: Any, topics: Any, *, has_new: bool) -> None:
        right(self, [name for name in topics if name in self._topics], has_new=has_new)

    patch.setattr(ConsumerGroups, "topics_changed", wrong)
