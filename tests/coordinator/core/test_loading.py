"""What a node makes of an offsets log: the last record of a key wins, and old or late news does not count."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.groups.classic.state import EMPTY, STABLE
from rejoin.coordinator.core.inputs import Elected, LogRead, Resigned, Stored
from rejoin.coordinator.core.offsets import requests
from rejoin.journal.events.coordinator import CoreFailed, GroupLoaded, PartitionLoaded
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from rejoin.protocol.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rejoin.protocol.records.consumer_offsets import (
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitValue,
    OffsetRecord,
    group_record,
    offset_record,
)
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.transcript.driver import START
from tests.coordinator.core.driver import GROUP, PARTITION, TOPIC, DrivenNode, commit, join, protocols


def member(member_id: str = "m-1", **given: Any) -> MemberMetadata:
    usual: dict[str, Any] = {
        "member_id": member_id,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "rebalance_timeout": 60_000,
        "session_timeout": 10_000,
        "subscription": protocols("range")[0].metadata,
        "assignment": b"share",
    }
    return MemberMetadata(**(usual | given))


def stored_group(*members: MemberMetadata, generation: int = 3, **given: Any) -> GroupRecord:
    usual: dict[str, Any] = {
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": "range" if members else None,
        "leader": members[0].member_id if members else None,
        "current_state_timestamp": START - 1_000,
        "members": members,
    }
    return group_record(GROUP, GroupMetadataValue(**(usual | given)))


def stored_offset(offset: int, partition: int = 0, producer_id: int = -1) -> OffsetRecord:
    value = OffsetCommitValue(offset=offset, commit_timestamp=START - 1_000)
    return offset_record(GROUP, "t", partition, value, producer_id)


def loaded(*records: Record) -> DrivenNode:
    driven = DrivenNode(leads=False)
    driven.log.extend(records)
    driven.elect()
    return driven


def offsets(driven: DrivenNode) -> dict[int, int]:
    assert driven.group is not None
    return {partition.partition: value.offset for partition, value in driven.offsets.stored.items()}


def test_a_group_with_members_is_stable() -> None:
    driven = loaded(stored_group(member(), member("m-2", group_instance_id="i")))
    group = driven.group
    assert group is not None
    assert (group.state, group.generation, group.leader, group.protocol_name) == (STABLE, 3, "m-1", "range")
    assert group.static_members == {"i": "m-2"}
    assert group.members["m-1"].assignment == b"share"
    assert group.members["m-1"].protocol_names() == ["range"], "only the selected protocol is known"
    assert set(group.subscribed_topics or ()) == {"t"}
    sessions = {timer.member_id: timer.at for timer in driven.node.timers() if timer.timer == "session"}
    assert sessions["m-2"] == START + 10_000
    (event,) = driven.emitted(GroupLoaded)
    assert (event.state, event.members) == ("Stable", ["m-1", "m-2"])


def test_a_group_without_members_is_empty_since_its_record_says() -> None:
    group = loaded(stored_group(generation=4)).group
    assert group is not None
    assert (group.state, group.generation, group.leader, group.members) == (EMPTY, 4, None, {})
    assert (group.state_since, group.protocol_type) == (START - 1_000, "consumer")


def test_a_record_without_a_time_counts_from_now() -> None:
    group = loaded(stored_group(current_state_timestamp=-1)).group
    assert group is not None
    assert group.state_since == START


def test_a_group_known_only_by_offsets_is_simple() -> None:
    driven = loaded(stored_offset(5))
    assert driven.group is not None
    assert driven.group.protocol_type is None
    assert driven.group.state is EMPTY
    assert offsets(driven) == {0: 5}


def test_the_last_record_of_a_key_wins() -> None:
    driven = loaded(stored_offset(5), stored_group(member()), stored_offset(6), stored_offset(1, 1), stored_group())
    assert driven.group is not None
    assert driven.group.state is EMPTY
    assert offsets(driven) == {0: 6, 1: 1}


def test_tombstones_forget() -> None:
    driven = loaded(stored_offset(5), stored_offset(6, 1), offset_record(GROUP, "t", 0, None))
    assert offsets(driven) == {1: 6}
    gone = loaded(
        stored_group(member()), stored_offset(5), offset_record(GROUP, "t", 0, None), group_record(GROUP, None)
    )
    assert gone.group is None


def test_a_group_that_has_lost_its_offsets_is_there_until_the_next_expiry_run() -> None:
    """Kafka: what makes a group is never undone but by the group's own tombstone."""
    for records in ([stored_offset(5), offset_record(GROUP, "t", 0, None)], [stored_group(generation=0)]):
        driven = loaded(*records)
        assert driven.group is not None
        driven.elapse(600_000)
        assert driven.group is None
        assert driven.log[-1] == group_record(GROUP, None)


def test_a_rebalance_timeout_of_old_records_is_the_session_timeout() -> None:
    group = loaded(stored_group(member(rebalance_timeout=-1))).group
    assert group is not None
    assert group.members["m-1"].rebalance_timeout_ms == 10_000


def test_transactions_are_replayed_to_their_end() -> None:
    driven = loaded(
        stored_offset(1, 0, producer_id=7),
        stored_offset(2, 1, producer_id=8),
        stored_offset(3, 2, producer_id=9),
        TransactionMarker(producer_id=7, producer_epoch=0, committed=True),
        TransactionMarker(producer_id=8, producer_epoch=0, committed=False),
    )
    assert offsets(driven) == {0: 1}
    assert driven.group is not None
    assert list(driven.offsets.pending) == [9]


