"""Lines that say which client wrote them, and about which consumer: by logger, by facility, or by a prefix of theirs.

The lines of frameworks are about consumers of Java, which log by themselves as well; see :mod:`.statements`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from rejoin.journal.kafka_logs.clients.names import BROD, JAVA, RDKAFKA, RUBY, SMALLRYE, SPRING, STREAMS
from rejoin.pipeline.reading.client_logs.families import (
    LIBRARIES,
    LOGGER_BEHIND,
    ClientMessage,
    Reader,
    known_or_of_a_group,
    matched,
)
from rejoin.pipeline.reading.client_logs.layouts import ClientRecord

MARKS: Final = re.compile(
    rb"\[(?:(?:Share)?Consumer|Worker) (?:clientId|instanceId)=|ConsumerConfig values|#consumer-\d|aiokafka|\"kafkajs\""
    rb"|beginning to manage the (?:next-gen )?group lifecycle|new group session begun"
    rb"|consumergroup/|client/coordinator |kafka: error while consuming |kafka server: "
    rb"|client (?:was|is) not authorized to access |; group: |SRMSG\d+: |Group member \("
    rb"|group coordinator \(groupId=|\] Group \S{1,260} rebalance: "
    rb"|(?<![\w.])kafka\.co(?:ordinator(?:\.(?:base|consumer|heartbeat))?|nsumer\.\w+)[^\w.]"
    rb"|(?<![\w-])stream-(?:thread|client) \[|KafkaMessageListenerContainer|: partitions (?:assigned|revoked|lost): \["
    rb"|(?:Joining|Joined|Leaving|join|for) group `"
    rb"|Error sending heartbeat: Kafka::|cluster/consumer .{0,100} rebalance|Error for topic subscription "
)
"""Marks of a client's log that no broker's log has."""

STREAMS_CLIENT: Final = "streams_client_state"
"""The kind of a state of a whole client of Streams, which its threads' states make."""
_OF_STREAMS: Final = re.compile(
    r"(?<![\w-])stream-(?P<what>thread|client) \[(?P<name>.+?)(?:-consumer)?\] ?(?P<text>.*)", re.DOTALL
)
_APPLICATION: Final = re.compile(
    r"(?P<application>.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-StreamThread-\d+)?"
)
_THREAD: Final = re.compile(r".+-StreamThread-\d+")
_TASKS_BELOW: Final = ("Handle new assignment", "partition assignment took")
"""Beginnings of lines of Streams with the tasks on lines of their own below."""
_MOST_BELOW: Final = 4
_OF_SPRING: Final = re.compile(
    r"KafkaMessageListenerContainer(?:\$ListenerConsumer)?(?::\d+)?[\]\s:|-]*(?P<text>.*)", re.DOTALL
)
_PARTITIONS_OF_SPRING: Final = re.compile(r"(?P<text>[^\s:]+: partitions (?:assigned|revoked|lost): \[.*)")
_CONTAINER: Final = re.compile(r"\[\s*(?P<name>[^\[\]]*-C-\d+)\s*\]")
_OF_RUBY: Final = re.compile(
    r"(?:\[(?P<group>[^\[\]]+)\] \{.*?\}:\]? )?"
    r"(?P<text>(?:Joining|Joined|Leaving) group `.*|Chosen as leader of group `.*|Partitions assigned for `.*"
    r"|Group rebalance in progress, re-joining\.\.\.|Error (?:sending heartbeat|committing offsets): .*"
    r"|Failed to join group; resetting member id.*|Failed to find coordinator for group `.*"
    r"|Connection error while trying to join group `.*|Group coordinator not available for group `.*"
    r"|Coordinator broker still loading, retrying.*|(?:There are no|No) partitions to fetch from, sleeping for .*"
    r"|\(try \d+/\d+\): Error for topic subscription .*"
    r"|Resetting consumer with id: .*)",
    re.DOTALL,
)

_OF_KARAFKA: Final = re.compile(
    r"\[(?P<client>[^\[\]]+)\] Group (?P<group>\S+) rebalance: "
    r"(?:(?P<topic>\S+)-\[(?P<numbers>[\d,]*)\]|No partitions) (?P<what>assigned|revoked)"
)
_OF_BROD: Final = re.compile(
    r"(?:Group member \((?P<group>.*?),coor=(?P<client>[^,]*),cb=[^,]*,generation=(?P<generation>-?\d+)\)"
    r"|group coordinator \(groupId=(?P<older>.*?),memberId=.*?,generation=(?P<number>-?\d+),pid=(?P<pid>[^,)]*)\)):"
    r"(?P<text>.*)",
    re.DOTALL,
)
_OF_RACECAR: Final = ("(try ", "Resetting consumer")


