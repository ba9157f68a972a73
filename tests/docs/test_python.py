"""The programs in Python that the documents show do what is said of them, as they stand there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType
from typing import Any, Final

import confluent_kafka
import pytest

from rejoin.client import Consumer, ConsumerRecord
from rejoin.client.commands.assign import app as assign
from rejoin.coordinator.testing import BlockingGroupCoordinator, GroupCoordinator, running, running_in_thread
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coordinator.testing.share_member import configure
from tests.docs.texts import TEXTS, python_blocks
from tests.paths import ROOT

PLAYED_BY: Final = {
    "README.md": [*["tests/docs/test_testing.py"] * 2, "tests/docs/test_python.py"],
    "ARCHITECTURE.md": ["tests/docs/test_contract.py"],
    "docs/assignors.md": [
        "tests/docs/test_python.py",
        "tests/coordinator/core/groups/consumer/test_own_assignor.py",
    ],
    "docs/consumer.md": ["tests/docs/test_python.py"] * 3,
    "docs/producer.md": ["tests/docs/test_python.py", "tests/client/test_transactions.py"],
    "docs/security.md": ["tests/client/admin/test_security_calls.py"],
    "docs/testing.md": [
        "tests/docs/test_testing.py",
        *["tests/docs/test_python.py"] * 2,
        *["tests/docs/test_testing_tables.py"] * 4,
    ],
    "docs/transactions.md": ["tests/docs/test_python.py"],
}
"""Where each program of a text is played, in their order."""

ADDRESS: Final = "127.0.0.1:9092"
NO_DELAY: Final = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 50,
}


def test_every_program_is_played() -> None:
    assert {name: len(blocks) for name in TEXTS if (blocks := python_blocks(name))} == {
        name: len(tests) for name, tests in PLAYED_BY.items()
    }
    for name, tests in PLAYED_BY.items():
        assert [test for test in tests if f'"{name}"' not in (ROOT / test).read_text()] == []


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(topics={"orders": 3}, settings=NO_DELAY) as coordinator:
        yield coordinator


async def _start_at_the_beginning(coordinator: GroupCoordinator, group_id: str) -> None:
    """Commit 0 for all partitions: a group that has committed nothing begins at the end."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=0, committed_metadata=None)
        for number in range(3)
    )
    topics = (OffsetCommitRequestTopic(name="orders", partitions=partitions),)
    await coordinator.call(OffsetCommitRequest(group_id=group_id, member_id="", topics=topics), 8)


@asynccontextmanager
async def _running(main: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """A program without an end, as long as it is needed."""
    task = asyncio.ensure_future(main())
    try:
        yield
    finally:
        task.cancel()
        [ended] = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError)


