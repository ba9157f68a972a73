"""One member of confluent-kafka: counterpart of ``Member.java``, with its arguments and commands."""

from __future__ import annotations

import selectors
import sys
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException

POLL_SECONDS: Final = 0.1

FATAL: Final = {
    KafkaError._FATAL,
    KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL,
    KafkaError.UNRELEASED_INSTANCE_ID,
}
"""Errors that end the program, as they end that of the Java client."""


def play(mode: str, topics: str, settings: Mapping[str, str]) -> None:
    """Poll and commit until a command says to close."""
    errors: list[KafkaError] = []
    consumer = Consumer({**settings, "error_cb": errors.append})
    consumer.subscribe(topics.split(","))
    commands = selectors.DefaultSelector()
    commands.register(sys.stdin, selectors.EVENT_READ)
    while not commands.select(0) and not any(error.fatal() or error.code() in FATAL for error in errors):
        message = consumer.poll(POLL_SECONDS)
        error = None if message is None else message.error()
        if error is not None:
            print("poll returned", error, file=sys.stderr, flush=True)
            errors.append(error)
        elif message is not None and mode == "sync":
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as problem:
                print("commit raised", problem, file=sys.stderr, flush=True)
    consumer.close()


if __name__ == "__main__":
    play(sys.argv[1], sys.argv[2], dict(pair.split("=", 1) for pair in sys.argv[3:]))
