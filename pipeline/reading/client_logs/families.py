"""Which client wrote a record, and about which consumer: each library signs its lines in a way of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from rejoin.journal.kafka_logs.clients.connect import CONNECT_LINES, SMALLRYE_LINES
from rejoin.journal.kafka_logs.clients.details import DETAILS, beginning_of
from rejoin.journal.kafka_logs.clients.erlang import BROD_LINES
from rejoin.journal.kafka_logs.clients.frameworks import SPRING_LINES, STREAMS_LINES
from rejoin.journal.kafka_logs.clients.java import JAVA_LINES, LOGGERS
from rejoin.journal.kafka_logs.clients.javascript_and_go import (
    FRANZ_GO_LINES,
    KAFKAJS_FIELDS,
    KAFKAJS_LINES,
    SARAMA_LINES,
)
from rejoin.journal.kafka_logs.clients.names import (
    AIOKAFKA,
    BROD,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    KAFKAJS,
    RDKAFKA,
    RUBY,
    SARAMA,
    SMALLRYE,
    SPRING,
    STREAMS,
)
from rejoin.journal.kafka_logs.clients.python import AIOKAFKA_LINES, KAFKA_PYTHON_LINES
from rejoin.journal.kafka_logs.clients.rdkafka import RDKAFKA_LINES
from rejoin.journal.kafka_logs.clients.ruby import RUBY_LINES
from rejoin.journal.kafka_logs.patterns import compiled_when_used
from rejoin.journal.kafka_logs.template import Template, values_of
from rejoin.pipeline.reading.broker_logs.reasons import instance
from rejoin.pipeline.reading.client_logs.layouts import ClientRecord

NAMELESS: Final = (KAFKA_PYTHON, AIOKAFKA, KAFKAJS, FRANZ_GO, SARAMA, SMALLRYE, RUBY)
"""Clients whose lines do not name the consumer: a process is taken to have one."""
STARTED: Final = "consumer_started"
"""The kind of the line with which a consumer begins."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A line of a consumer. ``kind`` is empty for one that no known version prints."""

    family: str
    kind: str
    text: str
    client_id: str | None = None
    group_id: str | None = None
    instance: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    is_inferred: bool = False
    """Whether only the text says which client wrote it."""


Patterns = list[tuple[Template, re.Pattern[str]]]


def _compiled(templates: Iterable[Template]) -> Patterns:
    return [(each, compiled_when_used(each.pattern)) for each in templates]


def _without_facility(template: Template) -> Template:
    """The text alone: wrappers of librdkafka leave the facility out, and no text belongs to two."""
    return replace(template, text=template.text.partition(": ")[2])


_LINES: Final[Mapping[str, Patterns]] = {
    JAVA: _compiled((*CONNECT_LINES, *JAVA_LINES)),
    RDKAFKA: _compiled(map(_without_facility, RDKAFKA_LINES)),
    KAFKA_PYTHON: _compiled(KAFKA_PYTHON_LINES),
    AIOKAFKA: _compiled(AIOKAFKA_LINES),
    KAFKAJS: _compiled(KAFKAJS_LINES),
    FRANZ_GO: _compiled(FRANZ_GO_LINES),
    SARAMA: _compiled(SARAMA_LINES),
    BROD: _compiled(BROD_LINES),
    SMALLRYE: _compiled(SMALLRYE_LINES),
    STREAMS: _compiled(STREAMS_LINES),
    SPRING: _compiled(SPRING_LINES),
    RUBY: _compiled(RUBY_LINES),
}

FAMILIES: Final = tuple(_LINES)
"""All clients whose lines are known."""

