"""The settings of a topic: one table with the names, types, defaults and bounds of Kafka 4.4, and what follows from it.

A topic keeps the values that it was given as text. What is not given has its default.

Kafka: LogConfig, ConfigDef, ServerTopicConfigSynonyms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeAlias

from rejoin.coordinator.core.partitions.topic_config import TopicConfig
from rejoin.coordinator.settings.topic_defaults import DEFAULT_OF
from rejoin.protocol.records.topics import TOPIC_RESOURCE, ConfigData, ConfigRecord, ConfigResource

RATE_CONFIG: Final = "emulator.records.per.second"
"""Ours: a topic with it has synthetic logs, and each grows so fast."""

MOST_RECORDS_PER_SECOND: Final = 1e9

ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...]


class ConfigType(IntEnum):
    """Kafka's types of settings, by the numbers in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value comes from, by the numbers in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigError(Exception):
    """A setting that a topic or a group cannot have, and why."""


@dataclass(frozen=True, slots=True)
class ConfigDef:
    """One setting of a topic or a group.

    ``synonym`` is the broker's setting that its default comes from, where Kafka lists one.

    ``exception`` is allowed besides ``least`` to ``most``. With ``in_cluster`` a new cluster has the default as a
    setting of all brokers.
    """

    name: str
    type: ConfigType
    default: str
    synonym: str | None = None
    least: float = -math.inf
    most: float = math.inf
    values: tuple[str, ...] = ()
    exception: int | None = None
    in_cluster: bool = False


_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _DOUBLE, _LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
_LONGEST: Final = str(2**63 - 1)
_COMPRESSION: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIMESTAMPS: Final = ("CreateTime", "LogAppendTime")
_THROTTLED: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

TOPIC_CONFIGS: Final[dict[str, ConfigDef]] = {
    each.name: each
    for each in (
        ConfigDef("cleanup.policy", _LIST, "delete", "log.cleanup.policy", values=("compact", "delete")),
        ConfigDef("compression.gzip.level", _INT, "-1", "compression.gzip.level", 1, 9, exception=-1),
        ConfigDef("compression.lz4.level", _INT, "9", "compression.lz4.level", 1, 17),
        ConfigDef("compression.type", _STRING, "producer", "compression.type", values=_COMPRESSION),
        ConfigDef("compression.zstd.level", _INT, "3", "compression.zstd.level", -131072, 22),
        ConfigDef("delete.retention.ms", _LONG, "86400000", "log.cleaner.delete.retention.ms", 0),
        ConfigDef("errors.deadletterqueue.group.enable", _BOOLEAN, "false"),
        ConfigDef("file.delete.delay.ms", _LONG, "60000", "log.segment.delete.delay.ms", 0),
        ConfigDef("flush.messages", _LONG, _LONGEST, "log.flush.interval.messages", 1),
        ConfigDef("flush.ms", _LONG, _LONGEST, least=0),
        ConfigDef("follower.replication.throttled.replicas", _LIST, ""),
        ConfigDef("index.interval.bytes", _INT, "4096", "log.index.interval.bytes", 0),
        ConfigDef("leader.replication.throttled.replicas", _LIST, ""),
        ConfigDef("local.retention.bytes", _LONG, "-2", "log.local.retention.bytes", -2),
        ConfigDef("local.retention.ms", _LONG, "-2", "log.local.retention.ms", -2),
        ConfigDef("max.compaction.lag.ms", _LONG, _LONGEST, "log.cleaner.max.compaction.lag.ms", 1),
        ConfigDef("max.decompressed.message.bytes", _INT, "2147483639", "max.decompressed.message.bytes", 1),
        ConfigDef("max.message.bytes", _INT, "1048588", "message.max.bytes", 0),
        ConfigDef("message.timestamp.after.max.ms", _LONG, "3600000", "log.message.timestamp.after.max.ms", 0),
        ConfigDef("message.timestamp.before.max.ms", _LONG, _LONGEST, "log.message.timestamp.before.max.ms", 0),
        ConfigDef("message.timestamp.type", _STRING, "CreateTime", "log.message.timestamp.type", values=_TIMESTAMPS),
        ConfigDef("min.cleanable.dirty.ratio", _DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
        ConfigDef("min.compaction.lag.ms", _LONG, "0", "log.cleaner.min.compaction.lag.ms", 0),
        ConfigDef("min.insync.replicas", _INT, "1", "min.insync.replicas", 1, in_cluster=True),
        ConfigDef("preallocate", _BOOLEAN, "false", "log.preallocate"),
        ConfigDef("remote.copy.lag.bytes", _LONG, "-1", "log.remote.copy.lag.bytes", -2),
        ConfigDef("remote.copy.lag.ms", _LONG, "0", "log.remote.copy.lag.ms", -2),
        ConfigDef("remote.log.copy.disable", _BOOLEAN, "false"),
        ConfigDef("remote.log.delete.on.disable", _BOOLEAN, "false"),
        ConfigDef("remote.storage.enable", _BOOLEAN, "false"),
        ConfigDef("retention.bytes", _LONG, "-1", "log.retention.bytes"),
        ConfigDef("retention.ms", _LONG, "604800000", least=-1),
        ConfigDef("segment.bytes", _INT, "1073741824", "log.segment.bytes", 1_048_576),
        ConfigDef("segment.index.bytes", _INT, "10485760", "log.index.size.max.bytes", 4),
        ConfigDef("segment.jitter.ms", _LONG, "0", least=0),
        ConfigDef("segment.ms", _LONG, "604800000", least=1),
        ConfigDef("unclean.leader.election.enable", _BOOLEAN, "false", "unclean.leader.election.enable"),
    )
}
"""By name."""

BROKER_NAMES: Final[dict[str, str]] = {
    **{name: each.synonym for name, each in TOPIC_CONFIGS.items() if each.synonym is not None},
    **DEFAULT_OF,
    "flush.ms": "log.flush.interval.ms",
    "segment.jitter.ms": "log.roll.jitter.ms",
}
"""The broker's setting for each setting of a topic that has one. Kafka: ServerTopicConfigSynonyms."""

CLIENT_METRICS_CONFIGS: Final = (
    ConfigDef("interval.ms", _INT, "300000"),
    ConfigDef("match", _LIST, ""),
    ConfigDef("metrics", _LIST, ""),
)
"""The settings of a subscription to client metrics. Kafka: ClientMetricsConfigs."""

OFFSETS_TOPIC_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
"""Kafka's settings of ``__consumer_offsets``."""

_WIDTH: Final = {_INT: 31, ConfigType.SHORT: 15, _LONG: 63}
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,30}")
_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")
_LOG_FIELDS: Final = {name.replace("_", "."): name for name in TopicConfig.__dataclass_fields__}


