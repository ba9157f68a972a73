"""One producer of ours: counterpart of ``Producer.java``, with its arguments and commands."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, Final

from rejoin.client import GroupMetadata, KafkaError, Producer, TopicPartition

GROUP: Final = "readers"


class CommandedProducer:
    """A producer that does one command after the other."""

    def __init__(self, topic: str, settings: Mapping[str, str]) -> None:
        named: dict[str, Any] = {name.replace(".", "_"): value for name, value in settings.items()}
        self._topic = topic
        self._producer = Producer(**named)
        self._sent: list[asyncio.Future[Any]] = []

    async def start(self) -> None:
        """As the Java client does when it is made."""
        await self._producer.start()

    async def do(self, command: str) -> str:
        """Carry out a command: "done", or the name of Java's exception."""
        try:
            return await self._do(command.split())
        except KafkaError as problem:
            return problem.java_name

    async def _do(self, words: list[str]) -> str:
        producer = self._producer
        match words:
            case ["send", partition, count]:
                for number in range(int(count)):
                    value = f"value {number}".encode()
                    self._sent.append(await producer.send(self._topic, value, partition=int(partition)))
            case ["flush"]:
                await producer.flush()
                return await self._outcome()
            case ["init"]:
                await producer.init_transactions()
            case ["begin"]:
                await producer.begin_transaction()
            case ["offsets", offset]:
                offsets = {TopicPartition(self._topic, 0): int(offset)}
                await producer.send_offsets_to_transaction(offsets, GroupMetadata(GROUP))
            case ["commit"]:
                await producer.commit_transaction()
                return await self._outcome()
            case ["abort"]:
                await producer.abort_transaction()
                await asyncio.gather(*self._sent, return_exceptions=True)
                self._sent.clear()
            case ["close"]:
                await producer.close()
            case _:
                raise ValueError(f"unknown command {words}")
        return "done"

    async def _outcome(self) -> str:
        """The first failure of the records that were sent."""
        ends = await asyncio.gather(*self._sent, return_exceptions=True)
        self._sent.clear()
        failures = [each for each in ends if isinstance(each, KafkaError)]
        return failures[0].java_name if failures else "done"


async def main(topic: str, settings: Mapping[str, str]) -> None:
    """Take commands from standard input."""
    producer = CommandedProducer(topic, settings)
    await producer.start()
    while command := (await asyncio.to_thread(sys.stdin.readline)).strip():
        print(await producer.do(command), flush=True)
        if command == "close":
            return


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:])))
