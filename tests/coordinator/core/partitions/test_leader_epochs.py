"""OffsetForLeaderEpoch: where epochs ended, and epochs that are not the leader's."""

from __future__ import annotations

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    LeaderEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.coordinator.core.driver import TOPIC, DrivenNode
from tests.coordinator.core.partitions.real_topic import RealTopic, batch


def ended(driven: DrivenNode, leader_epoch: int, current: int = -1) -> LeaderEpochEndOffset:
    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=leader_epoch)
    topics = (OffsetForLeaderTopic(topic=TOPIC, partitions=(partition,)),)
    result = driven.ask(OffsetForLeaderEpochRequest(topics=topics), 4).topics[0].partitions[0]
    assert isinstance(result, LeaderEpochEndOffset)
    return result


def in_two_epochs() -> RealTopic:
    driven = RealTopic()
    driven.produce(batch("a", "b"))
    driven.elect()
    driven.produce(batch("c"))
    return driven


def test_an_old_epoch_ends_where_the_next_one_began() -> None:
    driven = in_two_epochs()
    assert (ended(driven, 0).leader_epoch, ended(driven, 0).end_offset) == (0, 2)
    assert (ended(driven, 1).leader_epoch, ended(driven, 1).end_offset) == (1, 3)
    assert (ended(driven, 2).leader_epoch, ended(driven, 2).end_offset) == (-1, -1)


def test_another_epoch_than_the_leaders_is_refused() -> None:
    driven = in_two_epochs()
    assert ended(driven, 0, current=0).error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert ended(driven, 0, current=2).error_code is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ended(driven, 0, current=1).error_code is ErrorCode.NONE


def test_the_first_record_is_of_the_epoch_that_wrote_it() -> None:
    driven = in_two_epochs()
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-2)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=TOPIC, partitions=(wanted,)),))
    (found,) = driven.ask(request.model_copy(update={"isolation_level": 0}), 7).topics[0].partitions
    assert (found.offset, found.leader_epoch) == (0, 0)


def test_a_synthetic_log_has_one_epoch() -> None:
    driven = DrivenNode(emulator_records_per_second=0)
    assert (ended(driven, 0).leader_epoch, ended(driven, 3).leader_epoch) == (0, -1)
