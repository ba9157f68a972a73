"""The words of a transcript that stand for more than a name: each with how it is read and how it is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from rejoin.journal.formatting import DEFAULT_REASON
from rejoin.protocol.embedded.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
    subscription_topics,
)
from rejoin.protocol.messages.groups.join_group import JoinGroupRequestProtocol
from rejoin.protocol.types import TopicPartition
from rejoin.transcript.members import MemberContext

_LONGEST_METADATA: Final = 1_000_000
_DIGITS: Final = 9
"""Digits of a partition: more do not always fit into 32 bits."""


class BadWord(ValueError):
    """A command that cannot be read; the text says what was expected."""


class NotExpressible(Exception):
    """A request that no command stands for. Without a text it is of no consequence either."""


def write_word(text: str | None, also: str = "") -> str:
    """A text that can be one word of a command. Raises :class:`NotExpressible` for others."""
    text = text or ""
    if any(sign.isspace() or (sign in "=,+:" and sign not in also) for sign in text):
        raise NotExpressible(f"{text[:60]!r} cannot be a word")
    return text


def read_number(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise BadWord(f"expected a whole number, not {text!r}") from None


def read_nullable(text: str) -> str | None:
    """A word; an empty one is null."""
    return text or None


# --- a client's reason


def read_phrase(text: str) -> str | None:
    """A sentence in one word: underscores are spaces, and two are one underscore."""
    return text.replace("__", "\0").replace("_", " ").replace("\0", "_") or None


def write_phrase(text: str | None) -> str:
    """A client's reason, but for the one that every client gives when it comes back with its id."""
    if not text or text.startswith(DEFAULT_REASON):
        return ""
    return "_".join(text.replace("_", "__").split())


# --- offsets


class PartitionOffset(NamedTuple):
    """Offset and metadata of a ``TOPIC:PARTITION=OFFSET/LENGTH`` word; ``metadata`` has that length."""

    partition: int
    offset: int = 0
    metadata: str = ""


def read_offsets(words: Iterable[str]) -> dict[str, list[PartitionOffset]]:
    """The words by topic. ``TOPIC:PARTITION`` alone is offset 0, no length is no metadata."""
    found: dict[str, list[PartitionOffset]] = {}
    for word in words:
        where, _, value = word.partition("=")
        topic, colon, partition = where.rpartition(":")
        offset, _, length = value.partition("/")
        try:
            entry = PartitionOffset(int(partition), int(offset or 0), "x" * _length(length))
        except ValueError:
            colon = ""
        if not colon:
            raise BadWord(f"expected TOPIC:PARTITION, TOPIC:PARTITION=OFFSET or …=OFFSET/LENGTH, not {word!r}")
        found.setdefault(topic, []).append(entry)
    return found


def _length(text: str) -> int:
    """The length of a commit's metadata; Kafka's own limit is 4,096 by default."""
    length = int(text or 0)
    if length > _LONGEST_METADATA:
        raise BadWord(f"expected at most {_LONGEST_METADATA} characters of metadata, not {text}")
    return length


def write_offset(topic: str, partition: int, offset: int, metadata: str | None) -> str:
    """One partition's committed offset."""
    length = f"/{len(metadata)}" if metadata else ""
    return f"{write_word(topic)}:{partition}={offset}{length}"


# --- subscriptions


def read_protocols(text: str) -> tuple[JoinGroupRequestProtocol, ...]:
    """``range:t+u,sticky:t``: names with the topics subscribed to; without topics the metadata is unreadable.

    ``none`` is an empty list. A number behind the topics, ``range:t/2``, makes other bytes for the same topics.
    """
    if text == "none":
        return ()
    listed = []
    for entry in text.split(","):
        name, _, rest = entry.partition(":")
        topics, _, number = rest.partition("/")
        if topics:
            subscription = Subscription(topics=tuple(topics.split("+")), user_data=number.encode() or None)
            try:
                metadata = encode_subscription(subscription)
            except ValueError as problem:
                raise BadWord(f"{name}: {problem}") from None
        else:
            metadata = number.encode()
        listed.append(JoinGroupRequestProtocol(name=name, metadata=metadata))
    return tuple(listed)


def write_protocols(protocols: Iterable[JoinGroupRequestProtocol], member: MemberContext) -> str:
    """Names with topics, and a number where the same member had other bytes for these before."""
    written = []
    for protocol in protocols:
        topics = "+".join(write_word(topic) for topic in subscription_topics(protocol.metadata) or ())
        before = member.metadata.setdefault((protocol.name, topics), [])
        if protocol.metadata not in before:
            before.append(protocol.metadata)
        number = before.index(protocol.metadata)
        subscribed = f"{topics}/{number}" if number else topics
        name = write_word(protocol.name)
        written.append(f"{name}:{subscribed}" if subscribed else name)
    return ",".join(written) or "none"


# --- assignments


def read_assignment(text: str) -> bytes:
    """``t:0,1+u:2``: partitions by topic; ``-`` is an assignment of nothing, and an empty text no bytes."""
    if not text:
        return b""
    topics = read_partitions(text)
    partitions = [TopicPartition(topic, index) for topic, indexes in topics.items() for index in indexes]
    try:
        return encode_assignment(Assignment(partitions=tuple(partitions), user_data=None))
    except ValueError as problem:
        raise BadWord(str(problem)) from None


def read_partitions(text: str) -> dict[str, list[int]]:
    """``t:0,1+u:2``: partitions by topic; ``-`` is none."""
    topics: dict[str, list[int]] = {}
    for part in [] if text == "-" else text.split("+"):
        topic, colon, indexes = part.rpartition(":")
        if not colon or not all(index.isdecimal() for index in indexes.split(",")):
            raise BadWord(f"expected an assignment as t:0,1+u:2, or - for none, not {text!r}")
        if any(len(index) > _DIGITS for index in indexes.split(",")):
            raise BadWord(f"expected partitions of at most {_DIGITS} digits, not {indexes[:60]}")
        topics.setdefault(topic, []).extend(int(index) for index in indexes.split(","))
    return topics


def write_assignment(data: bytes) -> str:
    """An assignment's partitions by topic. Raises :class:`NotExpressible` for other bytes."""
    if not data:
        return ""
    try:
        partitions = decode_assignment(data).partitions
    except ValueError:
        raise NotExpressible("an assignment that cannot be read") from None
    topics: dict[str, list[str]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(str(index))
    return "+".join(f"{topic}:{','.join(indexes)}" for topic, indexes in topics.items()) or "-"
