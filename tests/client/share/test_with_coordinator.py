"""Lives of share consumers beside a coordinator on the virtual clock: sharing, release, reject, crash, dead letters."""

from __future__ import annotations

from collections import Counter

from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType
from rejoin.protocol.types import TopicPartition
from tests.client.share.on_virtual_clock import Group
from tests.coordinator.testing.share_member import GROUP, configure

TOPICS = {"jobs": 2}
P0, P1 = TopicPartition("jobs", 0), TopicPartition("jobs", 1)


async def fill(coordinator: GroupCoordinator, batches: int = 4, size: int = 3) -> None:
    for partition in (0, 1):
        for _ in range(batches):
            await coordinator.produce("jobs", partition, size)


async def test_three_members_share_the_records_of_two_partitions() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator)
        group = Group(coordinator, max_poll_records=3)
        members = await group.join("a", "b", "c")
        await fill(coordinator)
        got: Counter[tuple[int, int]] = Counter()
        by_member: Counter[str] = Counter()
        for _ in range(8):
            for member in members:
                for record in await group.poll(member, 200):
                    assert record.delivery_count == 1
                    got[record.partition, record.offset] += 1
                    by_member[member.core.config.client_id] += 1
        assert got == Counter((partition, offset) for partition in (0, 1) for offset in range(12))
        assert set(by_member) == {"a", "b", "c"}, "more members than partitions have work"
        for member in members:
            await group.commit(member)
            await group.close(member)
        for partition in (0, 1):
            state = await coordinator.share_state(GROUP, "jobs", partition)
            assert state is not None
            assert (state.start_offset, state.records) == (12, [])


async def test_a_released_record_comes_back_and_a_rejected_one_does_not() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator)
        group = Group(coordinator, share_acknowledgement_mode="explicit")
        (member,) = await group.join("a")
        await coordinator.produce("jobs", 0, 3)
        first = await group.poll(member)
        assert [(record.offset, record.delivery_count) for record in first] == [(0, 1), (1, 1), (2, 1)]
        for record, kind in zip(first, (AcknowledgeType.ACCEPT, 2, 3), strict=True):
            member.acknowledge(record, kind)
        assert await group.commit(member) == {P0: None}
        again = await group.poll(member)
        assert [(record.offset, record.delivery_count) for record in again] == [(1, 2)]
        member.acknowledge(again[0], AcknowledgeType.ACCEPT)
        assert await group.poll(member) == []
        assert member.errors == []


async def test_records_of_a_crashed_member_are_delivered_again_after_their_lock() -> None:
    async with running(clock="virtual", topics={"jobs": 1}, socket=False) as coordinator:
        await configure(coordinator)
        group = Group(coordinator)
        crashing, other = await group.join("a", "b")
        await coordinator.produce("jobs", 0, 3)
        assert len(await group.poll(crashing)) == 3
        assert crashing.core.records_in_flight() == {P0: [0, 1, 2]}
        assert crashing.core.lock_timeout_ms == 30_000
        crashing.crash()
        assert await group.poll(other, 20_000) == []
        again = await group.poll(other, 15_000)
        assert [(record.offset, record.delivery_count) for record in again] == [(0, 2), (1, 2), (2, 2)]
        assert await group.commit(other) == {P0: None}


async def test_a_renewed_record_outlives_its_first_lock() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator)
        group = Group(coordinator, share_acknowledgement_mode="explicit")
        (member,) = await group.join("a")
        await coordinator.produce("jobs", 0, 1)
        (record,) = await group.poll(member)
        await group.run(20_000)
        member.acknowledge(record, AcknowledgeType.RENEW)
        (renewed,) = await group.poll(member)
        assert renewed == record, "without another fetch, and without another delivery"
        await group.run(20_000)
        member.acknowledge(renewed, AcknowledgeType.ACCEPT)
        assert await group.commit(member) == {P0: None}


async def test_a_late_acknowledgement_is_refused() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator)
        group = Group(coordinator)
        (member,) = await group.join("a")
        await coordinator.produce("jobs", 0, 1)
        assert len(await group.poll(member)) == 1
        await group.run(31_000)
        results = await group.commit(member)
        assert getattr(results[P0], "error", None) is ErrorCode.INVALID_RECORD_STATE


async def test_a_poison_record_lands_in_the_dead_letter_topic() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator, errors_deadletterqueue_topic_name="dlq.jobs")
        group = Group(coordinator, share_acknowledgement_mode="explicit")
        (member,) = await group.join("a")
        await coordinator.produce("jobs", 1, ["poison"])
        for delivery in range(1, 6):
            (record,) = await group.poll(member)
            assert (record.value, record.delivery_count) == (b"poison", delivery)
            member.acknowledge(record, AcknowledgeType.RELEASE)
            assert await group.commit(member) == {P1: None}
        assert await group.poll(member) == []
        (letter,) = await coordinator.records("dlq.jobs")
        headers = dict(letter.headers)
        assert (headers["__dlq.errors.offset"], headers["__dlq.errors.delivery.count"]) == (b"0", b"5")


async def test_close_releases_what_was_not_decided() -> None:
    async with running(clock="virtual", topics={"jobs": 1}, socket=False) as coordinator:
        await configure(coordinator)
        group = Group(coordinator, share_acknowledgement_mode="explicit")
        first, second = await group.join("a", "b")
        await coordinator.produce("jobs", 0, 2)
        records = await group.poll(first)
        first.acknowledge(records[0], AcknowledgeType.ACCEPT)
        await group.close(first)
        again = await group.poll(second)
        assert [(record.offset, record.delivery_count) for record in again] == [(1, 2)], "long before the lock ends"


async def test_a_record_limit_never_gives_more_than_was_asked_for() -> None:
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator)
        group = Group(coordinator, share_acquire_mode="record_limit", max_poll_records=2)
        (member,) = await group.join("a")
        await coordinator.produce("jobs", 0, 5)
        assert [len(await group.poll(member)) for _ in range(3)] == [2, 2, 1]
