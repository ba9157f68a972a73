"""One member of ours: counterpart of ``Member.java``, with its arguments and commands."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rejoin.client import Consumer, KafkaError, RebalanceListener, TopicPartition
from rejoin.client.core.errors import CodedError
from rejoin.protocol.errors import ErrorCode

ENDS: Final = {
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.UNRELEASED_INSTANCE_ID,
}
"""Errors that end the program of the Java client."""


class SayingListener(RebalanceListener):
    """Prints what is assigned, revoked and lost."""

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        say("revoked", revoked)

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        say("assigned", assigned)

    def on_partitions_lost(self, lost: list[TopicPartition]) -> None:
        say("lost", lost)


def say(kind: str, partitions: Sequence[TopicPartition]) -> None:
    print(kind, *sorted(map(str, partitions)), flush=True)


async def play(mode: str, topics: str, settings: Mapping[str, str], commands: deque[str]) -> None:
    """Poll and commit until a command says to close."""
    named: dict[str, Any] = {name.replace(".", "_"): value for name, value in settings.items()}
    consumer = Consumer(**named)
    listener = SayingListener()
    if topics.startswith("~"):
        await consumer.subscribe(pattern=topics[1:], listener=listener)
    elif topics.startswith("^"):
        await consumer.subscribe(regex=topics[1:], listener=listener)
    else:
        await consumer.subscribe(topics.split(","), listener=listener)
    try:
        await _poll(consumer, mode, commands)
    except asyncio.CancelledError:
        await consumer.close(0, leave=False)
        raise
    await consumer.close()


async def _poll(consumer: Consumer, mode: str, commands: deque[str]) -> None:
    while True:
        command = commands.popleft() if commands else ""
        if command == "close":
            break
        if command.startswith("hang "):
            await asyncio.sleep(int(command[5:]) / 1_000)
        try:
            records = await consumer.poll(100)
        except KafkaError as problem:
            print("poll raised", problem, file=sys.stderr, flush=True)
            if isinstance(problem, CodedError) and problem.error in ENDS:
                break
            continue
        if records and mode == "sync":
            await consumer.commit()
        elif records and mode == "async":
            consumer.commit_async()


async def main(mode: str, topics: str, settings: Mapping[str, str]) -> None:
    """Take commands from standard input."""
    commands: deque[str] = deque()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, lambda: commands.append(sys.stdin.readline().strip() or "close"))
    await play(mode, topics, settings, commands)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], dict(pair.split("=", 1) for pair in sys.argv[3:])))
