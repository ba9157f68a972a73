"""Lives of producers. Each client plays each life once, with a topic and a transactional id of its own.

A step is a verb with its arguments: ``start NAME [setting=value ...]``, ``NAME COMMAND`` (see :data:`COMMANDS`),
``sleep SECONDS``, ``move BROKER`` (partition 0 of the topic), ``lose API`` (the next answer to such a request, with its
connection). A ``{}`` stands for what differs between the clients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

COMMANDS: Final = ("send PARTITION RECORDS", "flush", "init", "begin", "offsets OFFSET", "commit", "abort", "close")

SETTINGS: Final = {"linger.ms": "60000", "delivery.timeout.ms": "120000", "metadata.max.age.ms": "300000"}
PARTITIONS: Final = 2


@dataclass(frozen=True, slots=True)
class ProducerLife:
    """One life, with the settings of all its producers."""

    name: str
    steps: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    brokers: int = 1


_TWICE: Final = ("start p", "p send 0 3", "p send 1 2", "p flush", "p send 0 4", "p flush", "p close")
_LOST: Final = (
    "start p",
    "p send 0 1",
    "p flush",
    "lose Produce",
    "p send 0 2",
    "p flush",
    "p send 0 1",
    "p flush",
    "p close",
)
_NOT_IDEMPOTENT: Final = {"enable.idempotence": "false"}
_TRANSACTIONAL: Final = {"transactional.id": "id-{}"}

LIVES: Final = (
    ProducerLife("idempotent", _TWICE),
    ProducerLife("acks-1", _TWICE, {**_NOT_IDEMPOTENT, "acks": "1"}),
    ProducerLife("acks-0", (*_TWICE[:-1], "sleep 1", "p close"), {**_NOT_IDEMPOTENT, "acks": "0"}),
    ProducerLife("gzip", _TWICE, {"compression.type": "gzip"}),
    ProducerLife(
        "linger",
        ("start p", "p send 0 1", "p flush", "p send 0 3", "sleep 1", "p send 0 2", "sleep 1", "p close"),
        {"linger.ms": "200"},
    ),
    ProducerLife(
        "small-batches",
        ("start p", "p send 0 1", "p flush", "p send 0 40", "p flush", "p close"),
        {"batch.size": "200"},
    ),
    ProducerLife("lost-answer", _LOST),
    ProducerLife("lost-answer-not-idempotent", _LOST, {**_NOT_IDEMPOTENT, "acks": "1"}),
    ProducerLife("lost-answer-no-retries", _LOST, {**_NOT_IDEMPOTENT, "acks": "1", "retries": "0"}),
    ProducerLife(
        "leader-moves",
        (
            "start p", "p send 0 2", "p send 1 1", "p flush", "move 2", "p send 0 3", "p send 1 1", "p flush",
            "move 1", "p send 0 1", "p flush", "p close",
        ),
        brokers=2,
    ),
    ProducerLife(
        "transactions",
        (
            "start p", "p init", "p begin", "p send 0 2", "p send 1 1", "p flush", "p offsets 3", "p commit",
            "p begin", "p send 0 2", "p flush", "p abort", "p begin", "p commit",
            "p begin", "p offsets 4", "p send 1 1", "p commit", "p close",
        ),
        _TRANSACTIONAL,
    ),
    ProducerLife(
        "transaction-with-lost-answers",
        (
            "start p", "p init", "p begin", "lose Produce", "p send 0 2", "p flush",
            "lose TxnOffsetCommit", "p offsets 3", "lose EndTxn", "p commit",
            "p begin", "p send 0 1", "p commit", "p close",
        ),
        _TRANSACTIONAL,
    ),
    ProducerLife(
        "transaction-while-the-leader-moves",
        (
            "start p", "p init", "p begin", "p send 0 2", "p flush", "move 2", "p send 0 1", "p commit",
            "p begin", "p send 0 1", "p abort", "p close",
        ),
        _TRANSACTIONAL,
        brokers=2,
    ),
    ProducerLife(
        "fenced",
        (
            "start p", "p init", "p begin", "p send 0 1", "p flush", "start q", "q init",
            "p send 0 1", "p flush", "p commit", "q begin", "q send 0 1", "q commit", "q close", "p close",
        ),
        _TRANSACTIONAL,
    ),
)  # fmt: skip