_OF_JAVA: Final = re.compile(
    r"\[(?:(?P<share>Share)?Consumer|Worker) (?:instanceId=(?P<instance>.*?), )?clientId=(?P<client>.*?), "
    r"groupId=(?P<group>.*?)\] ?(?P<text>.*)",
    re.DOTALL,
)
LOGGER_BEHIND: Final = re.compile(r"\s+\((?P<logger>[A-Za-z_][\w$]*(?:\.[\w$]+)+)(?::\d+)?\)(?:\s+\[[^\]]*\])?\s*$")
_LOGGER_BEFORE: Final = re.compile(
    r"(?P<logger>[A-Za-z_][\w$]*(?:\.[\w$]+)+)(?::\d+)?\s*(?:-|:|\])?\s*(?:\[[^\]]*\]\s*)*$"
)
_SETTINGS: Final = "ConsumerConfig values:"
_OF_RDKAFKA: Final = re.compile(
    r"(?:^|[\s:\]\-])(?P<facility>[A-Z][A-Z0-9_]+)(?:\|| \[)(?P<client>[^\[\]|]+)#consumer-\d+[|\]](?: \[thrd:.*?\]:)? "
    r"(?P<text>.*)",
    re.DOTALL,
)
_SIGNED_BY_RDKAFKA: Final = re.compile(r"#consumer-\d+[|\]]")
_OF_PYTHON: Final = re.compile(
    r"(?<![\w./])(?P<logger>aiokafka(?:\.\w+)*|kafka\.(?:coordinator(?:\.(?:base|consumer|heartbeat|assignors\.[\w.]+\w))?|consumer\.\w+|cluster|net\.selector))"
    r"[\]:\s\-|]+(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[\]:\s\-|]+)?"
    r"(?P<text>.*)",
    re.DOTALL,
)
_PYTHON_LOGGER: Final = re.compile(
    r"kafka\.(?:coordinator(?:\.(?:base|consumer|heartbeat|assignors\.[\w.]+))?|consumer\.\w+|cluster|net\.selector)"
)
_SETTING: Final = re.compile(r"\s*([a-z][a-z0-9.]+) = (.*)")


def known_by_text(family: str) -> Iterable[tuple[Template, re.Pattern[str]]]:
    """The templates of a client, each with the expression of its whole text."""
    return _LINES[family]


def matched(family: str, text: str, **about: Any) -> ClientMessage:
    """A client's message, parsed from its text; without a kind where no known version prints the text."""
    for template, pattern in _LINES[family]:
        match = pattern.fullmatch(text)
        if match is not None:
            values: dict[str, Any] = dict(values_of(match))
            known = {name: about.get(name) or values.pop(name, None) for name in ("client_id", "group_id")}
            known["instance"] = about.get("instance") or instance(values.pop("instance", None))
            return ClientMessage(family, template.kind, text, values=values, **known)
    return ClientMessage(family, "", text, about.get("client_id"), about.get("group_id"), about.get("instance"))


_OF_A_GROUP: Final = re.compile(
    r"(?i)\bgroup|rebalanc|re-?join|\bjoin|generation|heartbeat|coordinator|member|\bassign|revok|\bsession\b"
)
"""Words of which a text about a group has one."""


_DETAILS: Final = {family: beginning_of(texts) for family, texts in DETAILS.items()}


def known_or_of_a_group(message: ClientMessage, *, is_signed: bool = True) -> ClientMessage | None:
    """A client's message; a remark where it is one of its details; none where it says nothing of a group.

    What is left without a kind speaks of a group, and no known version prints it. ``is_signed``: whether more than the
    text shows which client wrote it; else a text that is not known may be any program's.
    """
    if message.kind:
        return message
    details = _DETAILS.get(message.family)
    is_detail = details is not None and details.match(message.text) is not None
    # Tasks of Streams are its assignment, and their lines name no group.
    if is_detail and message.family == STREAMS:
        return replace(message, kind="remark")
    if _OF_A_GROUP.search(message.text) is None:
        return None
    if is_detail:
        return replace(message, kind="remark")
    return message if is_signed else None


def _of_java(record: ClientRecord) -> ClientMessage | None:
    if _SETTINGS in record.text:
        return _settings(record)
    match = _OF_JAVA.search(record.text) if "clientId=" in record.text else None
    if match is None:
        return None
    text, logger = match["text"], record.logger
    behind = LOGGER_BEHIND.search(text)
    if behind is not None:
        text, logger = text[: behind.start()], behind["logger"]
        # An empty list of partitions, with the space before the logger taken for its own.
        text += " " if text.endswith(":") else ""
    elif logger is None and (before := _LOGGER_BEFORE.search(record.text[: match.start()])) is not None:
        logger = before["logger"]
    if text.startswith(_WRAPPED):
        # A wrapper may have taken the indent.
        text = "\n".join((text, *(f"\t{each.strip()}" for each in record.more if _PART.match(each) is not None)))
    found = matched(
        JAVA, text.rstrip("\r\n"), client_id=match["client"], group_id=match["group"], instance=match["instance"]
    )
    if match["share"]:
        found = replace(found, values={**found.values, "group_protocol": "share"})
    elif (logger is not None and _STREAMS_LOGGER in logger) or text.startswith(_OF_STREAMS_GROUPS):
        found = replace(found, values={**found.values, "group_protocol": "streams"})
    known = known_or_of_a_group(found)
    return found if known is None and logger is not None and logger.endswith(LOGGERS) else known


