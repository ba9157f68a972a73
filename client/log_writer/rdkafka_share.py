"""librdkafka's share consumer, by default and with ``debug=cgrp``.

By default it logs late polls alone. With ``debug=cgrp`` each heartbeat names the member and the epoch it has as it
sends it: here these are written when the epoch changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.client.log_writer.rdkafka import RdkafkaLog, each_partition
from rejoin.client.log_writer.writer import Line
from rejoin.journal.events import client as events

_JOINING_EPOCH: Final = 0
_OUT_OF_THE_GROUP: Final = {
    "UNKNOWN_MEMBER_ID": "Broker: Unknown member",
    "FENCED_MEMBER_EPOCH": "Broker: The member epoch is fenced by the group coordinator",
}
"""librdkafka's words for errors of a heartbeat after which the member joins again under its old id."""


class RdkafkaShareLog(RdkafkaLog):
    """The layout of :class:`~rejoin.client.log_writer.rdkafka.RdkafkaLog`, with members' epochs and no rebalances."""

    _epoch = _JOINING_EPOCH
    """The epoch of the last heartbeat written."""

    def on_start(self) -> Iterator[Line]:
        self._epoch = _JOINING_EPOCH
        yield from super().on_start()
        yield "remark", "share-preview", {"rest": "and is not recommended for production use"}

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.Subscribing():
                yield "subscribing", "", {"count": len(event.topics), "rest": "-state init)"}
            case events.CoordinatorFound() | events.CoordinatorLost():
                yield from super().on_event(event)
            case events.GroupJoined():
                yield self._heartbeat_with(event.member_id, _JOINING_EPOCH)
                yield self._heartbeat_with(event.member_id, event.generation)
            case events.TargetAssignmentReceived() if event.generation != self._epoch:
                yield self._heartbeat_with(event.member_id, event.generation)
            case events.PartitionsAssigned():
                yield from each_partition("partition_added", event.partitions)
            case events.PartitionsRevoked() | events.PartitionsLost():
                yield from each_partition("partition_removed", event.partitions)
            case events.HeartbeatFailed() if event.problem in _OUT_OF_THE_GROUP:
                yield "heartbeat_failed", "share", {"problem": _OUT_OF_THE_GROUP[event.problem]}
            case events.PollTimeoutExceeded():
                yield from super().on_event(event)
            case events.GroupLeft() if event.notified:
                yield "group_left", "", {"join_state": "up"}
            case events.ConsumerClosed():
                yield "closing", "", {"rest": "0 toppar(s), 0 commit(s) (state up, join-state init)"}

    def _heartbeat_with(self, member: str, epoch: int) -> Line:
        self._epoch = epoch
        rest = 'rack id "NULL", subscribed topics "NULL"'
        return "epoch_sent", "", {"member": member, "member_epoch": epoch, "rest": rest}


class DefaultRdkafkaShareLog(RdkafkaShareLog):
    """The log of a share consumer of librdkafka without ``debug``."""

    debug = False
