"""Plays the steps of one script: requests of clients that remember their answers, waits, and actions on the cluster."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from rejoin.conform.player.connection import ClientConnections, ConnectionClosed, SentRequest
from rejoin.conform.player.messages import Json, api_key, newest
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import ScriptFailed
from rejoin.conform.steps.requests import NEWEST, Step, StepClient, StepRequest, request_body
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.registry import BY_NAME

COMMANDS: Final = frozenset({"member", "forget", "wait", "at", "await", "move", "stop", "start", "fill", "loaded"})
"""First words of steps that are not requests."""

SETTLE_SECONDS: Final = 0.06
LAST_SECONDS: Final = 0.15
FOLLOWED_SECONDS: Final = 0.25
"""After this the followers have reported to a new leader; until then readers see less than was written."""

RETRY: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
NOT_SPOKEN: Final = "is not spoken here"


@dataclass(frozen=True)
class Steps:
    """The run of a script that is written in steps."""

    steps: tuple[Step, ...]

    async def __call__(self, play: Play) -> None:
        await StepPlayer(play).run(self.steps)


class StepPlayer:
    """Plays steps once."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._target = play.target
        self._first = next(iter(self._target.addresses))
        self._clients: dict[str, StepClient] = {}
        self._open: dict[str, deque[SentRequest]] = {}
        self._coordinator = self._first
        self._partition = partition_for(play.group, self._target.offsets_partitions)

    async def run(self, steps: tuple[Step, ...]) -> None:
        """All steps in their order. Time counts from when the group's coordinator is found."""
        self._coordinator = await find_coordinator(self._play.connections, self._play.group, self._first)
        self._play.begin()
        self._play.mark(coordinator=self._coordinator)
        for step in steps:
            await self._do(step)
        await asyncio.sleep(LAST_SECONDS)
        self._play.mark(end=True)

    async def _do(self, step: Step) -> None:
        command = next((word for word in step if word in COMMANDS), None)
        if command is None:
            await self._ask(step)
            return
        value = step[command]
        match command:
            case "member":
                self._client(value).says |= {name: item for name, item in step.items() if name != "member"}
            case "forget":
                self._client(value).forget()
            case "wait":
                await asyncio.sleep(value / 1000)
            case "at":
                await asyncio.sleep(max(0.0, value - self._play.elapsed()) / 1000)
            case "await":
                for name in [value] if isinstance(value, str) else value:
                    await self._await(name, step.get("expect"))
            case _:
                await self._surround(command, value, step)

    # --- requests

    async def _ask(self, step: Step) -> None:
        step = copy.deepcopy(step)
        name, api = next(iter(step.items()))
        client = self._client(name)
        version = self._version(api, step.get("version"))
        broker = step.get("broker", self._coordinator)
        step_request = StepRequest(self._play.group, client, self._clients, step, version, self._partition)
        body = request_body(step_request, api)
        asked = await self._play.send(name, broker, api, version, body, claimed=step.get("claims", version))
        self._open.setdefault(name, deque()).append(asked)
        if step.get("parks"):
            await asyncio.sleep(SETTLE_SECONDS)
            if asked.answer.done():
                self._complain(f"{name}'s {api} was answered at once, but parks was said")
        else:
            await self._settle(client, asked, step.get("expect"))

    async def _await(self, name: str, expected: str | None) -> None:
        waiting = self._open.get(name)
        if not waiting:
            raise self._failed(f"{name} waits for nothing")
        await self._settle(self._client(name), waiting[0], expected)

    async def _settle(self, client: StepClient, asked: SentRequest, expected: str | None) -> None:
        """Wait for an answer, and let the client learn from it."""
        api, waiting = asked.api, self._open[client.name]
        try:
            answer = await self._play.answer(asked)
        except ConnectionClosed:
            waiting.remove(asked)
            if expected != "CLOSED":
                self._complain(f"{client.name}'s {api} was not answered, the connection was closed")
            return
        waiting.remove(asked)
        if expected is not None and error_of(answer) != expected:
            self._complain(f"{client.name}'s {api} was answered {error_of(answer)}, not {expected}: {answer}")
        client.learn(api, answer)

    def _version(self, api: str, given: int | None) -> int:
        lowest, highest = self._target.versions.get(api_key(api), (0, -1))
        if given is not None and (lowest <= given <= highest or not self._target.lenient):
            return given
        if given is not None:
            raise self._failed(f"{api} v{given} {NOT_SPOKEN}")
        ours = BY_NAME[api].max_version if api in BY_NAME else newest(api)
        version = min(ours, highest, NEWEST.get(api, ours))
        if version < lowest:
            raise self._failed(f"{api} {NOT_SPOKEN}")
        return version

    # --- actions

    async def _surround(self, command: str, value: Any, step: Step) -> None:
        actions, play = self._target.actions, self._play
        if actions is None:
            raise self._failed(f"there is no {command} here")
        match command:
            case "move":
                more = {"loading": True} if step.get("loading") else {}
                await actions.move(self._partition, value, lambda: play.mark(coordinator=value, **more))
                if more:
                    self._coordinator = value
                    await loading(play.connections, play.group, value)
                else:
                    await self._follow(value)
            case "fill":
                await actions.fill(self._partition, self._target.offsets_partitions, self._coordinator, value)
            case "loaded":
                await loaded(play.connections, play.group, self._coordinator)
                play.mark(loaded=self._coordinator)
                await asyncio.sleep(FOLLOWED_SECONDS)
            case "stop":
                stopped = self._coordinator if value == "coordinator" else value
                play.mark(stopped=stopped)
                await actions.stop(stopped, step.get("gently", False))
                await self._follow(None, besides=stopped)
                play.mark(coordinator=self._coordinator)
            case "start":
                await actions.start(value)
                play.mark(started=value)

    async def _follow(self, broker: int | None, besides: int | None = None) -> None:
        """Wait until the group's coordinator is found and has loaded its groups."""
        others = [number for number in self._target.addresses if number != besides]
        async with asyncio.timeout(30):
            while True:
                found = await find_coordinator(self._play.connections, self._play.group, others[-1])
                if found != besides and (broker is None or found == broker):
                    break
                await asyncio.sleep(0.02)
            self._coordinator = found
            await loaded(self._play.connections, self._play.group, found)
            await asyncio.sleep(FOLLOWED_SECONDS)

    def _client(self, name: str) -> StepClient:
        return self._clients.setdefault(name, StepClient(name))

    def _complain(self, problem: str) -> None:
        if not self._target.lenient:
            raise self._failed(problem)

    def _failed(self, problem: str) -> ScriptFailed:
        return ScriptFailed(f"{self._play.script.name}: {problem}")


