"""What docs/testing.md shows, done as it stands there, with real consumers."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from rejoin.client import Consumer
from rejoin.client.config import ConsumerConfig
from rejoin.coordinator.config import Settings
from rejoin.coordinator.testing import FaultHandle, GroupCoordinator, running
from rejoin.coordinator.testing.pytest_plugin import OPTIONS
from tests.docs.texts import TEXTS, python_blocks
from tests.paths import ROOT

TESTING = TEXTS["docs/testing.md"]
[SHOWN_TEST] = re.findall(r"```python\n(@pytest\.mark\.group_coordinator.*?)```", TESTING, re.DOTALL)
[SHOWN_REQUESTS] = re.findall(
    r"```\nrejoin serve --control --clock virtual [^\n]+ &\nrejoin consume [^\n]+ --consumers 3 [^\n]+ &\n(.*?)```",
    TESTING,
    re.DOTALL,
)

pytest_plugins = ("pytester",)

PREFACE = '''
import pytest
import threading
from confluent_kafka import Consumer

@pytest.fixture(autouse=True)
def consumers(group_coordinator):
    """Those who point their consumers at it."""
    ended = threading.Event()

    def consume(client_id):
        settings = {"group.id": "orders-app", "client.id": client_id, "log_level": 0}
        consumer = Consumer({"bootstrap.servers": group_coordinator.bootstrap_servers} | settings)
        consumer.subscribe(["orders"])
        while not ended.is_set():
            consumer.poll(0.05)
        consumer.close()

    polling = [threading.Thread(target=consume, args=(name,)) for name in ("one", "two")]
    for each in polling:
        each.start()
    yield
    ended.set()
    for each in polling:
        each.join()

'''
ASYNC_TEST = SHOWN_TEST.replace("def test_", "async def test_").replace(
    "    group_coordinator.", "    await group_coordinator."
)


@pytest.mark.parametrize(
    ("configuration", "test"),
    [
        ("addopts = -p no:asyncio", SHOWN_TEST),
        ("asyncio_mode = auto", ASYNC_TEST),
        ("asyncio_mode = strict", f"@pytest.mark.asyncio\n{ASYNC_TEST}"),
    ],
    ids=["without pytest-asyncio", "with its mode auto", "with its mark"],
)
def test_the_test_that_is_shown_passes(pytester: pytest.Pytester, configuration: str, test: str) -> None:
    pytester.makefile(".ini", pytest=f"[pytest]\n{configuration}\n")
    pytester.makepyfile(PREFACE + test)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist").assert_outcomes(passed=1)


def test_the_readme_shows_the_same_test() -> None:
    [shown] = [block for block in python_blocks("README.md") if "test_a_crashed_member" in block]
    assert shown.partition("...  ")[2].split("\n", 1)[1] == SHOWN_TEST.partition("...  ")[2].split("\n", 1)[1]


def test_the_poison_message_of_the_readme_is_that_of_the_examples() -> None:
    [shown] = [block for block in python_blocks("README.md") if "poison" in block]
    example = (ROOT / "examples" / "testing" / "test_poison_message.py").read_text()
    assert shown.strip() in example.replace("(group_coordinator: GroupCoordinator) -> None:", "(group_coordinator):")


@asynccontextmanager
async def three_consumers(bootstrap_servers: str) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        tasks = []
        for _ in range(3):
            consumer = Consumer("orders", bootstrap_servers=bootstrap_servers, group_id="orders-app")
            await stack.enter_async_context(consumer)
            tasks.append(asyncio.ensure_future(poll_on(consumer)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def poll_on(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout_ms=50)


async def test_the_requests_that_are_shown_are_answered_in_their_order() -> None:
    lines = SHOWN_REQUESTS.strip().splitlines()
    assert len(lines) == 6
    async with (
        asyncio.timeout(60),
        running(clock="virtual", topics={"orders": 3}) as coordinator,
        three_consumers(coordinator.url),
        aiohttp.ClientSession(coordinator.url) as session,
    ):
        for line in lines:
            command = re.fullmatch(r"curl -s localhost:9095(\S+)(?: --json '(.*)')?(?: --retry.*)?", line)
            assert command is not None, line
            path, body = command.groups()
            request = session.get(path) if body is None else session.post(path, json=json.loads(body))
            async with request as answer:
                assert answer.status < 300, f"{line}: {await answer.text()}"


@pytest.mark.parametrize("kind", [GroupCoordinator, FaultHandle])
def test_the_reference_has_every_method_with_its_parameters_in_order(kind: type[object]) -> None:
    text = TEXTS["docs/testing.md"]
    missing = []
    for name, member in vars(kind).items():
        if name.startswith("_") or name == "do" or not callable(member):
            continue
        if f"`{name}({', '.join(_parameters(member))})`" not in text:
            missing.append(name)
    assert missing == []


def _parameters(method: Callable[..., object]) -> list[str]:
    """What a method takes, with ``*`` before the first argument that is given by keyword only."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    names = [each.name for each in parameters]
    keyword_only = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    if keyword_only:
        names.insert(names.index(keyword_only[0]), "*")
    return names


def test_a_fast_clock_that_is_shown_is_slow_enough_for_default_consumers() -> None:
    """The classic group protocol, and the consumer group protocol with the interval that the coordinator sets."""
    [speed] = {int(each) for each in re.findall(r"fast:(\d+)` works", TESTING)}
    of_consumers = ConsumerConfig()
    settings = Settings()
    sessions = (of_consumers.session_timeout_ms, settings.group_consumer_session_timeout_ms)
    heartbeats = (of_consumers.heartbeat_interval_ms, settings.group_consumer_heartbeat_interval_ms)
    assert all(each / speed > 1.5 * interval for each, interval in zip(sessions, heartbeats, strict=True))
    assert f'[`"fast:{speed}"`](#a-clock-that-runs-faster)' in TESTING


def test_the_reference_has_every_option_of_the_marker() -> None:
    assert f"group_coordinator({', '.join(f'{name}=' for name in OPTIONS)})" in TEXTS["docs/testing.md"]