def test_a_later_commit_stays_when_an_older_transaction_ends() -> None:
    marker = TransactionMarker(producer_id=7, producer_epoch=0, committed=True)
    assert offsets(loaded(stored_offset(1, producer_id=7), stored_offset(9), marker)) == {0: 9}
    assert offsets(loaded(stored_offset(9), stored_offset(1, producer_id=7), marker)) == {0: 1}


def test_a_log_may_come_in_pieces() -> None:
    driven = DrivenNode(leads=False)
    records = (stored_group(member()), stored_offset(5), stored_offset(6))
    driven.effects_of(Elected(PARTITION, 0))
    beat = HeartbeatRequest(group_id=GROUP, generation_id=99, member_id="anybody")
    for record in records:
        driven.step(LogRead(PARTITION, 0, (record,), False))
        assert driven.ask(beat, 4).error_code is ErrorCode.NONE, "still loading"
    driven.step(LogRead(PARTITION, 0, (), True))
    assert driven.ask(beat, 4).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert offsets(driven) == {0: 6}
    (event,) = driven.emitted(PartitionLoaded)
    assert event.records == 3


def test_what_another_epoch_read_or_stored_is_no_news() -> None:
    driven = DrivenNode()
    driven.logs.defers_appends = True
    number = driven.send(commit(), 9)
    [(old, _)] = driven.logs.pending_appends
    driven.resign()
    answer = driven.replies[number]
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR
    driven.elect()
    assert driven.effects_of(Stored(PARTITION, old.epoch, old.append_id)) == []
    assert driven.effects_of(LogRead(PARTITION, old.epoch, (stored_offset(5),), True)) == []
    assert driven.group is None


def test_an_older_election_is_no_news() -> None:
    driven = DrivenNode()
    driven.elect()
    driven.joins(join())
    assert driven.effects_of(Elected(PARTITION, 0)) == []
    assert driven.effects_of(Elected(PARTITION, 1)) == [], "nor is the same one again"
    assert driven.group is not None


def test_a_new_group_is_stored_without_members() -> None:
    """Also where its first member is added at once: only a leader's assignment makes members last."""
    for request, version in ((join(3), 3), (join(group_instance_id="i"), 9), (join(), 9)):
        driven = DrivenNode()
        driven.send(request, version)
        (record,) = driven.log
        assert isinstance(record, GroupRecord)
        assert record.value is not None
        group = record.value.data
        assert (group.protocol_type, group.generation, group.protocol, group.leader) == ("", 0, None, None)
        assert (group.members, group.current_state_timestamp) == ((), START)


def test_a_newer_election_begins_anew() -> None:
    """A node that missed that it lost a partition answers all that wait, then loads."""
    driven = DrivenNode()
    number = driven.send(join(3), 3)
    driven.elect()
    answer = driven.replies[number]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert driven.group is not None
    assert (driven.group.state, driven.group.members) == (EMPTY, {})


def test_resigning_twice_is_no_news() -> None:
    driven = DrivenNode()
    driven.resign()
    assert driven.effects_of(Resigned(PARTITION)) == []


def test_a_failure_inside_costs_the_shard_of_a_group_that_a_batch_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of several groups has no group id of its own: each of its groups says which shard is read again."""
    node = DrivenNode()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(requests, "fetch_offsets", fail)
    fetch = OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group_id=name, topics=None) for name in "gh"))
    answer = node.ask(fetch, 8)
    assert [group.error_code for group in answer.groups] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    failed = node.emitted(CoreFailed)
    assert [(each.partition, each.doing) for each in failed] == [(PARTITION.partition, "OffsetFetch")]
    assert len(node.emitted(PartitionLoaded)) == 2


def end_of_t(driven: DrivenNode) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    asked = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=(ListOffsetsTopic(name=TOPIC, partitions=(wanted,)),)
    )
    (answer,) = driven.ask(asked, 5).topics[0].partitions
    end: int = answer.offset
    return end


def test_a_clock_that_went_back_takes_no_records_away() -> None:
    """The end of a topic is a function of time: it stands still until the clock has passed what is in the logs."""
    before = DrivenNode(emulator_records_per_second=2.0)
    before.now += 33_000
    committed = end_of_t(before)
    assert committed == 66
    mark = OffsetCommitRequestPartition(partition_index=0, committed_offset=committed, committed_metadata="")
    before.send(commit(topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(mark,)),)), 8)

    after = DrivenNode(leads=False, emulator_records_per_second=2.0)
    after.now -= 86_400_000
    after.log.extend(before.log)
    after.elect()
    assert end_of_t(after) == committed
    (offset,) = after.node.describe_offsets(GROUP, after.now)
    assert (offset.log_end_offset, offset.lag) == (committed, 0)
    after.now += 2 * 86_400_000
    assert end_of_t(after) > committed


def test_an_instant_that_a_client_made_up_does_not_count() -> None:
    driven = DrivenNode(leads=False, emulator_records_per_second=2.0)
    value = OffsetCommitValue(offset=5, commit_timestamp=2**62)
    driven.log.append(offset_record(GROUP, TOPIC, 0, value))
    driven.elect()
    assert end_of_t(driven) == 0
