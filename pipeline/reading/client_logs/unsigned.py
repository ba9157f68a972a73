"""Lines that do not say which client wrote them: the logger, or librdkafka's facility, was left out of the layout.

The text alone is enough where no other program prints it. What is found this way is inferred.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from rejoin.journal.kafka_logs.clients.errors import JAVA_EXCEPTIONS
from rejoin.journal.kafka_logs.clients.names import AIOKAFKA, FRANZ_GO, JAVA, KAFKA_PYTHON
from rejoin.journal.kafka_logs.template import Template
from rejoin.pipeline.reading.client_logs.families import (
    ClientMessage,
    known_by_text,
    known_or_of_a_group,
    matched,
    of_kafkajs,
    of_rdkafka,
)
from rejoin.pipeline.reading.client_logs.layouts import ClientRecord
from rejoin.pipeline.reading.client_logs.signs import TRACES
from rejoin.pipeline.vocabulary import TOPIC_UNAVAILABLE

_SHORTEST: Final = 12
"""Characters of a text's fixed beginning without which it may belong to any program."""
_FIXED: Final = re.compile(r"[^{}<>~|]*")
_VAGUE: Final = ("remark", "consumer_started", "subscribing")
"""Kinds that need the logger: their texts say nothing certain of a group, or are short."""
_DECORATION: Final = re.compile(
    r"(?:\s*\[[\w.]+\]|\s*\(level: \d\)|,? [\w./<>]+(?:[-:][\w<>]+)?[-:]\d+(?![\w.])|['\"\]})]+|\s+)*$"
)
"""Logger, level, or module, function and number of the line, as layouts put them behind a text."""
_OTHER_CLIENT: Final = re.compile(
    r"\[(?:(?:Share)?Consumer|Producer|Worker|AdminClient) |\[Group(?:Coordinator|MetadataManager)"
)
_THREAD: Final = re.compile(
    r"(?:(?P<client>[^\s|\[\]()]+)#consumer-\d+.{0,40}?)?\[thrd:[^\]]*\]:\s+(?P<text>.*)", re.DOTALL
)
_CLIENT: Final = re.compile(r"(?P<client>[^\s|\[\]()]+)#consumer-\d+[|\]:]+\s*(?P<text>.*)", re.DOTALL)
_OF_RDKAFKA: Final = re.compile(
    r"Application maximum poll interval \(\d+ms\) exceeded"
    r"|Maximum application poll interval \(max\.poll\.interval\.ms\)|Consumer group session timed out \(in join-state"
    r"|Subscribed topic not available: |FindCoordinator response error: "
    r"|(?:JoinGroup|ConsumerGroupHeartbeat) failed: Broker:"
    r"|Broker: (?:Group authorization failed|Inconsistent group|Invalid session timeout|Static consumer fenced)"
    r'|Group "[^"]*"(?:: | (?:is|heartbeat|changed|changing|coordinator|broker|received) )|JoinGroup response: Gen'
)
_NAMESPACES: Final = ("Connection", "Consumer", "ConsumerGroup", "Runner")
_OF_KAFKAJS: Final = re.compile(rf"\[(?:Kafka: ?)?(?P<namespace>{'|'.join(_NAMESPACES)})\](?P<text> .*)", re.DOTALL)
_FIELD: Final = re.compile(r"\s+(?P<name>\w+): (?P<value>.*)")
_LEVEL: Final = re.compile(r"^\W*(?:TRACE|DEBUG|INFO|WARN|ERROR)\W+", re.IGNORECASE)
_PYTHON: Final = (KAFKA_PYTHON, AIOKAFKA)
_OF_JAVA: Final = re.compile(
    r"Topic\(s\) \[(?P<missing>[^\]]*)\] is/are not present and missingTopicsFatal is true"
    r"|TopicAuthorizationException: Not authorized to access topics: \[(?P<topics>[^\]]*)\]"
    r"|GroupAuthorizationException: Not authorized to access group: (?P<group>[^\s,;]+)"
    r"|(?:InconsistentGroupProtocol|GroupMaxSizeReached|InvalidSessionTimeout|FencedInstanceId)Exception: .*"
    r"|(?:Commit|Offset commit) cannot be completed since the (?:group has already|consumer is not part of) .*"
)
"""Exceptions of Java's consumer, which applications log in their own words, mostly with the trace below."""