async def test_the_readme_consumes_and_commits(
    coordinator: GroupCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = [block for block in python_blocks("README.md") if "asyncio.run(main())" in block]
    at_ours = program.replace("group_id=", f'bootstrap_servers="{coordinator.bootstrap_servers}", group_id=')
    scope: dict[str, Any] = {}
    exec(at_ours.removesuffix("asyncio.run(main())\n"), scope)
    await _start_at_the_beginning(coordinator, "orders-app")
    await coordinator.produce("orders", 1, ["first", "second"])
    async with _running(scope["main"]):
        await coordinator.wait_for_committed("orders-app", {("orders", 1): 2})
    assert capsys.readouterr().out == "orders 1 0\norders 1 1\n"


async def test_the_consumer_reads_and_commits(
    coordinator: GroupCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    program, _, _ = python_blocks("docs/consumer.md")
    scope: dict[str, Any] = {}
    exec(program.replace(ADDRESS, coordinator.bootstrap_servers), scope)
    await _start_at_the_beginning(coordinator, "billing")
    await coordinator.produce("orders", 2, [("customer", "paid")])
    async with _running(scope["main"]):
        await coordinator.wait_for_committed("billing", {("orders", 2): 1})
    topic, partition, offset, _, *rest = capsys.readouterr().out.split()
    assert [topic, partition, offset, *rest] == ["orders", "2", "0", "b'customer'", "b'paid'", "()"]


async def test_members_get_what_the_broker_assigns(coordinator: GroupCoordinator) -> None:
    _, program, _ = python_blocks("docs/consumer.md")
    scope = {"Consumer": partial(Consumer, bootstrap_servers=coordinator.bootstrap_servers)}
    first, second = (eval(line, scope) for line in program.splitlines())
    await coordinator.set_topic("orders-eu", 2)
    async with first, second, asyncio.timeout(60):
        while [len(first.assignment()), len(second.assignment())] != [3, 2]:
            await asyncio.gather(first.poll(50), second.poll(50))


async def test_the_share_consumer_gives_a_record_back_until_it_is_done() -> None:
    *_, program = python_blocks("docs/consumer.md")
    delivered: list[tuple[bytes, int | None]] = []
    is_done = asyncio.Event()

    async def work(record: ConsumerRecord) -> bool:
        delivered.append((record.value, record.delivery_count))
        if record.delivery_count == 2:
            is_done.set()
        return record.value == b"easy" or record.delivery_count == 2

    settings = {"group.share.assignment.interval.ms": 0}
    async with running(topics={"jobs": 1}, settings=settings) as coordinator:
        await configure(coordinator, group="workers")
        await coordinator.produce("jobs", 0, ["easy", "hard"])
        scope: dict[str, Any] = {"work": work}
        exec(program.replace("group_id=", f'bootstrap_servers="{coordinator.bootstrap_servers}", group_id='), scope)
        async with _running(scope["main"]), asyncio.timeout(60):
            await is_done.wait()
    assert delivered == [(b"easy", 1), (b"hard", 1), (b"hard", 2)]


async def test_the_producer_sends(coordinator: GroupCoordinator) -> None:
    program, _ = python_blocks("docs/producer.md")
    scope: dict[str, Any] = {}
    exec(program.replace(ADDRESS, coordinator.bootstrap_servers), scope)
    await scope["main"]()
    keyed, other = sorted(await coordinator.records("orders"), key=lambda record: record.key is None)
    assert (keyed.key, keyed.value, dict(keyed.headers)) == (b"customer-7", b"value", {"source": b"web"})
    assert (other.partition, other.value) == (2, b"another")


def test_an_assignor_of_ones_own_is_used_by_its_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, _ = python_blocks("docs/assignors.md")
    module = ModuleType("my_package.first")
    monkeypatch.setitem(sys.modules, "my_package", ModuleType("my_package"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(program, vars(module))
    words = ["--topics", "orders:3,clicks:2", "--members", "a:orders,b:orders+clicks", "--assignor"]
    assert assign([*words, "my_package.first:FirstComeAssignor"], result_action="return_value") == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert ["a", "0-2", "3", "███"] in rows
    assert ["b", "0-1", "2", "██"] in rows


@pytest.mark.parametrize("name", ["test_a_broker_dies", "test_the_last_price_of_each_key_stays"])
def test_a_test_that_is_shown_passes(name: str) -> None:
    [program] = [block for block in python_blocks("docs/testing.md") if f"def {name}(" in block]
    scope: dict[str, Any] = {"pytest": pytest}
    exec(program, scope)
    test = scope[name]
    [mark] = test.pytestmark
    with running_in_thread(**mark.kwargs) as coordinator:
        test(BlockingGroupCoordinator(coordinator))


def test_a_transaction_of_another_client() -> None:
    [program] = python_blocks("docs/transactions.md")
    with running_in_thread(topics={"inputs": 1, "orders": 1}, settings=NO_DELAY) as started:
        coordinator = BlockingGroupCoordinator(started)
        consumer = _at_the_first_record(coordinator)
        offsets = [confluent_kafka.TopicPartition("inputs", 0, 1)]
        scope: dict[str, Any] = {"confluent_kafka": confluent_kafka, "consumer": consumer, "offsets": offsets}
        exec(program.replace(ADDRESS, coordinator.bootstrap_servers), scope)
        consumer.close()
        assert [record.value for record in coordinator.records("orders")][:1] == [b"paid"]
        coordinator.wait_for_committed("transfers", {("inputs", 0): 1})


def _at_the_first_record(coordinator: BlockingGroupCoordinator) -> confluent_kafka.Consumer:
    """A consumer of a group that has the only record there is."""
    coordinator.produce("inputs", 0, ["to pay"])
    settings = {"group.id": "transfers", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": coordinator.bootstrap_servers} | settings)
    consumer.subscribe(["inputs"])
    record = consumer.poll(30)
    assert record is not None
    assert record.value() == b"to pay"
    return consumer
