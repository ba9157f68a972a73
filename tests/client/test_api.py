"""The Python API over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from rejoin.client import (
    CommitFailedError,
    Consumer,
    ConsumerRuntime,
    FencedInstanceIdError,
    HttpTransport,
    IllegalStateError,
    KafkaError,
    ListenerError,
    OffsetAndMetadata,
    ProblemError,
    RebalanceListener,
    Records,
    TopicPartition,
    WakeupError,
)
from rejoin.client.core.effects import PollReturned
from rejoin.client.records import by_range
from rejoin.client.transports.http import base_url
from rejoin.coordinator.service.app import App
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import CoordinatorFound, JoinSent
from tests.client.conftest import Serve

ALL = [TopicPartition("orders", index) for index in range(4)]
QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 50, "session_timeout_ms": 6_000}


def consumer(app: App, *topics: str, **settings: Any) -> Consumer:
    settings.setdefault("group_id", "g")
    return Consumer(*(topics or ("orders",)), bootstrap_servers=app.url, **{**QUICK, **settings})


async def until(reached: Callable[[], bool], *consumers: Consumer) -> None:
    """Poll all of these until something is so."""
    async with asyncio.timeout(60):
        while not reached():
            await asyncio.gather(*(each.poll(50) for each in consumers))


async def test_a_consumer_iterates_over_records(serve: Serve) -> None:
    app = await serve()
    async with consumer(app) as reader:
        seen: dict[int, int] = {}
        async for record in reader:
            assert record.offset == seen.get(record.partition, 0), "records of a partition come in order"
            assert record.value == f"orders-{record.partition}@{record.offset}".encode()
            seen[record.partition] = record.offset + 1
            if len(seen) == 4 and min(seen.values()) >= 2:
                break
        assert reader.assignment() == ALL
        assert {p.partition: await reader.position(p) for p in ALL} == seen


async def test_commit_commits_what_was_handed_out_and_no_more(serve: Serve) -> None:
    app = await serve()
    async with consumer(app, enable_auto_commit=False) as reader:
        first = await reader.getone()
        await reader.commit()
        partition = TopicPartition(first.topic, first.partition)
        assert await reader.committed(partition) == OffsetAndMetadata(first.offset + 1)
        others = [await reader.committed(each) for each in ALL if each != partition]
        assert set(others) <= {None, OffsetAndMetadata(0)}


async def test_closing_while_iterating_commits_what_was_handed_out(serve: Serve) -> None:
    app = await serve()
    async with consumer(app) as reader:
        first = await reader.getone()
    partition = TopicPartition(first.topic, first.partition)
    async with consumer(app, group_id="g") as reader:
        assert await reader.committed(partition) == OffsetAndMetadata(1)


async def test_two_consumers_share_and_one_takes_over(serve: Serve) -> None:
    app = await serve()
    async with consumer(app, assignor="cooperative-sticky") as one:
        async with consumer(app, assignor="cooperative-sticky") as two:
            await until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
            assert sorted(one.assignment() + two.assignment()) == ALL
            assert one.group_metadata().generation_id == two.group_metadata().generation_id
        await until(lambda: len(one.assignment()) == 4, one)


@pytest.mark.parametrize("kind", ["plain", "async", "object"])
async def test_listeners_may_be_plain_or_async_and_may_commit(serve: Serve, kind: str) -> None:
    app = await serve()
    calls: list[tuple[str, int]] = []

    class Plain(RebalanceListener):
        def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
            calls.append(("assigned", len(assigned)))

        def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
            calls.append(("revoked", len(revoked)))

    class Async(RebalanceListener):
        async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
            await asyncio.sleep(0.01)
            calls.append(("assigned", len(assigned)))

        async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
            await reader.commit()
            calls.append(("revoked", len(revoked)))

    class OnlyRevoked:
        def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
            calls.append(("revoked", len(revoked)))

    listener: object = {"plain": Plain, "async": Async, "object": OnlyRevoked}[kind]()
    async with consumer(app, listener=listener, enable_auto_commit=False) as reader:
        await reader.getone()
    expected = [("assigned", 4), ("revoked", 4)]
    assert calls == (expected[1:] if kind == "object" else expected)


async def test_what_a_listener_raises_comes_from_poll(serve: Serve) -> None:
    app = await serve()

    class Broken(RebalanceListener):
        def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
            if assigned:
                raise RuntimeError("oops")

    async with consumer(app, listener=Broken()) as reader:
        with pytest.raises(ListenerError, match="oops"):
            await until(lambda: False, reader)
        assert reader.assignment() == ALL


async def test_getmany_gives_records_by_partition(serve: Serve) -> None:
    app = await serve()
    async with consumer(app, max_poll_records=10) as reader:
        await until(lambda: bool(reader.assignment()), reader)
        async with asyncio.timeout(60):
            records: dict[TopicPartition, list[Any]] = {}
            while not records:
                records = await reader.getmany(ALL[2], timeout_ms=200, max_records=3)
        assert list(records) == [ALL[2]]
        assert len(records[ALL[2]]) <= 3


async def test_seek_pause_and_resume(serve: Serve) -> None:
    app = await serve({"orders": 1})
    partition = ALL[0]
    async with consumer(app, max_poll_records=5) as reader:
        await reader.getone()
        reader.seek(partition, 0)
        assert (await reader.getone()).offset == 0
        reader.pause(partition)
        assert reader.paused() == [partition]
        reader.seek_to_beginning()
        assert list(await reader.poll(100)) == []
        reader.resume(partition)
        async with asyncio.timeout(60):
            assert (await reader.getone()).offset == 0
        with pytest.raises(IllegalStateError):
            reader.seek(partition, -1)
        with pytest.raises(IllegalStateError):
            reader.seek(TopicPartition("orders", 9), 1)


async def test_seek_to_end_skips_what_was_not_read(serve: Serve) -> None:
    app = await serve({"orders": 2}, rate=100_000.0)
    first, second = ALL[:2]
    async with consumer(app, max_poll_records=5) as reader:
        await until(lambda: reader.assignment() == [first, second], reader)
        ends = {partition: end or 0 for partition, end in (await reader.end_offsets([first, second])).items()}
        reader.seek_to_end(first)
        assert await reader.position(first) >= ends[first]
        assert await reader.position(second) < ends[second], "the others stay where they were"
        reader.seek_to_end()
        assert await reader.position(second) >= ends[second]
        await until(lambda: reader.lag(first) is not None, reader)
        await reader.commit()
        committed = await reader.committed(first)
        assert committed is not None
        assert committed.offset >= ends[first]
        with pytest.raises(IllegalStateError):
            reader.seek_to_end(TopicPartition("orders", 9))


async def test_an_enforced_rebalance_takes_the_group_round_once_and_gives_its_reason(serve: Serve) -> None:
    app = await serve(rate=0.0)
    events: list[Event] = []
    async with (
        consumer(app, on_event=lambda event, at_ms: events.append(event)) as one,
        consumer(app) as two,
    ):
        await until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
        before = one.group_metadata().generation_id
        one.enforce_rebalance("planned maintenance")
        assert one.group_metadata().generation_id == before, "nothing happens before the next poll"
        await until(lambda: {each.group_metadata().generation_id for each in (one, two)} == {before + 1}, one, two)
        assert sorted(one.assignment() + two.assignment()) == ALL
        assert "planned maintenance" in [event.reason for event in events if isinstance(event, JoinSent)]
        async with aiohttp.ClientSession() as session, session.get(f"{app.url}/events") as answer:
            assert "planned maintenance" in await answer.text()
    with pytest.raises(IllegalStateError, match="closed"):
        one.enforce_rebalance()


async def test_a_rebalance_cannot_be_enforced_without_a_group(serve: Serve) -> None:
    app = await serve()
    async with Consumer(bootstrap_servers=app.url) as reader:
        with pytest.raises(IllegalStateError, match=r"group\.id"):
            reader.enforce_rebalance()


async def test_offsets_by_time_beginning_and_end(serve: Serve) -> None:
    app = await serve({"orders": 1}, rate=100.0)
    async with Consumer(bootstrap_servers=app.url) as reader:
        assert await reader.beginning_offsets(ALL[:1]) == {ALL[0]: 0}
        end = (await reader.end_offsets(ALL[:1]))[ALL[0]]
        assert end is not None
        assert (await reader.offsets_for_times({ALL[0]: 0}))[ALL[0]] in {0, None}
        with pytest.raises(IllegalStateError):
            await reader.offsets_for_times({ALL[0]: -1})


async def test_partitions_can_be_read_without_a_group(serve: Serve) -> None:
    app = await serve()
    async with Consumer(bootstrap_servers=app.url, auto_offset_reset="earliest") as reader:
        await reader.assign([("orders", 1)])
        assert (await reader.getone()).partition == 1
        with pytest.raises(KafkaError):
            await reader.commit()
        with pytest.raises(IllegalStateError):
            reader.group_metadata()


async def test_wakeup_ends_a_poll(serve: Serve) -> None:
    app = await serve(rate=0.0)
    async with consumer(app) as reader:
        await until(lambda: bool(reader.assignment()), reader)
        poll = asyncio.create_task(reader.poll(60_000))
        await asyncio.sleep(0.01)
        reader.wakeup()
        with pytest.raises(WakeupError):
            await poll


async def test_commit_async_calls_back_during_a_later_call(serve: Serve) -> None:
    app = await serve()
    errors: list[KafkaError | None] = []
    async with consumer(app, enable_auto_commit=False) as reader:
        await reader.getone()
        reader.commit_async(callback=lambda offsets, error: errors.append(error))
        assert errors == []
        await reader.commit({ALL[0]: 1})
        assert errors == [None]


async def test_a_fenced_consumer_raises_from_poll(serve: Serve) -> None:
    app = await serve()
    async with consumer(app, group_instance_id="i") as old:
        await until(lambda: bool(old.assignment()), old)
        async with consumer(app, group_instance_id="i") as new:
            await until(lambda: bool(new.assignment()), new)
            with pytest.raises(FencedInstanceIdError):
                await until(lambda: False, old)


async def test_heartbeats_go_on_while_the_callers_code_awaits(serve: Serve) -> None:
    app = await serve(group_min_session_timeout_ms=100)
    async with consumer(app, session_timeout_ms=3_000) as reader:
        await reader.getone()
        generation = reader.group_metadata().generation_id
        await asyncio.sleep(3.5)
        await reader.poll(100)
        assert reader.group_metadata().generation_id == generation


async def test_a_consumer_that_does_not_poll_leaves(serve: Serve) -> None:
    app = await serve()
    events: list[Event] = []
    async with consumer(app, max_poll_interval_ms=300, on_event=lambda event, at_ms: events.append(event)) as reader:
        await until(lambda: bool(reader.assignment()), reader)
        events.clear()  # on a busy machine it may have left and come back by now
        async with asyncio.timeout(60):
            while "poll_timeout_exceeded" not in [event.name for event in events]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        with pytest.raises(CommitFailedError):
            await reader.commit({ALL[0]: 1})


async def test_a_coordinator_that_comes_later_is_found(serve: Serve, unused_tcp_port: int) -> None:
    async with Consumer(
        "orders", bootstrap_servers=f"http://127.0.0.1:{unused_tcp_port}", group_id="g", **QUICK
    ) as reader:
        assert len(await reader.poll(200)) == 0
        await serve(port=unused_tcp_port)
        async with asyncio.timeout(60):
            assert await reader.getone()


async def test_many_consumers_share_one_runtime(serve: Serve) -> None:
    app = await serve({"orders": 40})
    events: list[Event] = []
    async with HttpTransport([app.url]) as transport:
        runtime = ConsumerRuntime(transport, lambda event, at_ms: events.append(event))
        readers = [Consumer("orders", runtime=runtime, group_id="g", **QUICK) for _ in range(20)]
        for reader in readers:
            await reader.start()
        await until(lambda: all(len(reader.assignment()) == 2 for reader in readers), *readers)
        assert len({reader.config.client_id for reader in readers}) == 20
        await asyncio.gather(*(reader.close() for reader in readers))
        runtime.stop()
    assert sum(isinstance(event, CoordinatorFound) for event in events) >= 20


async def test_a_second_poll_beside_a_running_one_is_refused(serve: Serve) -> None:
    app = await serve(rate=0.0)
    async with consumer(app) as reader:
        poll = asyncio.create_task(reader.poll(2_000))
        await asyncio.sleep(0)
        with pytest.raises(KafkaError, match="another task"):
            await reader.poll(0)
        reader.wakeup()
        with pytest.raises(WakeupError):
            await poll


async def test_subscribe_by_pattern_and_unsubscribe(serve: Serve) -> None:
    app = await serve({"orders": 1, "orders-eu": 1, "clicks": 1})
    async with Consumer(bootstrap_servers=app.url, group_id="g", pattern="orders.*", **QUICK) as reader:
        await until(lambda: len(reader.assignment()) == 2, reader)
        assert reader.subscription() == ("orders", "orders-eu")
        await reader.unsubscribe()
        assert reader.assignment() == []
        with pytest.raises(IllegalStateError):
            await reader.poll()


def test_settings_that_make_no_sense_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"^there is no setting session_timeout; is it session_timeout_ms[?]$"):
        Consumer("orders", group_id="g", session_timeout=1)
    with pytest.raises(ValueError, match=r"^session_timeout_ms: expected an integer, not 'soon'$"):
        Consumer("orders", group_id="g", session_timeout_ms="soon")
    with pytest.raises(ValueError, match=r"^heartbeat.interval.ms must be lower than session.timeout.ms$"):
        Consumer("orders", group_id="g", session_timeout_ms=1_000)
    with pytest.raises(ValueError, match=r"'none', not 'earlyest'; is it earliest[?]$"):
        Consumer("orders", group_id="g", auto_offset_reset="earlyest")
    with pytest.raises(ValueError, match="topics: expected each name as an argument of its own"):
        Consumer(["orders"], group_id="g")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown assignor"):
        Consumer("orders", group_id="g", assignor="best")


def test_clients_without_a_name_are_named_as_kafka_names_them() -> None:
    assert Consumer(group_id="g", group_instance_id="i").config.client_id == "consumer-g-i"
    assert Consumer(group_id="g").config.client_id.startswith("consumer-g-")


# -- the transport


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("127.0.0.1:9095", "http://127.0.0.1:9095"),
        ("node", "http://node:9095"),
        ("http://node:1/", "http://node:1"),
        ("https://node", "https://node:443"),
        ("http://[::1]:9", "http://[::1]:9"),
    ],
)
def test_servers_are_addresses_or_urls(server: str, url: str) -> None:
    assert base_url(server) == url


SERVERS_THAT_ARE_NONE = ["", "ftp://node", "http://", "node:abc", "node:99999", "node:0", "node:-1", "http://[::1"]


@pytest.mark.parametrize("server", SERVERS_THAT_ARE_NONE)
def test_what_is_no_server_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="not a server"):
        base_url(server)


async def test_a_refused_request_is_a_clear_error(serve: Serve) -> None:
    app = await serve()
    async with HttpTransport([f"{app.url}/nowhere"]) as transport:
        reader = Consumer("orders", transport=transport, group_id="g", **QUICK)
        await reader.start()
        with pytest.raises(ProblemError, match="answered 404"):
            await reader.poll(2_000)
        await reader.close()


async def test_nothing_stays_behind_when_consumers_close(serve: Serve) -> None:
    app = await serve()
    before = asyncio.all_tasks()
    async with consumer(app) as reader:
        await reader.poll(300)
    await asyncio.sleep(0)
    mine = {task for task in asyncio.all_tasks() - before if "client" in repr(task.get_coro())}
    assert mine == set()
    async with aiohttp.ClientSession() as session, session.get(f"{app.url}/groups/g") as answer:
        assert (await answer.json())["state"] == "Empty"


def test_records_are_made_as_they_are_looked_at() -> None:
    from rejoin.client import RecordRange  # noqa: PLC0415

    ranges = (RecordRange("t", 0, 5, 8), RecordRange("t", 1, 0, 2))
    records = Records(ranges, by_range(PollReturned(ranges), 99))
    assert len(records) == 5
    assert [record.offset for record in records] == [5, 6, 7, 0, 1]
    assert (records[-1].partition, records[2].offset, records[0].timestamp) == (1, 7, 99)
    assert [record.offset for record in records[1:3]] == [6, 7]
    assert records.partitions() == [("t", 0), ("t", 1)]
    with pytest.raises(IndexError):
        records[5]