_STREAMS_LOGGER: Final = ".consumer.internals.Streams"
_OF_STREAMS_GROUPS: Final = ("Membership is in the following", "StreamsGroupHeartbeat", "Assigning active tasks")
"""Beginnings of lines that only members of streams groups log."""
_WRAPPED: Final = ("Reconciling assignment", "Updating assignment")
_PART: Final = re.compile(r"\s*[A-Z][A-Za-z ()-]*:\s")


def _settings(record: ClientRecord) -> ClientMessage | None:
    """The settings with which a consumer of Java begins."""
    found = [match for each in record.more if (match := _SETTING.fullmatch(each)) is not None]
    settings = {match[1]: match[2] for match in found}
    named = {name: value for name, value in settings.items() if value not in ("null", "")}
    client = named.get("client.id")
    values: dict[str, Any] = {
        name: int(named[setting])
        for name, setting in _TIMEOUTS.items()
        if named.get(setting, "").isdigit() and len(named[setting]) < 10
    }
    if "group.protocol" in named:
        values["group_protocol"] = named["group.protocol"].lower()
    return ClientMessage(
        JAVA, STARTED, _SETTINGS, client, named.get("group.id"), named.get("group.instance.id"), values
    )


_TIMEOUTS: Final = {"session_timeout_ms": "session.timeout.ms", "rebalance_timeout_ms": "max.poll.interval.ms"}


def _of_rdkafka(record: ClientRecord) -> ClientMessage | None:
    if "#consumer-" not in record.text:
        return None
    match = _OF_RDKAFKA.search(record.text)
    if match is None:
        is_signed = _SIGNED_BY_RDKAFKA.search(record.text) is not None
        return ClientMessage(RDKAFKA, "", record.text) if is_signed else None
    found = of_rdkafka(match["text"], match["client"])
    if _OF_SHARE_CONSUMERS.match(found.text) is not None:
        found = replace(found, values={**found.values, "group_protocol": "share"})
    return known_or_of_a_group(found)


_OF_SHARE_CONSUMERS: Final = re.compile(r"The share consumer is in |(?:\S+: )?ShareGroupHeartbeat ")
"""Beginnings of lines that only share consumers of librdkafka log."""


def of_rdkafka(text: str, client_id: str | None) -> ClientMessage:
    """The message of a text of librdkafka, also behind the address of the broker that it is about."""
    found = matched(RDKAFKA, text, client_id=client_id)
    broker = _BROKER.match(text) if not found.kind else None
    return matched(RDKAFKA, text[broker.end() :], client_id=client_id) if broker is not None else found


_BROKER: Final = re.compile(r"\S*/(?:-?\d+|internal|bootstrap): ")


def _of_python(record: ClientRecord) -> ClientMessage | None:
    if record.logger is not None:
        logger, text = record.logger, record.text
    elif "kafka." in record.text and (match := _OF_PYTHON.search(record.text)) is not None:
        logger, text = match["logger"], match["text"]
    else:
        return None
    family = AIOKAFKA if logger.startswith("aiokafka") else KAFKA_PYTHON if _PYTHON_LOGGER.fullmatch(logger) else ""
    if not family:
        return None
    return known_or_of_a_group(matched(family, text), is_signed=_OF_PYTHONS_GROUP.search(logger) is not None)


_OF_PYTHONS_GROUP: Final = re.compile(r"\.(?:consumer|coordinator)\b")


def _of_kafkajs(record: ClientRecord) -> ClientMessage | None:
    if record.logger != KAFKAJS:
        return None
    return known_or_of_a_group(of_kafkajs(record.text, record.fields))


