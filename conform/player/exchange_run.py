"""Plays a recording of exchanges again: the same requests in their order, with the ids that the broker draws here.

A request waits for the answers that Kafka had given before; pauses are as long as they were in the recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from rejoin.conform.player.connection import ConnectionClosed, SentRequest
from rejoin.conform.player.epochs import GroupEpochs
from rejoin.conform.player.messages import Json, UnreadableResponse
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import ScriptFailed

CLOSED: Final = "(connection closed)"
NO_ANSWER: Final = "(no answer)"
PAUSE_MS: Final = 30
"""Shorter ones are how long a client thought."""


class Values(Protocol):
    """Names of a recording with their values on this broker."""

    lag: int

    def to_send(self, value: Any) -> Any: ...

    def learn(self, recorded: Any, ours: Any) -> None: ...


@dataclass(eq=False)
class ExchangeRun:
    """The run of a script that is a recording. ``answers`` has what came, by the number of the line."""

    lines: list[Json]
    broker: int
    values: Values
    answers: dict[int, Any] = field(default_factory=dict)
    asked: dict[int, SentRequest] = field(default_factory=dict)
    late_ms: float = 0.0
    """How much later than in the recording some request was sent."""
    _epochs: GroupEpochs = field(default_factory=GroupEpochs)

    async def __call__(self, play: Play) -> None:
        ended = 0.0
        waiting: list[Json] = []
        for line, begins in zip(self.lines, self._next_begins(), strict=True):
            if "do" in line:
                await self._do(play, line)
                ended = max(ended, _end(line))
                continue
            pause = line["sent"] - ended
            if pause > PAUSE_MS:
                await asyncio.sleep(pause / 1000)
            for other in list(waiting):
                if self.asked[other["n"]].answer.done():
                    waiting.remove(other)
                    await self._take(play, other)
            ahead_or_late = play.elapsed() - line["sent"]
            self.late_ms = max(self.late_ms, ahead_or_late)
            self.values.lag = max(self.values.lag, abs(round(ahead_or_late)))
            body = self._epochs.to_send(line["api"], self.values.to_send(line["request"]))
            self.asked[line["n"]] = await play.send(
                line["client"], self.broker, line["api"], line["version"], body, is_answered=line["answer"] is not None
            )
            ended = max(ended, line["sent"])
            answered = float(line["answered"] if "answered" in line else line["sent"])
            if answered <= begins:
                await self._take(play, line)
                ended = max(ended, answered)
            else:
                waiting.append(line)
        for line in waiting:
            await self._take(play, line)

    def _next_begins(self) -> Iterator[float]:
        begins = [line["began"] if "do" in line else line["sent"] for line in self.lines]
        yield from (*begins[1:], float("inf"))

    async def _take(self, play: Play, line: Json) -> None:
        """Wait for an answer, and learn from it."""
        answer: Any
        asked = self.asked[line["n"]]
        try:
            more_ms = line["answered"] - line["sent"] if "answered" in line else 0.0
            answer = self._epochs.as_recorded(line["api"], line["request"], await play.answer(asked, more_ms))
            self._epochs.learn(line["api"], line["request"], line["answer"], answer)
            self.values.learn(line["answer"], answer)
        except ConnectionClosed:
            answer = CLOSED
        except UnreadableResponse as problem:
            answer = f"(unreadable: {problem})"
        except ScriptFailed:
            answer = NO_ANSWER
        self.answers[line["n"]] = answer

    async def _do(self, play: Play, line: Json) -> None:
        match line["do"]:
            case "wait until the transaction is complete":
                await play.until_complete(line["transactionalId"], broker=self.broker)
            case "wait until no transaction is open":
                await play.until_closed(line["partition"], line["topic"], broker=self.broker)
            case _:
                await asyncio.sleep((_end(line) - line["began"]) / 1000)


def _end(line: Json) -> float:
    """The end of an action in the recording."""
    return float(line.get("ended", line["began"] + line.get("ms", 0)))
