"""Plays one script against whatever speaks Kafka's protocol, and writes down what was asked and answered, and when."""

from __future__ import annotations

import asyncio
import copy
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from conformance.player.connection import Address, ConnectionClosed, Connections, SentRequest
from conformance.player.messages import Json, api_key, newest
from conformance.player.names import Normalizer
from conformance.player.script import ScriptFailed
from conformance.steps.language import COMMANDS, Script, Step
from conformance.steps.requests import NEWEST, Client, StepRequest, request_body
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.registry import BY_NAME

SETTLE_SECONDS: Final = 0.06
ANSWER_SECONDS: Final = 15.0
LAST_SECONDS: Final = 0.15
FOLLOWED_SECONDS: Final = 0.25
"""After this the followers have reported to a new leader; until then readers see less than was written."""

RETRY: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


NOT_SPOKEN: Final = "is not spoken here"


class ClusterActions(Protocol):
    """What steps can do to a cluster that is not a client's request."""

    async def move(self, partition: int, broker: int, begins: Callable[[], None]) -> None: ...

    async def stop(self, broker: int, gently: bool) -> None: ...

    async def start(self, broker: int) -> None: ...

    async def fill(self, partition: int, partitions: int, broker: int, commits: int) -> None: ...


@dataclass
class Target:
    """Who is spoken to: addresses by broker, and the versions that it takes."""

    addresses: dict[int, Address]
    versions: dict[int, tuple[int, int]]
    topics: dict[str, int]
    offsets_partitions: int
    actions: ClusterActions | None = None
    lenient: bool = False
    """Go on where an answer is not what the script expects: for others than the broker that is recorded."""

    patience: float = ANSWER_SECONDS