def of_kafkajs(text: str, fields: Mapping[str, Any]) -> ClientMessage:
    """The message of a text of KafkaJS, with the values that its logger got beside the text."""
    found = matched(KAFKAJS, text)
    values = {ours: fields[name] for name, ours in KAFKAJS_FIELDS.items() if fields.get(name) is not None}
    about: dict[str, Any] = {name: str(values.pop(name)) for name in ("group_id", "client_id") if name in values}
    return replace(found, values={**found.values, **values}, **about)


def _of_franz_go(record: ClientRecord) -> ClientMessage | None:
    text = record.text
    basic = _BASIC_LOGGER.match(text) or (_BASIC_LOGGER.search(text) if _NAMES_ITS_GROUP in text else None)
    if basic is not None:
        text = basic["text"]
        is_signed = _NAMES_ITS_GROUP in text
    elif record.fields and (record.logger is None or "caller" in record.fields or "kgo" in record.logger):
        # Loggers around it add fields of the application, and some sort all of them.
        names = _FRANZ_GO_FIELDS.get(text, ())
        named = [f"{name}: {_as_basic(record.fields[name])}" for name in names if name in record.fields]
        text = "; ".join((text, ", ".join(named))) if named else text
        is_signed = "group" in record.fields
    else:
        return None
    found = matched(FRANZ_GO, text)
    if found.instance == "<nil>":
        found = replace(found, instance=None)
    return known_or_of_a_group(found, is_signed=is_signed)


_NAMES_ITS_GROUP: Final = "; group: "
"""Stands in lines of franz-go about a group; other programs write in the layout of its BasicLogger, too."""


def _fields_of_texts(templates: Iterable[Template]) -> dict[str, tuple[str, ...]]:
    """The names of the values behind each message, in the order in which franz-go writes them."""
    names: dict[str, tuple[str, ...]] = {}
    for template in templates:
        message, _, values = template.text.partition("; ")
        found = tuple(re.findall(r"(?:^|, )(\w+): ", values)) + (("consecutive_errors",) if "{rest}" in values else ())
        names[message] = tuple(dict.fromkeys((*names.get(message, ()), *found)))
    return names


_FRANZ_GO_FIELDS: Final = _fields_of_texts(FRANZ_GO_LINES)


def _as_basic(value: object) -> str:
    """A value of JSON as franz-go's BasicLogger has it: partitions are ``orders[0 4]``."""
    if not isinstance(value, dict):
        return "<nil>" if value is None else str(value)
    return ", ".join(
        f"{topic}[{' '.join(map(str, numbers))}]" for topic, numbers in value.items() if isinstance(numbers, list)
    )


def _of_sarama(record: ClientRecord) -> ClientMessage | None:
    text = _GO_FILE.sub("", _LOGGER_OF_SARAMA.sub("", record.text.strip()))
    begun = _ERROR_OF_SARAMA.search(text)
    if begun is not None:
        text = text[begun.start() :].rstrip("'\"})]")
    elif not text.startswith(_OF_SARAMA):
        return None
    return known_or_of_a_group(matched(SARAMA, text), is_signed="/" in text.split(" ", 1)[0])


_LOGGER_OF_SARAMA: Final = re.compile(r"^(?:[DIWE]! )?\[[Ss]arama\] ?")
_OF_SARAMA: Final = (
    *("consumer", "client/coordinator", "cluster/consumer", "Initializing new client", "Closing Client"),
    *("client was not authorized", "client is not authorized"),
)
_ERROR_OF_SARAMA: Final = re.compile(r"kafka: error while consuming \S*/-?\d+: |kafka server: ")
"""Where an error begins that applications get from sarama, and log in their own words."""


_GO_FILE: Final = re.compile(r"^[\w./-]+\.go:\d+: ")
_BASIC_LOGGER: Final = re.compile(r"\]?\s*\[(?:DEBUG|INFO|WARN|ERROR)\] (?P<text>.*)", re.DOTALL)
Reader: TypeAlias = Callable[[ClientRecord], ClientMessage | None]
LIBRARIES: Final[tuple[Reader, ...]] = (_of_java, _of_rdkafka, _of_python, _of_kafkajs, _of_franz_go, _of_sarama)