def error_of(answer: Any) -> str:
    """The first error of an answer by name, or NONE."""
    code = next((code for code in errors_in(answer) if code), 0)
    return ErrorCode(code).name if code in set(ErrorCode) else str(code)


def errors_in(answer: Any) -> list[int]:
    """Every error code of an answer."""
    if isinstance(answer, dict):
        found = [answer["errorCode"]] if "errorCode" in answer else []
        return found + [code for name, item in answer.items() if name != "errorCode" for code in errors_in(item)]
    if isinstance(answer, list):
        return [code for item in answer for code in errors_in(item)]
    return []


async def find_coordinator(connections: ClientConnections, group: str, broker: int) -> int:
    """The number of the broker that coordinates a group, once there is one."""
    async with asyncio.timeout(30):
        while True:
            body: Json = {"keyType": 0, "key": group}
            answer = await connections.ask("cluster", broker, "FindCoordinator", 1, body)
            if not answer["errorCode"]:
                number: int = answer["nodeId"]
                return number
            await asyncio.sleep(0.05)


async def loaded(connections: ClientConnections, group: str, broker: int) -> None:
    """Wait until a broker answers for a group."""
    while await _error(connections, group, broker) in RETRY:
        await asyncio.sleep(0.01)


async def loading(connections: ClientConnections, group: str, broker: int) -> None:
    """Wait until a broker has begun to load a group's partition. Raises ScriptFailed when that was over too soon."""
    error: int = ErrorCode.NOT_COORDINATOR
    while error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        error = await _error(connections, group, broker)
    if error != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        raise ScriptFailed(f"{group}: was loaded before any client could ask")


async def _error(connections: ClientConnections, group: str, broker: int) -> int:
    answer = await connections.ask("cluster", broker, "DescribeGroups", 0, {"groups": [group]})
    error: int = answer["groups"][0]["errorCode"]
    return error