class Player:
    """Plays one script once."""

    def __init__(self, script: Script, target: Target) -> None:
        self._script = script
        self._target = target
        self._start = 0.0
        self._wire = Connections(target.addresses, self._elapsed)
        self._clients: dict[str, Client] = {}
        self._open: dict[str, deque[SentRequest]] = {}
        self._lines: list[tuple[float, int, Json]] = []
        self._given: list[tuple[str, str]] = []
        self._number = 0
        self._coordinator = next(iter(target.addresses))
        self._partition = partition_for(script.group, target.offsets_partitions)

    async def play(self) -> list[Json]:
        """All lines in order of time, with names for what was drawn at random."""
        self._coordinator = await find_coordinator(self._wire, self._script.group, next(iter(self._target.addresses)))
        self._start = time.monotonic()
        self._note({"coordinator": self._coordinator})
        try:
            for step in self._script.steps:
                await self._do(step)
            await asyncio.sleep(LAST_SECONDS)
            self._note({"end": True})
        finally:
            for waiting in self._open.values():
                for asked in waiting:
                    asked.answer.cancel()
            self._wire.close()
        normalizer = Normalizer(self._script.group, frozenset(self._target.topics) | frozenset(self._script.topics))
        lines = [line for _, _, line in sorted(self._lines, key=lambda line: line[:2])]
        for member_id, prefix in self._given:
            normalizer.learn(member_id, prefix)
        return [_normalized(normalizer, line) for line in lines]

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
                await asyncio.sleep(max(0.0, value / 1000 - self._elapsed()))
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
        step_request = StepRequest(self._script.group, client, self._clients, step, version, self._partition)
        body = request_body(step_request, api)
        self._number += 1
        number = self._number
        claimed = step.get("claims", version)
        self._note({"n": number, "client": name, "broker": broker, "api": api, "version": claimed, "request": body})
        asked = await self._wire.send(number, name, broker, api, version, body, claimed)
        asked.answer.add_done_callback(lambda done: self._answered(asked, api, body, done))
        self._open.setdefault(name, deque()).append(asked)
        if step.get("parks"):
            await asyncio.sleep(SETTLE_SECONDS)
            if asked.answer.done():
                self._complain(f"{name}'s {api} was answered at once, but parks was said")
        else:
            await self._settle(client, api, asked, step.get("expect"))

    async def _await(self, name: str, expected: str | None) -> None:
        waiting = self._open.get(name)
        if not waiting:
            raise ScriptFailed(f"{self._script.name}: {name} waits for nothing")
        asked = waiting[0]
        await self._settle(self._client(name), asked.api, asked, expected)

    async def _settle(self, client: Client, api: str, asked: SentRequest, expected: str | None) -> None:
        """Wait for an answer, and let the client learn from it."""
        waiting = self._open[client.name]
        try:
            answer = await asyncio.wait_for(asyncio.shield(asked.answer), self._target.patience)
        except ConnectionClosed:
            waiting.remove(asked)
            if expected != "CLOSED":
                self._complain(f"{client.name}'s {api} was not answered, the connection was closed")
            return
        except TimeoutError:
            raise ScriptFailed(f"{self._script.name}: {client.name}'s {api} was not answered") from None
        waiting.remove(asked)
        if expected is not None and error_of(answer) != expected:
            self._complain(f"{client.name}'s {api} was answered {error_of(answer)}, not {expected}: {answer}")
        client.learn(api, answer)

    def _answered(self, asked: SentRequest, api: str, body: Json, done: asyncio.Task[Json]) -> None:
        if done.cancelled():
            return
        problem = done.exception()
        line: Json
        if problem is None:
            line = {"n": asked.number, "api": api, "response": done.result()}
            if api == "JoinGroup" and not body["memberId"] and done.result()["memberId"]:
                prefix = body.get("groupInstanceId")
                self._given.append((done.result()["memberId"], asked.client if prefix is None else prefix))
        elif isinstance(problem, ConnectionClosed):
            line = {"n": asked.number, "api": api, "closed": True}
        else:
            line = {"n": asked.number, "api": api, "unreadable": repr(problem)}
        self._note(line, asked.answered_at)

    def _version(self, api: str, given: int | None) -> int:
        lowest, highest = self._target.versions.get(api_key(api), (0, -1))
        if given is not None and (lowest <= given <= highest or not self._target.lenient):
            return given
        if given is not None:
            raise ScriptFailed(f"{self._script.name}: {api} v{given} {NOT_SPOKEN}")
        ours = BY_NAME[api].max_version if api in BY_NAME else newest(api)
        version = min(ours, highest, NEWEST.get(api, ours))
        if version < lowest:
            raise ScriptFailed(f"{self._script.name}: {api} {NOT_SPOKEN}")
        return version

    # --- actions

    async def _surround(self, command: str, value: Any, step: Step) -> None:
        actions = self._target.actions
        if actions is None:
            raise ScriptFailed(f"{self._script.name}: there is no {command} here")
        match command:
            case "move":
                more = {"loading": True} if step.get("loading") else {}
                await actions.move(self._partition, value, lambda: self._note({"coordinator": value, **more}))
                if more:
                    self._coordinator = value
                    await loading(self._wire, self._script.group, value)
                else:
                    await self._follow(value)
            case "fill":
                await actions.fill(self._partition, self._target.offsets_partitions, self._coordinator, value)
            case "loaded":
                await loaded(self._wire, self._script.group, self._coordinator)
                self._note({"loaded": self._coordinator})
                await asyncio.sleep(FOLLOWED_SECONDS)
            case "stop":
                stopped = self._coordinator if value == "coordinator" else value
                self._note({"stopped": stopped})
                await actions.stop(stopped, step.get("gently", False))
                await self._follow(None, besides=stopped)
                self._note({"coordinator": self._coordinator})
            case "start":
                await actions.start(value)
                self._note({"started": value})

    async def _follow(self, broker: int | None, besides: int | None = None) -> None:
        """Wait until the group's coordinator is found and has loaded its groups."""
        others = [number for number in self._target.addresses if number != besides]
        async with asyncio.timeout(30):
            while True:
                found = await find_coordinator(self._wire, self._script.group, others[-1])
                if found != besides and (broker is None or found == broker):
                    break
                await asyncio.sleep(0.02)
            self._coordinator = found
            await loaded(self._wire, self._script.group, found)
            await asyncio.sleep(FOLLOWED_SECONDS)

    # --- notes

    def _client(self, name: str) -> Client:
        return self._clients.setdefault(name, Client(name))

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _note(self, line: Json, at: float | None = None) -> None:
        seconds = self._elapsed() if at is None else at
        self._lines.append((seconds, len(self._lines), {"at": round(seconds * 1000), **line}))

    def _complain(self, problem: str) -> None:
        if not self._target.lenient:
            raise ScriptFailed(f"{self._script.name}: {problem}")


def _normalized(normalizer: Normalizer, line: Json) -> Json:
    return {
        name: normalizer.normalized(line["api"], value) if name in ("request", "response") else value
        for name, value in line.items()
        if not (name == "api" and "request" not in line)
    }


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


async def find_coordinator(connections: Connections, group: str, broker: int) -> int:
    """The number of the broker that coordinates a group, once there is one."""
    async with asyncio.timeout(30):
        while True:
            body: Json = {"keyType": 0, "key": group}
            answer = await connections.ask("cluster", broker, "FindCoordinator", 1, body)
            if not answer["errorCode"]:
                number: int = answer["nodeId"]
                return number
            await asyncio.sleep(0.05)


async def loaded(connections: Connections, group: str, broker: int) -> None:
    """Wait until a broker answers for a group."""
    body: Json = {"groups": [group]}
    while True:
        answer = await connections.ask("cluster", broker, "DescribeGroups", 0, body)
        if answer["groups"][0]["errorCode"] not in RETRY:
            return
        await asyncio.sleep(0.01)


async def loading(connections: Connections, group: str, broker: int) -> None:
    """Wait until a broker has begun to load a group's partition. Raises ScriptFailed when that was over too soon."""
    body: Json = {"groups": [group]}
    error = ErrorCode.NOT_COORDINATOR
    while error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        answer = await connections.ask("cluster", broker, "DescribeGroups", 0, body)
        error = answer["groups"][0]["errorCode"]
    if error != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        raise ScriptFailed(f"{group}: was loaded before anybody could ask")


__all__ = ["NOT_SPOKEN", "ClusterActions", "Player", "ScriptFailed", "Target", "error_of", "errors_in"]