def _beginning(template: Template) -> str:
    found = _FIXED.match(template.text)
    return found[0] if found is not None else ""


def _beginnings(families: Iterable[str]) -> re.Pattern[str]:
    texts = {
        text
        for family in families
        for template, _ in known_by_text(family)
        if template.kind not in _VAGUE and len(text := _beginning(template)) >= _SHORTEST
    }
    return re.compile("|".join((*_TOPICS_OF_PYTHON, *map(re.escape, sorted(texts, key=len, reverse=True)))))


_TOPICS_OF_PYTHON: Final = (r"Topic \S+ (?:not found in cluster metadata|is not authorized for this client)",)
"""Beginnings of texts whose fixed part comes late."""


_OF_PYTHON: Final = _beginnings(_PYTHON)


MARKS: Final = re.compile(
    "|".join(
        (
            _OF_PYTHON.pattern,
            *map(re.escape, JAVA_EXCEPTIONS),
            r"Broker: (?:Group authorization|Inconsistent group|Invalid session|Static consumer fenced)",
            r"Subscribed topic not available: |FindCoordinator response error: |unable to join group session: ",
            r"Application maximum poll interval|Consumer group session timed out|#consumer-\d+[|\]:]|\[thrd:",
            r'Group \\*"[^"]{1,260}"(?:: | (?:is|heartbeat|changed|changing|coordinator|broker) )',
            r"\[(?:Kafka: ?)?(?:ConsumerGroup|Runner|Connection)\] |Maximum application poll interval "
            r"|Member \S{1,260} sending LeaveGroup request|failed for group \S{1,260}: Commit cannot"
            r"|Marking the coordinator .{1,260} dead for group "
            r"|closed dead subscription|group manage loop|joining group",
            r"heartbeat errored|leaving group|namespace\W+(?:Connection|Consumer|ConsumerGroup|Runner)\b",
        )
    ).encode()
)
"""Bytes of which some are in every log of a client that is known by its texts."""


class UnsignedLines:
    """Reads the unsigned lines of one file. Python's two clients share most texts: the file's other lines decide."""

    def __init__(self) -> None:
        self._python: str | None = None

    def sees(self, message: ClientMessage) -> None:
        """Take note of a line whose client is known."""
        if message.family in _PYTHON:
            self._python = message.family

    def read(self, record: ClientRecord) -> ClientMessage | None:
        """The message of a record, recognised by its text alone."""
        text = record.text
        if _OTHER_CLIENT.search(text) is not None:
            return None
        found = (
            _of_rdkafka(text)
            or _of_event_of_rdkafka(record.more)
            or self._of_python(text)
            or _of_kafkajs(record)
            or _of_franz_go(text)
        )
        if found is None and self._python is None:
            found = _of_plain_java(text) or _of_java(record)
        return replace(found, is_inferred=True) if found is not None else None

    def _of_python(self, text: str) -> ClientMessage | None:
        begun = _OF_PYTHON.search(text)
        if begun is None:
            return None
        text = text[begun.start() : _end(text)]
        by_family = {family: matched(family, text) for family in _PYTHON}
        fitting = [family for family in _PYTHON if by_family[family].kind]
        if len(fitting) == 1:
            self._python = fitting[0]
        if not fitting:
            return None
        return by_family[self._python if self._python in fitting else fitting[0]]


def _end(text: str) -> int:
    """Where a text ends, before the logger, the level or a closing quotation mark that a layout puts behind it."""
    found = _DECORATION.search(text)
    return found.start() if found is not None else len(text)


