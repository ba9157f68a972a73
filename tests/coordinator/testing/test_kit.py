"""``rejoin.coordinator.testing``: what a Python test writes."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
import threading
from typing import Any, assert_type, cast
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import aiohttp
import pytest

from rejoin.client import Consumer
from rejoin.client.transports.in_process import InProcessTransport
from rejoin.coordinator.config import WrongSetting, settings_from
from rejoin.coordinator.core.views import GroupView
from rejoin.coordinator.service.http.control_api.operations import OPERATIONS
from rejoin.coordinator.testing import (
    BlockingGroupCoordinator,
    GroupCoordinator,
    NotReached,
    OperationRefused,
    running,
    running_in_thread,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatResponse
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.registry import BY_NAME
from rejoin.transcript.player import play
from tests import paths
from tests.coordinator.control.samples import GROUP, beat, stable

JSON = {"Content-Type": "application/json"}
ROOT = paths.ROOT
ONE_OF_KAFKAS = "request: expected one of Kafka's requests, such as a"
MESSAGES = "rejoin.protocol.messages"


async def test_it_starts_on_a_free_port_with_its_topics() -> None:
    async with running(topics={"orders": 3}) as one, running() as other:
        assert one.url != other.url
        assert one.bootstrap_servers == one.app.endpoints[0].address
        async with aiohttp.ClientSession() as session, session.get(f"{one.url}/topics/orders") as answer:
            assert (await answer.json())["partitions"] == 3


async def test_kafkas_settings_go_by_their_names() -> None:
    async with running(settings={"group.max.size": 7}) as coordinator:
        assert coordinator.app.runtime.node.settings.group_max_size == 7
    with pytest.raises(ValueError, match="sice"):
        async with running(settings={"group.max.sice": 7}):
            pass


@pytest.mark.parametrize("brokers", [1, 3])
async def test_without_a_socket_there_is_no_address(brokers: int) -> None:
    async with running(socket=False, brokers=brokers) as coordinator:
        for name in ("url", "bootstrap_servers"):
            with pytest.raises(OperationRefused, match=r"no socket.*the transport of rejoin.client.transports.in_proc"):
                getattr(coordinator, name)
        if brokers > 1:
            assert {(each.url, each.kafka) for each in await coordinator.brokers()} == {(None, None)}


async def test_consumers_share_a_topic_without_a_socket_between_them() -> None:
    settings = {"group.initial.rebalance.delay.ms": 0}
    async with running(socket=False, topics={"orders": 4}, settings=settings) as coordinator:
        transport = InProcessTransport(coordinator)
        async with (
            Consumer("orders", group_id="g", client_id="one", transport=transport) as one,
            Consumer("orders", group_id="g", client_id="two", transport=transport) as two,
        ):
            polling = [asyncio.ensure_future(_poll(consumer)) for consumer in (one, two)]
            view = await coordinator.wait_for_group("g", state="Stable", members=2, assigned=4)
            assert view is not None
            assert {member.client_id for member in view.members} == {"one", "two"}
            for task in polling:
                task.cancel()
            await asyncio.gather(*polling, return_exceptions=True)


async def _poll(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout_ms=20)


async def test_a_lost_answer_holds_the_group_up_for_a_session_timeout_and_a_push_of_the_clock_ends_it() -> None:
    """The id in the lost answer is never used. The rebalance after the next one waits for it, as in Kafka."""
    settings = {"group.initial.rebalance.delay.ms": 0}
    async with running(socket=False, topics={"orders": 2}, settings=settings) as coordinator:
        lost = await coordinator.add_fault(keys="JoinGroup", when="drop_response")
        moved = await coordinator.add_fault(keys="SyncGroup", error="NOT_COORDINATOR")
        async with Consumer(
            "orders", group_id="g", transport=InProcessTransport(coordinator), retry_backoff_ms=5
        ) as consumer:
            polling = asyncio.ensure_future(_poll(consumer))
            view = await coordinator.wait_for_group("g", state="PreparingRebalance", generation=1, waiting=1)
            assert view is not None
            assert (lost.hits, moved.hits, len(view.pending_members)) == (1, 1, 1)
            await coordinator.advance(45_000)
            await coordinator.wait_for_group("g", state="Stable", members=1, assigned=2)
            transcript = await coordinator.transcript()
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
    assert play(transcript).text == transcript, "real consumers on a running clock can be replayed as well"


async def test_every_operation_of_the_control_api_has_a_method() -> None:
    """The kit and the routes cannot drift apart: each path of the API is one of these."""
    methods = {
        "/control": None,
        "/control/mark": "mark",
        "/control/clock": "advance",
        "/control/faults": "add_fault",
        "/control/faults/{id}": "add_fault",
        "/control/faults/{id}/release": "add_fault",
        "/control/faults/{id}/wait": "add_fault",
        "/control/groups/wait": "wait_for_group",
        "/control/groups/expire": "expire",
        "/control/groups/kick": "kick",
        "/control/share-groups/state": "share_state",
        "/control/share-groups/expire-lock": "expire_lock",
        "/control/share-groups/release": "release_record",
        "/control/share-groups/fail-persister": "fail_persister",
        "/control/groups/configs": "set_group",
        "/control/principals": "set_principal",
        "/control/acls": "set_acls",
        "/control/quotas": "set_quotas",
        "/control/share-groups/wait": "wait_for_share_group",
        "/control/streams-groups/state": "streams_state",
        "/control/streams-groups/wait": "wait_for_streams_group",
        "/control/streams-groups/shut-down": "shut_down_application",
        "/control/partitions/resign": "resign",
        "/control/partitions/elect": "elect",
        "/control/advertise": "advertise",
        "/control/brokers": "brokers",
        "/control/brokers/{id}/stop": "stop_broker",
        "/control/brokers/{id}/kill": "kill_broker",
        "/control/brokers/{id}/start": "start_broker",
        "/control/brokers/{id}/pause": "pause_broker",
        "/control/brokers/{id}/resume": "resume_broker",
        "/control/brokers/{id}/cut": "cut_off",
        "/control/brokers/{id}/heal": "heal",
        "/control/partitions": "partition",
        "/control/partitions/move": "move_leader",
        "/control/partitions/elect-preferred": "elect_preferred",
        "/control/topics": "set_topic",
        "/control/topics/delete": "delete_topic",
        "/control/topics/produce": "produce",
        "/control/topics/compact": "compact",
        "/control/topics/records": "records",
        "/control/offsets/wait": "wait_for_committed",
        "/control/requests": "requests",
        "/control/snapshot": "snapshot",
        "/control/restore": "restore",
        "/control/reset": "reset",
        "/control/transcript": "transcript",
        "/control/broker-log": "broker_log",
        "/control/request-log": "request_log",
    }
    assert {each.path for each in OPERATIONS} == set(methods)
    async with running(socket=False) as coordinator:
        assert all(hasattr(coordinator, name) for name in methods.values() if name is not None)


def test_the_blocking_one_has_every_method_with_the_same_parameters() -> None:
    for name, method in vars(GroupCoordinator).items():
        if name.startswith("_") or name == "do" or not inspect.iscoroutinefunction(inspect.unwrap(method)):
            continue
        blocking = getattr(BlockingGroupCoordinator, name)
        assert list(inspect.signature(blocking).parameters) == list(inspect.signature(method).parameters), name
        assert blocking.__doc__ == method.__doc__, name


def test_checkers_of_types_see_the_parameters_of_the_blocking_one() -> None:
    """mypy reads this: what is given wrongly is an error there, and results are typed."""
    with running_in_thread(clock="virtual", socket=False) as behind:
        coordinator = BlockingGroupCoordinator(behind)
        assert_type(coordinator.group("g"), GroupView | None)
        assert_type(coordinator.advance(1).advanced_ms, int)
        assert_type(coordinator.add_fault(keys="Heartbeat", error=16).release(), int)
        with pytest.raises(TypeError, match="'grup'"):
            coordinator.wait_for_group(grup="g")  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="group_id: expected text, not 5"):
            coordinator.group(5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="'kys'"):
            coordinator.add_fault(kys="Heartbeat", pause=True)  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="count: expected"):
            coordinator.add_fault(keys="Heartbeat", pause=True, count="1")  # type: ignore[arg-type]


def test_each_field_of_a_fault_rule_is_a_typed_argument() -> None:
    assert "throttle_ms: int | None = None" in str(inspect.signature(BlockingGroupCoordinator.add_fault))


def test_a_test_that_blocks_has_one_in_a_thread_of_its_own() -> None:
    with running_in_thread(clock="virtual", topics={"orders": 1}) as behind:
        coordinator = BlockingGroupCoordinator(behind)
        fault = coordinator.add_fault(keys="Heartbeat", error="NOT_COORDINATOR")
        body = json.dumps({"groupId": "g", "generationId": 1, "memberId": "m"}).encode()
        with urlopen(HttpRequest(f"{coordinator.url}/v1/heartbeat", body, JSON), timeout=60) as answer:
            assert json.load(answer)["errorCode"] == 16
        fault.wait()
        assert fault.hits == 1
        assert coordinator.advance(1_000).advanced_ms == 1_000
        with pytest.raises(NotReached, match="there is no group 'g'"):
            coordinator.wait_for_group("g", state="Stable", timeout_ms=1)
        assert "fault 1: before, NOT_COORDINATOR" in coordinator.transcript()
    assert not any(thread.name == "group-coordinator" for thread in threading.enumerate())


async def test_methods_can_be_awaited_on_another_loop() -> None:
    with running_in_thread(clock="virtual", socket=False, topics={"orders": 3}) as coordinator:
        member_id = await stable(coordinator)
        answer = await coordinator.call(beat(member_id))
        assert cast(HeartbeatResponse, answer).error_code == 0
        kept = await coordinator.snapshot()
        assert [fired.timer for fired in (await coordinator.advance_to_next()).fired] == ["session"]
        await coordinator.restore(kept)
        group = await coordinator.group(GROUP)
        assert group is not None
        assert group.state == "Stable"


async def test_what_makes_no_sense_is_reported() -> None:
    async with running(clock="virtual", socket=False) as coordinator:
        with pytest.raises(ValueError, match="there is no API 'Hartbeat'"):
            await coordinator.add_fault(keys="Hartbeat", error="NOT_COORDINATOR")
        with pytest.raises(OperationRefused, match="there is no group 'g'"):
            await coordinator.expire("g", "m")
        with pytest.raises(ValueError, match="Heartbeat has versions 0 to 4, not 9"):
            await coordinator.call(beat("m"), version=9)
        with pytest.raises(OperationRefused, match="expected a version from 1"):
            await coordinator.broker_log("0.8")
        with pytest.raises(ValueError, match=r"^advance_ms: expected greater than or equal to 0, not -1$"):
            await coordinator.advance(-1)
        with pytest.raises(ValueError, match=r"^latency_ms: there is no field unifrom; is it uniform[?]$"):
            await coordinator.add_fault(keys="Heartbeat", latency_ms={"unifrom": [1, 2]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"clock": "slow"}, "clock slow: expected real, virtual, or fast:SPEED"),
        ({"settings": {"group.max.sise": 3}}, "settings: there is no setting group.max.sise; is it group.max.size?"),
        ({"settings": {"group_max_sise": 3}}, "settings: there is no setting group_max_sise; is it group_max_size?"),
        ({"settings": 5}, "settings: expected values by name, as {'group.max.size': 3}, not 5"),
        ({"clock": 5}, "clock: expected real, virtual, or fast:SPEED, as text, not 5"),
        ({"topics": {5: 1}}, "topics: expected partition counts by name, as {'orders': 3}, not {5: 1}"),
        ({"settings": {"group_max_size": "many"}}, "settings: group_max_size: expected an integer, not 'many'"),
        ({"topics": ["orders"]}, "topics: expected partition counts by name, as {'orders': 3}, not ['orders']"),
        ({"topics": {"orders": 0}}, "topic orders: INVALID_PARTITIONS: 0 partitions: expected 1 to 100000"),
        ({"port": 99_999}, "port: expected 0 to 65535, not 99999"),
        ({"socket": "no"}, "socket: expected True or False, not 'no'"),
        ({"socket": 0}, "socket: expected True or False, not 0"),
        ({"brokers": True}, "brokers: expected a number, not True"),
        (
            {"settings": {"group.max.size": 1, "group_max_size": 2}},
            "settings: group.max.size is given twice, as group.max.size and as group_max_size; leave one out",
        ),
        ({"settings": {"session_timeout_ms": 1}}, "settings: session_timeout_ms is a setting of clients"),
        ({"settings": {"group.max_size": 1}}, "settings: there is no setting group.max_size; is it group.max.size?"),
    ],
)
async def test_wrong_options_of_a_coordinator_are_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as raised:
        async with running(**options):
            pass
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("session.timeout.ms", "; it allows what group.min.session.timeout.ms and group.max.session.timeout.ms say"),
        ("max.poll.interval.ms", ""),
    ],
)
def test_a_setting_of_clients_is_told_apart_from_one_that_nobody_has(name: str, instead: str) -> None:
    with pytest.raises(WrongSetting) as raised:
        settings_from([f"{name}=100"], {})
    assert str(raised.value) == f"-c {name}=100: {name} is a setting of clients, not of the coordinator{instead}"


@pytest.mark.parametrize("name", ["nope", "no.such.thing"])
async def test_a_setting_like_no_other_is_not_answered_with_all_of_them(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^settings: there is no setting {name}; docs/settings\.md has all$"):
        async with running(settings={name: 1}):
            pass
    with pytest.raises(WrongSetting, match=rf"^-c {name}=1: there is no setting {name}; docs/settings\.md has all$"):
        settings_from([f"{name}=1"], {})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: g.call(5), f"{ONE_OF_KAFKAS} HeartbeatRequest (from {MESSAGES}.groups.heartbeat import Heartb"),
        (lambda g: g.call("join_group"), f"{ONE_OF_KAFKAS} JoinGroupRequest (from {MESSAGES}.groups.join_group import"),
        (lambda g: g.call(ProduceRequest), f"{ONE_OF_KAFKAS} ProduceRequest (from {MESSAGES}.records.produce import"),
        (lambda g: g.call(beat("m"), version="4"), "version: expected a number, not '4'"),
        (lambda g: g.call(beat("m"), client_id=b"one"), "client_id: expected text, not b'one'"),
        (lambda g: g.call(beat("m"), broker=7), "broker: there is no broker 7; there are: 1, 2"),
        (lambda g: g.group(5), "group_id: expected text, not 5"),
        (lambda g: g.broker_log(3.9), "kafka: expected a valid string, not 3.9"),
        (lambda g: g.request_log(since="x"), "since: expected an integer, not 'x'"),
        (lambda g: g.partition("orders", "0"), "partition: expected an integer, not '0'"),
        (lambda g: g.cut_off(1, brokers=["x"]), "brokers.0: expected an integer, not 'x'"),
        (lambda g: g.cut_off(1, brokers="x"), "brokers: expected an integer, not 'x'"),
        (lambda g: g.add_fault(keys="Hearbeat", error=16), "keys: there is no API 'Hearbeat'; is it Heartbeat?"),
        (lambda g: g.add_fault(latency_ms={"uniform": [1, "x"]}), "latency_ms.uniform.1: expected a valid number"),
    ],
)
async def test_a_wrong_argument_is_one_sentence(call: Any, said: str) -> None:
    async with running(clock="virtual", socket=False, brokers=2, topics={"orders": 3}) as coordinator:
        with pytest.raises(ValueError, match=f"^{re.escape(said)}") as raised:
            await call(coordinator)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("given", ["Heartbeat", "HeartbeatRequest", "ConsumerGroupDescribe", "nonsense"])
async def test_the_import_that_is_named_works(given: Any) -> None:
    async with running(socket=False) as coordinator:
        with pytest.raises(ValueError, match=r"\(from .*\), not '") as raised:
            await coordinator.call(given)
    names: dict[str, Any] = {}
    exec(str(raised.value).partition("(")[2].partition(")")[0], names)
    wanted = "Heartbeat" if given == "nonsense" else given.removesuffix("Request")
    assert names[f"{wanted}Request"] is BY_NAME[wanted].request


async def test_a_broker_is_cut_off_from_one_or_from_several() -> None:
    async with running(clock="virtual", socket=False, brokers=3, topics={"orders": 1}) as coordinator:
        for others in (2, [2], (2, 3)):
            assert (await coordinator.cut_off(1, brokers=others)).state == "running"
        with pytest.raises(OperationRefused, match="topic 'orders' has no partition 4; expected 0 to 0"):
            await coordinator.partition("orders", 4)


async def test_several_brokers_have_no_snapshots_but_start_anew() -> None:
    async with running(clock="virtual", socket=False, brokers=2, topics={"orders": 1}) as coordinator:
        said = "a snapshot needs a single broker, and there are several; reset restarts all of them"
        for refused in (coordinator.snapshot, lambda: coordinator.restore("1")):
            with pytest.raises(OperationRefused, match=said):
                await refused()
        await coordinator.produce("orders", 0, 3)
        await coordinator.reset()
        assert await coordinator.records("orders") == []


async def test_an_offsets_partition_is_named_by_its_group_as_the_first_argument() -> None:
    async with running(clock="virtual", socket=False) as coordinator:
        partition = await coordinator.resign(GROUP)
        assert await coordinator.elect(GROUP) == partition
        assert await coordinator.resign(partition=partition) == partition


async def test_waiting_for_a_group_that_does_not_exist_says_so() -> None:
    async with running(clock="virtual", socket=False, topics={"orders": 3}) as coordinator:
        for wanted in ({}, {"members": 0}, {"state": "Empty"}, {"waiting": 0}):
            with pytest.raises(NotReached, match=r"there is no group 'g'$"):
                await coordinator.wait_for_group("g", **wanted, timeout_ms=0)
        assert await coordinator.wait_for_group("g", state="Dead") is None
        await stable(coordinator)
        assert await coordinator.wait_for_group(GROUP) is not None
        with pytest.raises(NotReached, match=f"there is no group '{GROUP}s'; is it {GROUP}[?]"):
            await coordinator.wait_for_group(f"{GROUP}s", state="Stable", timeout_ms=0)


async def test_records_are_produced_to_one_partition_or_to_all() -> None:
    async with running(clock="virtual", socket=False, topics={"orders": 3}) as coordinator:
        assert list((await coordinator.produce("orders", 1, 100)).end_offsets) == [0, 100, 0]
        assert list((await coordinator.produce("orders", None, 5)).end_offsets) == [5, 105, 5]


async def test_a_call_that_was_not_awaited_is_an_error_at_the_end() -> None:
    with pytest.raises(RuntimeError, match=r"not awaited, so it had no effect: reset\(\) at .*test_kit.py:\d+; "):
        async with running(clock="virtual", socket=False) as coordinator:
            coordinator.reset()  # type: ignore[unused-coroutine]
    with pytest.raises(NotReached) as raised:  # noqa: PT012 (an error of the body is what is tested)
        async with running(clock="virtual", socket=False) as coordinator:
            begun = asyncio.create_task(coordinator.advance(1))
            await begun
            coordinator.reset()  # type: ignore[unused-coroutine]
            await coordinator.wait_for_group("g", timeout_ms=0)
    (note,) = raised.value.__notes__
    assert note.startswith("not awaited, so it had no effect: reset() at ")


def test_nothing_heavy_is_imported_by_a_coordinator() -> None:
    """Neither the consumers nor anything for studies, and no control either unless it is asked for."""
    code = """
import sys, rejoin.coordinator.commands.serve
def unneeded():
    names = ("pyspark", "pandas", "numpy", "pytest", "rejoin.client", "rejoin.simulation", "rejoin.pipeline")
    return [name for name in names if name in sys.modules]
print(unneeded(), any(name.startswith("rejoin.coordinator.control") for name in sys.modules))
from rejoin.coordinator.testing import running
print(unneeded())
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True, timeout=120
    )
    assert ended.stdout.splitlines() == ["[] False", "[]"]
