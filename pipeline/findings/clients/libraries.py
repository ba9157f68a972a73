"""Which clients a group's members use, and in which version, as far as the sources show it.

Consumers' own logs show the client by their lines. The request log has the library's name (KIP-511). A member id begins
with the client.id, which libraries fill with their own name where the application sets none, and Kafka's Streams and
Connect always do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from rejoin.pipeline.findings.clients.table import (
    AIOKAFKA,
    BROD,
    CLIENTS,
    CONNECT,
    CONNECTOR,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    KAFKAJS,
    LIBRDKAFKA,
    RACECAR,
    RUBY_KAFKA,
    SARAMA,
    SMALLRYE,
    SPRING,
    STREAMS,
)
from rejoin.pipeline.findings.observed_rows import MemberSession, ObservedEvent
from rejoin.pipeline.vocabulary import CLIENT_LOG

_SOFTWARE: Final = (
    ("apache-kafka-java", JAVA),
    ("rdkafka", LIBRDKAFKA),
    ("confluent-kafka", LIBRDKAFKA),
    ("aiokafka", AIOKAFKA),
    ("kafka-python", KAFKA_PYTHON),
    ("kafkajs", KAFKAJS),
    ("kgo", FRANZ_GO),
    ("franz-go", FRANZ_GO),
    ("sarama", SARAMA),
)
_FRAMEWORKS: Final = (
    (re.compile(r".*-StreamThread-\d+-consumer.*"), STREAMS),
    (re.compile(r"connector-consumer-.*"), CONNECTOR),
    (re.compile(r"connect-(?:\d+|\S*:\d+)(?:-.*)?"), CONNECT),
    (re.compile(r"racecar(?:-.*)?"), RACECAR),
)
_LIBRARIES: Final = (
    (re.compile(r"rdkafka-.*"), LIBRDKAFKA),
    (re.compile(r"aiokafka-.*"), AIOKAFKA),
    (re.compile(r"kafka-python-.*"), KAFKA_PYTHON),
    (re.compile(r"consumer-.*"), JAVA),
    (re.compile(r"kafkajs-.*"), KAFKAJS),
    (re.compile(r"kgo-.*"), FRANZ_GO),
    (re.compile(r"sarama-.*"), SARAMA),
    (re.compile(r"ruby-kafka-.*"), RUBY_KAFKA),
)
_PROTOCOLS: Final = {
    **dict.fromkeys(("compatible", "sessioned"), CONNECT),
    "RoundRobinAssigner": KAFKAJS,
    "roundrobin_v2": BROD,
}
"""Protocols that only one client has."""
_AROUND_JAVA: Final = {SPRING, SMALLRYE}
_LOGGED: Final = {"java": JAVA, "kafkajs": KAFKAJS}
"""Names in events of clients whose name in the table differs."""
_VERSION: Final = re.compile(r"(?<![\d.])v?(\d+(?:\.\d+)+)")


def client_of(session: MemberSession) -> str | None:
    """The client of a member; None where neither the request log nor its ids show it."""
    found = _framework(session.client_id or session.member_id)
    if found is not None:
        return found
    software = (session.software or "").lower()
    signs = (
        *(_PROTOCOLS.get(each) for each in session.protocols or ()),
        *(client for words, client in _SOFTWARE if words in software),
        *(client for begin, client in _LIBRARIES if begin.match(session.member_id)),
    )
    return next(filter(None, signs), None)


def _framework(name: str | None) -> str | None:
    return next((client for words, client in _FRAMEWORKS if name and words.fullmatch(name)), None)


def _client_of_event(event: ObservedEvent) -> str | None:
    """The client that wrote a line; lines of Java are not signed with its name."""
    said = (event.more or {}).get("software")
    if event.event == "software_version":
        said = _software_of(event)[0]
    elif event.event not in _OF_BUGS and said is None:
        said = JAVA
    return _framework(event.client_id) or (said if said in CLIENTS else None)


_OF_BUGS: Final = ("bug_sign", "broker_bug_sign")


def _software_of(event: ObservedEvent) -> tuple[str, str]:
    """The client that an event states the version of, and the version."""
    software, _, version = (event.reason or "").rpartition(" ")
    return _LOGGED.get(software, software), version


def known_clients(sessions: Iterable[MemberSession], events: Iterable[ObservedEvent]) -> tuple[str, ...]:
    """The clients of a group's members, as far as they are known; Java's first, whose names the documentation has."""
    lines = (_client_of_event(each) for each in events if each.source == CLIENT_LOG)
    logged = {each for each in lines if each is not None}
    if logged & _AROUND_JAVA:
        # The lines of Java are of the consumer within.
        logged.discard(JAVA)
    # A member's id says less than the lines of its log.
    members = (each for each in sessions if each.software or not logged)
    found = {*logged, *(client for each in members if (client := client_of(each)) is not None)}
    return tuple(each for each in CLIENTS if each in found)


def clients_of_ids(members: Iterable[str], protocols: Iterable[str]) -> tuple[str, ...]:
    """The clients that ids of members and protocols of a group show."""
    signs = (
        *(_framework(each) for each in members),
        *(client for each in members for begin, client in _LIBRARIES if begin.match(each)),
        *(_PROTOCOLS.get(each) for each in protocols),
    )
    found = set(filter(None, signs))
    return tuple(each for each in CLIENTS if each in found)


def versions_of(sessions: Iterable[MemberSession], client: str) -> set[str]:
    """The versions of a client that the sources state."""
    return {version for each in sessions if client_of(each) == client for version in _stated(each, client)}


def versions_in_logs(events: Iterable[ObservedEvent], client: str) -> set[str]:
    """The versions that clients wrote into their own logs."""
    stated = (_software_of(each) for each in events if each.event == "software_version")
    return {version for software, version in stated if software == client}


def _stated(session: MemberSession, client: str) -> Iterator[str]:
    # Two libraries of Python have their version in the client.id that they make up.
    for words in (session.software, session.member_id if client in (KAFKA_PYTHON, AIOKAFKA) else None):
        match = _VERSION.search(words or "")
        if match is not None:
            yield match[1]
            return
