"""What every offsets log promises, whatever it keeps its records in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from rejoin.coordinator.storage.memory import compacted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.keyed import Record
from tests.coordinator.storage.helpers import PATIENCE, Store, gone, group, marker, offset

PARTITION = offsets_partition(0)
NONE, FENCED = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_what_was_appended_is_read_in_order(store: Store) -> None:
    epoch = await store.elect(0)
    records: list[Record] = [
        offset(1),
        offset(2, partition=1),
        group(members=3),
        marker(),
        gone(1),
        offset(3, producer_id=9),
    ]
    assert await store.append(0, epoch, *records[:2]) is NONE
    assert await store.append(0, epoch, *records[2:]) is NONE
    assert await store.read(0) == records
    assert await store.read(1) == []


async def test_what_is_kept_is_what_was_given(store: Store) -> None:
    epoch = await store.elect(3)
    odd: list[Record] = [
        offset(2**63 - 1, group="zero\0 and \u2028 and \U0001f600 \"'\\"),
        offset(-1, group=""),
        group(generation=2**31 - 1, group_id="ümlaut", members=0),
        group(group_id="g2", members=40),
        group_without_protocol(),
        marker(committed=False),
        gone(2**31 - 1, group="\x1f"),
        with_expiry(),
    ]
    assert await store.append(3, epoch, *odd) is NONE
    assert await store.read(3) == odd


def group_without_protocol() -> Record:
    made = group(generation=0, group_id="fresh", members=0)
    assert made.value is not None
    data = replace(made.value.data, protocol=None, leader=None, protocol_type="")
    return replace(made, value=replace(made.value, data=data))


def with_expiry() -> Record:
    made = offset(5, partition=4)
    assert made.value is not None
    data = replace(made.value.data, expire_timestamp=99, leader_epoch=-1)
    return replace(made, value=replace(made.value, version=1, data=data))


async def test_an_older_epoch_can_write_nothing(store: Store) -> None:
    old = await store.elect(0)
    assert await store.append(0, old, offset(0)) is NONE
    new = await store.elect(0)
    assert new > old
    assert await store.append(0, old, offset(1)) is FENCED
    assert await store.append(0, new, offset(2)) is NONE
    assert await store.read(0) == [offset(0), offset(2)]


async def test_of_those_written_together_only_the_older_epoch_is_refused(store: Store) -> None:
    zero, one, two = [await store.elect(partition) for partition in range(3)]
    newer = await store.elect(1)
    begun = [
        store.begin(0, zero, offset(1)),
        store.begin(1, one, offset(2)),
        store.begin(2, two, offset(3)),
        store.begin(1, newer, offset(4)),
    ]
    assert await asyncio.gather(*begun) == [NONE, FENCED, NONE, NONE]
    assert await store.read(0) == [offset(1)]
    assert await store.read(1) == [offset(4)]
    assert await store.read(2) == [offset(3)]


async def test_what_is_on_its_way_when_another_is_elected_is_read_or_refused(store: Store) -> None:
    old = await store.elect(0)
    begun = [store.begin(0, old, offset(number)) for number in range(50)]
    new = await store.elect(0)
    found = await store.read(0, new)
    ends = await asyncio.gather(*begun)
    assert found == [offset(number) for number, end in enumerate(ends) if end is NONE]
    assert set(ends) <= {NONE, FENCED}


async def test_an_epoch_is_newer_than_all_before_a_restart_too(durable: Store) -> None:
    before = await durable.elect(5)
    await durable.append(5, before, offset(1))
    await durable.restart()
    assert await durable.elect(5) > before
    assert await durable.append(5, before, offset(2)) is FENCED
    assert await durable.read(5) == [offset(1)]


async def test_an_append_without_records_waits_for_all_before_it(store: Store) -> None:
    epoch = await store.elect(0)
    stored: list[int] = []

    def ended(number: int, _: ErrorCode) -> None:
        stored.append(number)

    last = asyncio.get_running_loop().create_future()
    for number in range(20):
        store.log.append(PARTITION, epoch, (offset(number),), partial(ended, number))
    store.log.append(PARTITION, epoch, (), last.set_result)
    assert await asyncio.wait_for(last, 60) is NONE
    assert stored == list(range(20))
    newer = await store.elect(0)
    assert await store.append(0, newer) is NONE
    assert await store.append(0, epoch) is FENCED
    assert len(await store.read(0)) == 20


async def test_ends_come_in_order_and_once(store: Store) -> None:
    epochs = [await store.elect(partition) for partition in range(4)]
    ends: list[tuple[int, int, ErrorCode]] = []

    def ended(partition: int, number: int, error: ErrorCode) -> None:
        ends.append((partition, number, error))

    for number in range(400):
        partition = number % 4
        epoch = epochs[partition] - (number % 7 == 0)
        records = (offset(number),) if number % 5 else ()
        store.log.append(offsets_partition(partition), epoch, records, partial(ended, partition, number))
        if number % 50 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*(store.begin(partition, epochs[partition]) for partition in range(4)))
    assert len(ends) == 400
    for partition in range(4):
        mine = [(number, error) for where, number, error in ends if where == partition]
        assert mine == [(number, NONE if number % 7 else FENCED) for number in range(partition, 400, 4)]


async def test_ends_of_appends_that_were_written_together_are_reported_together(durable: Store) -> None:
    epoch = await durable.elect(0)
    reported = durable.watching.reported
    reported.clear()
    last: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(number: int, error: ErrorCode) -> None:
        assert error is NONE
        reported[-1].append(number)
        if number == 9:
            last.set_result(None)

    for number in range(10):
        durable.log.append(PARTITION, epoch, (offset(number),), partial(ended, number))
    await asyncio.wait_for(last, PATIENCE)
    assert reported == [list(range(10))]


async def test_all_records_of_an_append_are_there_or_none(store: Store) -> None:
    epoch = await store.elect(0)
    many = tuple(offset(number, partition=number) for number in range(3_000))
    assert await store.append(0, epoch, *many) is NONE
    assert await store.append(0, epoch - 1, *many) is FENCED
    assert await store.read(0) == list(many)


async def test_a_long_partition_is_read_piece_by_piece(store: Store) -> None:
    epoch = await store.elect(0)
    records = [offset(number, partition=number) for number in range(4_321)]
    for begin in range(0, len(records), 500):
        assert await store.append(0, epoch, *records[begin : begin + 500]) is NONE
    pieces = await store.pieces(0)
    assert [record for piece in pieces for record in piece] == records
    if store.name != "memory":
        assert len(pieces) > 3


async def test_reading_one_partition_does_not_hold_up_another(store: Store) -> None:
    long, other = await store.elect(0), await store.elect(1)
    await store.append(0, long, *(offset(number, partition=number) for number in range(5_000)))
    reading = asyncio.ensure_future(store.read(0))
    for number in range(20):
        assert await store.append(1, other, offset(number, group="other")) is NONE
    assert len(await reading) == 5_000
    assert len(await store.read(1)) == 20


async def test_a_partition_has_one_writer(store: Store) -> None:
    epochs = [await store.elect(partition) for partition in range(3)]
    assert await store.append(1, epochs[1], offset(1), offset(1, partition=1)) is NONE
    assert await store.append(2, epochs[2], offset(2)) is NONE
    assert await store.append(1, epochs[1], gone()) is NONE
    assert await store.append(1, epochs[1] - 1, offset(9)) is FENCED
    assert await store.read(0) == []
    assert await store.read(1) == [offset(1), offset(1, partition=1), gone()]
    assert await store.read(2) == [offset(2)]


async def test_a_restart_shows_what_was_stored(durable: Store) -> None:
    epoch = await durable.elect(0)
    assert await durable.append(0, epoch, offset(1), group()) is NONE
    await durable.restart()
    assert await durable.read(0) == [offset(1), group()]
    epoch = await durable.elect(0)
    assert await durable.append(0, epoch, offset(2)) is NONE
    await durable.restart()
    assert await durable.read(0) == [offset(1), group(), offset(2)]


async def test_closing_finishes_what_was_begun(durable: Store) -> None:
    epoch = await durable.elect(0)
    begun = [durable.begin(0, epoch, offset(number)) for number in range(100)]
    await durable.close()
    assert [end.result() for end in begun] == [NONE] * 100
    await durable.start()
    assert len(await durable.read(0)) == 100


async def test_the_log_grows_with_its_keys_and_not_with_its_commits(store: Store) -> None:
    epoch = await store.elect(0)
    for begin in range(0, 10_000, 100):
        records = [offset(number, partition=number % 3) for number in range(begin, begin + 100)]
        assert await store.append(0, epoch, *records) is NONE
    async with asyncio.timeout(PATIENCE):
        # Compaction goes on beside the appends, and gives way to readers.
        while len(found := await store.read(0, epoch)) > 2_000:
            assert await store.append(0, epoch, offset(9_999)) is NONE
    assert compacted(found) == [offset(9_997, partition=1), offset(9_998, partition=2), offset(9_999)]
