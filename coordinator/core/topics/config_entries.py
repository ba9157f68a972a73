"""Settings as CreateTopics and DescribeConfigs list them, and those of a topic.

Kafka: ConfigHelper, DescribeConfigsResponse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.topics.configs import (
    BROKER_NAMES,
    RATE_CONFIG,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigSource,
    ConfigType,
    shown,
)
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from rejoin.protocol.messages.topics.create_topics import CreatableTopicConfigs
from rejoin.protocol.unvalidated import unvalidated

_DEFAULT: Final = ConfigSource.DEFAULT_CONFIG
_OTHERWISE: Final = {
    "flush.ms": ("log.flush.scheduler.interval.ms", str(2**63 - 1)),
    "retention.ms": ("log.retention.hours", "168"),
    "segment.jitter.ms": ("log.roll.jitter.hours", "0"),
    "segment.ms": ("log.roll.hours", "168"),
}
"""Kafka: ServerTopicConfigSynonyms. The broker's setting that counts where it has none in milliseconds."""


class GivenValue(NamedTuple):
    """A value of a broker's setting that takes the place of Kafka's default."""

    value: str
    source: ConfigSource


GivenValues: TypeAlias = tuple[GivenValue, ...]
"""Nearest first."""
GivenDefaults: TypeAlias = tuple[tuple[str, GivenValues], ...]
"""Settings of topics, each with what a node has in place of Kafka's default."""


class ConfigValueSource(NamedTuple):
    """A value, and which setting it comes from."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting with its value. ``candidates`` are all that it may come from, nearest first."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    candidates: tuple[ConfigValueSource, ...]


def described(configs: Mapping[str, str], rate: float | None, defaults: GivenDefaults) -> tuple[ConfigEntry, ...]:
    """All settings of a topic, by name; ``rate`` is how fast its synthetic logs grow, where it has such.

    ``defaults`` are those of the node. Topics with the same rate and no settings of their own share one
    tuple.
    """
    return _described(configs, rate, defaults) if configs else _described_defaults(rate, defaults)


@lru_cache(maxsize=64)
def _described_defaults(rate: float | None, defaults: GivenDefaults) -> tuple[ConfigEntry, ...]:
    return _described({}, rate, defaults)


def _described(configs: Mapping[str, str], rate: float | None, defaults: GivenDefaults) -> tuple[ConfigEntry, ...]:
    changed = dict(defaults)
    entries = [
        _of_topic(definition, configs.get(name), changed.get(name, ())) for name, definition in TOPIC_CONFIGS.items()
    ]
    if rate is not None:
        value = ConfigValueSource(RATE_CONFIG, str(rate), ConfigSource.DYNAMIC_TOPIC_CONFIG)
        entries.append(ConfigEntry(*value, ConfigType.DOUBLE, True, (value,)))
        entries.sort()
    return tuple(entries)


def _of_topic(definition: ConfigDef, given: str | None, defaults: GivenValues) -> ConfigEntry:
    candidates = of_cluster(definition, defaults)
    source, value = _DEFAULT, definition.default
    if given is not None:
        source, value = ConfigSource.DYNAMIC_TOPIC_CONFIG, shown(definition, given)
        candidates = (ConfigValueSource(definition.name, value, source), *candidates)
    elif candidates:
        _, nearest, source = candidates[0]
        value = value if nearest is None else nearest
    return ConfigEntry(definition.name, value, source, definition.type, False, candidates)


def of_cluster(definition: ConfigDef, given: GivenValues) -> tuple[ConfigValueSource, ...]:
    """The sources of the default of a topic's setting, nearest first; ``given``: values of the node."""
    candidates = []
    if given:
        name = BROKER_NAMES[definition.name]
        candidates += [ConfigValueSource(name, shown(definition, value), source) for value, source in given]
        if definition.name in _OTHERWISE:
            candidates.append(ConfigValueSource(*_OTHERWISE[definition.name], _DEFAULT))
    if definition.synonym is not None:
        candidates.append(ConfigValueSource(definition.synonym, definition.default, _DEFAULT))
    in_cluster = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    if definition.in_cluster and not any(each.source is in_cluster for each in candidates):
        candidates.insert(0, candidates[0]._replace(source=in_cluster))
    return tuple(candidates)


def of_defaults(definitions: Iterable[ConfigDef]) -> tuple[ConfigEntry, ...]:
    """Settings that have their defaults, which come from nowhere else."""
    return tuple(ConfigEntry(each.name, each.default, _DEFAULT, each.type, False, ()) for each in definitions)


# --- in messages


def creatable_configs(
    configs: Mapping[str, str], rate: float | None, defaults: GivenDefaults
) -> tuple[CreatableTopicConfigs, ...]:
    """The settings of a new topic, with its own as given. Topics share equal settings."""
    if not configs:
        return _creatable_defaults(rate, defaults)
    return _creatable(
        each._replace(value=configs.get(each.name, each.value)) for each in _described(configs, rate, defaults)
    )


@lru_cache(maxsize=64)
def _creatable_defaults(rate: float | None, defaults: GivenDefaults) -> tuple[CreatableTopicConfigs, ...]:
    return _creatable(described({}, rate, defaults))


def _creatable(entries: Iterable[ConfigEntry]) -> tuple[CreatableTopicConfigs, ...]:
    return tuple(_creatable_config(entry) for entry in entries)


def _creatable_config(entry: ConfigEntry) -> CreatableTopicConfigs:
    return unvalidated(
        CreatableTopicConfigs,
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=False,
    )


def describable_configs(
    entries: Iterable[ConfigEntry], wanted: Iterable[str] | None, with_synonyms: bool
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Settings as DescribeConfigs answers: those that are wanted, or all."""
    names = set(wanted or ())
    return tuple(
        unvalidated(
            DescribeConfigsResourceResult,
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=is_sensitive(entry.type, entry.source),
            synonyms=tuple(_synonym(each) for each in entry.candidates) if with_synonyms else (),
            config_type=entry.type,
            documentation=None,
        )
        for entry in entries
        if not names or entry.name in names
    )


def is_sensitive(kind: ConfigType, source: ConfigSource) -> bool:
    """Whether a value is not shown: a password, and any value of a setting that Kafka does not know."""
    is_level = source is ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return kind is ConfigType.PASSWORD or (kind is ConfigType.UNKNOWN and not is_level)


def _synonym(candidate: ConfigValueSource) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=candidate.name, value=candidate.value, source=candidate.source)