def read_client_message(record: ClientRecord) -> ClientMessage | None:
    """The message of a consumer in a record; none where the record is another component's."""
    for read in _READERS:
        found = read(record)
        if found is not None:
            return found
    return None


def _of_streams(record: ClientRecord) -> ClientMessage | None:
    """A thread of Streams has a consumer of its own, whose client.id begins with the thread's name."""
    match = _OF_STREAMS.search(record.text) if "stream-" in record.text else None
    if match is None:
        return None
    name, is_thread = match["name"], _THREAD.fullmatch(match["name"]) is not None
    application = _APPLICATION.fullmatch(name)
    text = LOGGER_BEHIND.sub("", match["text"])
    if text.startswith(_TASKS_BELOW):
        below = (LOGGER_BEHIND.sub("", each).strip() for each in record.more[:_MOST_BELOW])
        text = "\n\t".join((text.rstrip(), *filter(None, below)))
    found = matched(
        STREAMS,
        text,
        client_id=f"{name}-consumer" if is_thread else name,
        group_id=None if application is None else application["application"],
    )
    if match["what"] == "client":
        found = replace(found, kind=STREAMS_CLIENT if found.kind == "streams_state" else found.kind and "remark")
    elif not is_thread:
        return None
    known = known_or_of_a_group(found)
    return None if known is None else replace(known, family=JAVA)


def _of_spring(record: ClientRecord) -> ClientMessage | None:
    if record.logger is not None and "KafkaMessageListenerContainer" in record.logger:
        text: str | None = record.text
    else:
        match = _OF_SPRING.search(record.text) if "KafkaMessageListenerContainer" in record.text else None
        match = match or (_PARTITIONS_OF_SPRING.search(record.text) if ": partitions " in record.text else None)
        text = None if match is None else match["text"]
    if text is None:
        return None
    container = _CONTAINER.search(record.text)
    thread = record.fields.get("thread_name") or record.fields.get("thread")
    name = container["name"] if container is not None else thread if isinstance(thread, str) else None
    return known_or_of_a_group(matched(SPRING, "\n".join((text, *record.more[:3])).rstrip(), client_id=name))


def _of_ruby(record: ClientRecord) -> ClientMessage | None:
    match = _OF_RUBY.search(record.text)
    if match is None:
        return None
    found = matched(RUBY, match["text"], group_id=match["group"])
    if match["text"].startswith(_OF_RACECAR):
        found = replace(found, family=RDKAFKA)
    return known_or_of_a_group(found)


def _of_karafka(record: ClientRecord) -> ClientMessage | None:
    """Partitions of a consumer of Karafka, which runs on librdkafka."""
    found = _OF_KARAFKA.search(record.text) if " rebalance: " in record.text else None
    if found is None:
        return None
    numbers = (found["numbers"] or "").split(",") if found["topic"] else []
    partitions = ", ".join(f"{found['topic']}-{number}" for number in numbers)
    kind = f"container_{found['what']}"
    return ClientMessage(RDKAFKA, kind, found[0], found["client"], found["group"], None, {"partitions": partitions})


def _of_brod(record: ClientRecord) -> ClientMessage | None:
    """The lines below the one with the group are part of the message; some loggers put all on one."""
    begun = _OF_BROD.search(record.text)
    if begun is None:
        return None
    said = "\n".join((begun["text"], *(each.strip() for each in record.more))).strip()
    if not said:
        return None
    group, client = begun["group"] or begun["older"], begun["client"] or begun["pid"]
    member = f"Group member ({group},coor={client},cb=,generation={begun['generation'] or begun['number']}):"
    found = matched(BROD, f"{member}\n{said}")
    return known_or_of_a_group(found)


def _of_smallrye(record: ClientRecord) -> ClientMessage | None:
    start = record.text.find("SRMSG")
    if start < 0:
        return None
    found = matched(SMALLRYE, record.text[start:])
    return known_or_of_a_group(found)


_READERS: Final[tuple[Reader, ...]] = (
    *LIBRARIES,
    _of_brod,
    _of_karafka,
    _of_smallrye,
    _of_streams,
    _of_spring,
    _of_ruby,
)