def _of_rdkafka(text: str) -> ClientMessage | None:
    if '\\"' in text:
        # A piece of JSON, without its beginning or its end.
        text = text.replace('\\"', '"').rstrip('"} ')
    signed = _THREAD.search(text) or (_CLIENT.search(text) if "#consumer-" in text else None)
    if signed is not None:
        body, client = signed["text"], signed["client"]
    elif (begun := _OF_RDKAFKA.search(text)) is not None:
        body, client = text[begun.start() :], None
    else:
        return None
    found = of_rdkafka(body, client)
    found = found if found.kind else of_rdkafka(body[: _end(body)], client)
    return known_or_of_a_group(found) if signed is not None or found.kind else None


def _of_event_of_rdkafka(more: Iterable[str]) -> ClientMessage | None:
    """An event of librdkafka that an application prints field by field, in lines of their own."""
    texts = (line.partition("= ")[2] for line in more if ".str" in line.partition("= ")[0])
    return next((found for text in texts if (found := _of_rdkafka(text)) is not None), None)


def _of_plain_java(text: str) -> ClientMessage | None:
    """A line of Java's consumer before 1.0, which names the group, or one whose prefix was left out."""
    found = _PLAIN_JAVA.search(text)
    if found is None:
        return None
    said = matched(JAVA, _OF_OLD_JAVA.sub("", found[0].rstrip("`")), group_id=found["auto"] or found["lost"])
    return said if said.kind else None


_PYTHONS: Final = re.compile(r"CommitFailedError|max_poll_")
"""Words of Python's libraries in errors whose sentences are those of Java."""
_PLAIN_JAVA: Final = re.compile(
    r"Member \S+ sending LeaveGroup request to coordinator .*"
    r"|Auto-commit of offsets .* failed for group (?P<auto>[^\s:]+): .*"
    r"|Marking the coordinator .* dead for group (?P<lost>\S+)",
    re.DOTALL,
)
_OF_OLD_JAVA: Final = re.compile(r" for group [^\s:]+")


def _of_java(record: ClientRecord) -> ClientMessage | None:
    traces = (text for name in TRACES if isinstance(text := record.fields.get(name), str))
    for text in (record.text, *record.more, *traces):
        is_javas = any(map(text.__contains__, JAVA_EXCEPTIONS)) and _PYTHONS.search(text) is None
        found = _OF_JAVA.search(text) if is_javas else None
        if found is None:
            continue
        topics = found["missing"] or found["topics"]
        values = {"problem": found[0], **({"topics": topics} if topics else {})}
        kind = TOPIC_UNAVAILABLE if topics else "commit_failed" if "ommit cannot" in found[0] else "join_failed"
        return ClientMessage(JAVA, kind, found[0], group_id=found["group"], values=values)
    return None


def _of_franz_go(text: str) -> ClientMessage | None:
    begun = text.find("unable to join group session: ")
    return matched(FRANZ_GO, text[begun : _end(text)]) if begun >= 0 else None


def _of_kafkajs(record: ClientRecord) -> ClientMessage | None:
    """A message of KafkaJS behind its namespace, with its fields around it or in the lines below it."""
    fields: dict[str, Any] = dict(record.fields)
    for line in record.more:
        if (named := _FIELD.fullmatch(line)) is not None:
            fields[named["name"]] = named["value"].strip('"')
    found = _OF_KAFKAJS.search(record.text)
    if found is not None:
        text = f"[{found['namespace']}]{found['text']}"
    elif isinstance(fields.get("namespace"), str) and fields["namespace"] in _NAMESPACES:
        text = f"[{fields['namespace']}] {_LEVEL.sub('', record.text)}"
    else:
        return None
    message = known_or_of_a_group(of_kafkajs(text.strip(), fields))
    is_certain = message is not None and (message.kind not in _VAGUE or "groupId" in fields)
    return message if is_certain else None