def parsed(definition: ConfigDef, text: str) -> ConfigValue:
    """The value that a text means, checked. Raises :class:`ConfigError`."""
    value = _read(definition, text.strip())
    if isinstance(value, tuple):
        if definition.name in _THROTTLED and value != ("*",) and not all(map(_REPLICA.fullmatch, value)):
            raise _wrong(definition, text, "* or a list of PARTITION:NODE")
        chosen = value
    else:
        chosen = (str(value),)
    if definition.values and not all(each in definition.values for each in chosen):
        raise _wrong(definition, text, f"{'any' if definition.type is _LIST else 'one'} of {_list(definition.values)}")
    if isinstance(value, int | float) and value != definition.exception:
        if value < definition.least:
            raise _wrong(definition, text, f"at least {definition.least}")
        if value > definition.most:
            raise _wrong(definition, text, f"at most {definition.most}")
    return value


def _read(definition: ConfigDef, text: str) -> ConfigValue:
    match definition.type:
        case ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise _wrong(definition, text, "true or false")
            return text.lower() == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            bound = 2 ** _WIDTH[definition.type]
            if _WHOLE.fullmatch(text) is None or not -bound <= int(text) < bound:
                raise _wrong(definition, text, f"a whole number of type {definition.type.name}")
            return int(text)
        case ConfigType.DOUBLE:
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            if math.isnan(number) or "_" in text:
                raise _wrong(definition, text, "a number")
            return number
        case ConfigType.LIST:
            parts = [part.strip() for part in text.split(",")] if text else []
            # Kafka: ConfigDef.parseValue leaves out duplicates where ValidList is the validator.
            return tuple(dict.fromkeys(parts)) if definition.values else tuple(parts)
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.PASSWORD | ConfigType.UNKNOWN:
            return text


def _wrong(definition: ConfigDef, text: str, expected: str) -> ConfigError:
    return ConfigError(f"{definition.name}={text[:200]}: expected {expected}")


def _list(values: tuple[str, ...]) -> str:
    return ", ".join(sorted(values))


def shown(definition: ConfigDef, text: str) -> str:
    """A value as DescribeConfigs prints it."""
    value = _read(definition, text.strip())
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(configs: Mapping[str, str]) -> None:
    """Raise :class:`ConfigError` where no topic can have these settings."""
    values = {name: parsed(_known(name), text) for name, text in configs.items()}
    if values.get("remote.storage.enable"):
        raise ConfigError("remote.storage.enable=true: there is no tiered storage; expected false")
    shortest, longest = (
        values.get(name, parsed(TOPIC_CONFIGS[name], TOPIC_CONFIGS[name].default))
        for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    )
    assert isinstance(shortest, int), "it is a number"
    assert isinstance(longest, int), "it is a number"
    if shortest > longest:
        raise ConfigError(f"min.compaction.lag.ms ({shortest}) is more than max.compaction.lag.ms ({longest})")


def _known(name: str) -> ConfigDef:
    definition = TOPIC_CONFIGS.get(name)
    if definition is None:
        raise ConfigError(f"{name[:200]!r} is not a setting of a topic")
    return definition


def rate_of(text: str | None) -> float:
    """Records a second from the text of our own setting. Raises :class:`ConfigError`."""
    try:
        rate = float(text or "")
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= MOST_RECORDS_PER_SECOND:
        raise ConfigError(f"{RATE_CONFIG}={text}: expected records a second from 0 to {MOST_RECORDS_PER_SECOND:g}")
    return rate


def log_config(configs: Mapping[str, str]) -> TopicConfig:
    """The settings that the logs of a topic obey."""
    fields: dict[str, Any] = {
        _LOG_FIELDS[name]: parsed(TOPIC_CONFIGS[name], text) for name, text in configs.items() if name in _LOG_FIELDS
    }
    return TopicConfig(**fields)


def config_records(
    name: str, configs: Mapping[str, str | None], kind: ConfigResource = TOPIC_RESOURCE
) -> tuple[ConfigRecord, ...]:
    """Changes that give a topic or a group these settings; none stands for the default."""
    return tuple(
        ConfigRecord(data=ConfigData(resource_type=kind, resource_name=name, name=config, value=value))
        for config, value in configs.items()
    )
