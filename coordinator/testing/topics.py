"""Topics of a test: their records, and the offsets that groups committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rejoin.coordinator.control.admin_actions import CompactionScope, TopicKey, TopicTarget
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.topic_records import NewRecords, RecordsQuery, StoredRecord
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS, OffsetsCondition
from rejoin.coordinator.core.views import TopicView
from rejoin.coordinator.testing.arguments import Offsets, Written, all_written, wanted_offsets
from rejoin.coordinator.testing.controlled import ControlledCoordinator
from rejoin.coordinator.testing.results import hides_traceback
from rejoin.protocol.types import TopicPartition

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class TopicMethods(ControlledCoordinator):
    """The methods for topics, records and committed offsets."""

    async def set_topic(self, topic: str, partitions: int, records_per_second: float | None = None) -> TopicView:
        """Create a topic, or let it grow to so many partitions."""

        async def set_topic(control: Control) -> TopicView:
            wanted = TopicTarget(topic=topic, partitions=partitions, records_per_second=records_per_second)
            return TopicView.model_validate(await control.actions.set_topic(wanted))

        return await self.do(set_topic)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic with its records, as an administrator does."""

        async def delete_topic(control: Control) -> None:
            await control.actions.delete_topic(TopicKey(topic=topic))

        await self.do(delete_topic)

    async def produce(
        self, topic: str, partition: int | None, records: int | Sequence[Written], *, keys: bool = False
    ) -> TopicView:
        """Write so many records to a partition, or to every partition if it is None; or write the records of a list.

        Values of a number of records are distinct, as ``orders-0@17``; with ``keys`` they have keys, too. A record of
        a list is a value, a pair of key and value, or a mapping with key, value, headers and timestamp; without a
        partition it goes to that of its key. Where logs are synthetic, a number moves their ends on.
        """
        some = all_written(records)

        async def produce(control: Control) -> TopicView:
            produced = NewRecords(topic=topic, partition=partition, records=some, keys=keys, encoding="base64")
            return TopicView.model_validate(await control.produce(produced))

        return await self.do(produce)

    async def compact(self, topic: str | None = None) -> list[str]:
        """Clean the logs of a compacted topic now, or those of all; returns the names of the topics."""
        return await self._ask(lambda control: list(control.actions.compact(CompactionScope(topic=topic))["topics"]))

    async def records(
        self, topic: str, partition: int | None = None, offset: int = 0, limit: int | None = None
    ) -> list[StoredRecord]:
        """The records of a topic by partition and offset, with key, value, headers and timestamp.

        ``__consumer_offsets`` is such a topic, too, with what is left of it after compaction.
        """

        def read(control: Control) -> list[StoredRecord]:
            return control.records.read(RecordsQuery(topic=topic, partition=partition, offset=offset, limit=limit))

        return await self._ask(read)

    async def wait_for_committed(
        self, group_id: str, offsets: Offsets, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """Wait until a group has committed these offsets or later ones, and return all that it has committed.

        Offsets are mapped by topic and partition number, or by the TopicPartition of any library; or there is a list
        of objects with topic, partition and offset, such as confluent-kafka's. Raises NotReached.
        """
        wanted: Any = wanted_offsets(offsets)

        async def wait(control: Control) -> dict[TopicPartition, int]:
            condition = OffsetsCondition(group=group_id, offsets=wanted, timeout_ms=timeout_ms)
            committed = await control.groups.wait_for_committed(condition)
            return {TopicPartition(each.topic, each.partition): each.offset for each in committed}

        return await self.do(wait)
