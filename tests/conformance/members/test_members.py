"""Our client and Kafka's Java client lived the same lives on a real Kafka: what they asked is the same.

``make record-members`` plays them again. Some are played here, by our client on our own coordinator.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

import pytest

from conformance.members import member
from conformance.members.lives import LIVES, SETTINGS, Life
from conformance.members.proxy import HOST, Proxy, until_member, until_quiet
from conformance.members.sequences import (
    DIFFERENCES,
    ExtraGeneration,
    sequences,
    without_difference,
    without_repeated_lookups,
)
from rejoin.coordinator.testing import running
from tests.paths import GOLDEN

FOLDER = GOLDEN / "members"
MOVES = [life.name for life in LIVES if life.brokers > 1]
"""Lives in which the coordinator moves: how often a member must ask for it is a matter of time."""
TOLERANCE_MS = 150


def recorded(life: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{life}.json").read_text())
    return found


def compared(life: str, client: str, lines: list[str]) -> list[str]:
    """Lines that must be equal for both clients."""
    for each in DIFFERENCES:
        if each.life == life:
            return without_difference(lines, each) if each.client == client else without_repeated_lookups(lines)
    return without_repeated_lookups(lines) if life in MOVES else lines


@pytest.mark.parametrize("life", [life.name for life in LIVES])
def test_both_clients_ask_the_same(life: str) -> None:
    found = recorded(life)
    assert found["java"].keys() == found["ours"].keys()
    for name, java in found["java"].items():
        for kind, lines in java.items():
            ours = found["ours"][name][kind]
            assert compared(life, "ours", ours) == compared(life, "java", lines), f"{kind} of {name}"


@pytest.mark.parametrize("life", [life.name for life in LIVES])
def test_both_groups_go_through_the_same_generations(life: str) -> None:
    transitions = recorded(life)["transitions"]
    assert transitions["java"]
    assert compared(life, "ours", transitions["ours"]) == compared(life, "java", transitions["java"])


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda each: each.life)
def test_each_difference_is_there(difference: ExtraGeneration) -> None:
    transitions = recorded(difference.life)["transitions"]
    assert len(transitions[difference.client]) == 1 + min(map(len, transitions.values()))


@pytest.mark.parametrize("life", MOVES)
def test_both_clients_look_for_a_coordinator_that_moved_as_soon(life: str) -> None:
    waits = recorded(life)["backoffs"]
    assert waits["ours"].keys() == waits["java"].keys() >= {"Heartbeat to FindCoordinator"}
    for kind, java in waits["java"].items():
        assert abs(waits["ours"][kind] - java) <= TOLERANCE_MS, kind


class Players:
    """Our members in this process, on our own coordinator."""

    def __init__(self, life: Life, proxy: Proxy) -> None:
        self._life, self._proxy = life, proxy
        self._commands: dict[str, deque[str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def client_id(self, name: str) -> str:
        return f"ours-{self._life.name}.{name}"

    async def play(self) -> None:
        for step in self._life.steps:
            match step.split():
                case ["start", name]:
                    commands = self._commands[name] = deque()
                    settings = {
                        "bootstrap.servers": f"{HOST}:{self._proxy.port}",
                        "group.id": f"ours-{self._life.name}",
                        "client.id": self.client_id(name),
                        **SETTINGS,
                        **self._life.settings,
                    }
                    playing = member.play(self._life.commit, self._life.topics, settings, commands)
                    self._tasks[name] = asyncio.create_task(playing)
                case ["close", name]:
                    self._commands[name].append("close")
                    await self._tasks.pop(name)
                case ["settle"]:
                    for name in self._tasks:
                        await until_member(self._proxy, self.client_id(name), 0)
                    await until_quiet(self._proxy, "ours", 0.8)


@pytest.mark.parametrize("name", ["cooperative", "commit-sync"])
async def test_our_client_asks_our_coordinator_what_it_asked_kafka(
    name: str, unused_tcp_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (life,) = [life for life in LIVES if life.name == name]
    life = Life(
        life.name, tuple(step for step in life.steps if "sleep" not in step), commit=life.commit, settings=life.settings
    )
    async with Proxy(unused_tcp_port) as proxy:
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{unused_tcp_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{proxy.port}",
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1_000,
        }
        async with running(topics={"orders": 6}, settings=settings) as kafka:
            await kafka.produce("orders", None, 5)
            players = Players(life, proxy)
            await players.play()
            for each, kinds in recorded(name)["ours"].items():
                asked = sequences(one for one in proxy.exchanges if one.client_id == players.client_id(each))
                assert _untimed(asked["membership"]) == _untimed(kinds["membership"])
                assert asked["offsets"] == kinds["offsets"]
    assert "assigned orders-0" in capsys.readouterr().out


def _untimed(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("heartbeats every")]
