"""Settings as CreateTopics and DescribeConfigs list them, and those of a topic.

Kafka: ConfigHelper, DescribeConfigsResponse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from rejoin.coordinator.core.topics.configs import (
    RATE_CONFIG,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigSource,
    ConfigType,
    shown,
)
from rejoin.coordinator.settings.topic_defaults import DEFAULT_OF, ChangedDefaults
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from rejoin.protocol.messages.topics.create_topics import CreatableTopicConfigs
from rejoin.protocol.unvalidated import unvalidated

_DEFAULT: Final = ConfigSource.DEFAULT_CONFIG
_IN_HOURS: Final = {"retention.ms": ("log.retention.hours", "168"), "segment.ms": ("log.roll.hours", "168")}
"""Kafka: ServerTopicConfigSynonyms. What counts where a node has no such setting in milliseconds."""


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


def described(configs: Mapping[str, str], rate: float | None, defaults: ChangedDefaults) -> tuple[ConfigEntry, ...]:
    """All settings of a topic, by name; ``rate`` is how fast its synthetic logs grow, where it has such.

    ``defaults`` are those that the node changes. Topics with the same rate and no settings of their own share one
    tuple.
    """
    return _described(configs, rate, defaults) if configs else _described_defaults(rate, defaults)


@lru_cache(maxsize=64)
def _described_defaults(rate: float | None, defaults: ChangedDefaults) -> tuple[ConfigEntry, ...]:
    return _described({}, rate, defaults)


def _described(configs: Mapping[str, str], rate: float | None, defaults: ChangedDefaults) -> tuple[ConfigEntry, ...]:
    changed = dict(defaults)
    entries = [
        _of_topic(definition, configs.get(name), changed.get(name)) for name, definition in TOPIC_CONFIGS.items()
    ]
    if rate is not None:
        value = ConfigValueSource(RATE_CONFIG, str(rate), ConfigSource.DYNAMIC_TOPIC_CONFIG)
        entries.append(ConfigEntry(*value, ConfigType.DOUBLE, True, (value,)))
        entries.sort()
    return tuple(entries)


def _of_topic(definition: ConfigDef, given: str | None, default: str | None) -> ConfigEntry:
    candidates = of_cluster(definition, default)
    source, value = _DEFAULT, definition.default
    if given is not None:
        source, value = ConfigSource.DYNAMIC_TOPIC_CONFIG, shown(definition, given)
        candidates = (ConfigValueSource(definition.name, value, source), *candidates)
    elif candidates:
        _, nearest, source = candidates[0]
        value = nearest or value
    return ConfigEntry(definition.name, value, source, definition.type, False, candidates)


def of_cluster(definition: ConfigDef, changed: str | None) -> tuple[ConfigValueSource, ...]:
    """The source of the default of a topic's setting; ``changed``: the node's own value."""
    name = definition.synonym
    candidates = [] if name is None else [ConfigValueSource(name, definition.default, _DEFAULT)]
    if changed is not None:
        name = DEFAULT_OF[definition.name]
        candidates.insert(0, ConfigValueSource(name, shown(definition, changed), ConfigSource.STATIC_BROKER_CONFIG))
        if definition.name in _IN_HOURS:
            candidates.append(ConfigValueSource(*_IN_HOURS[definition.name], _DEFAULT))
    if definition.in_cluster:
        candidates.insert(0, candidates[0]._replace(source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
    return tuple(candidates)


def of_defaults(definitions: Iterable[ConfigDef]) -> tuple[ConfigEntry, ...]:
    """Settings that have their defaults, which come from nowhere else."""
    return tuple(ConfigEntry(each.name, each.default, _DEFAULT, each.type, False, ()) for each in definitions)


# --- in messages


def creatable_configs(
    configs: Mapping[str, str], rate: float | None, defaults: ChangedDefaults
) -> tuple[CreatableTopicConfigs, ...]:
    """The settings of a new topic, with its own as given. Topics share equal settings."""
    if not configs:
        return _creatable_defaults(rate, defaults)
    return _creatable(
        each._replace(value=configs.get(each.name, each.value)) for each in _described(configs, rate, defaults)
    )


@lru_cache(maxsize=64)
def _creatable_defaults(rate: float | None, defaults: ChangedDefaults) -> tuple[CreatableTopicConfigs, ...]:
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
            is_sensitive=entry.type is ConfigType.PASSWORD,
            synonyms=tuple(_synonym(each) for each in entry.candidates) if with_synonyms else (),
            config_type=entry.type,
            documentation=None,
        )
        for entry in entries
        if not names or entry.name in names
    )


def _synonym(candidate: ConfigValueSource) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=candidate.name, value=candidate.value, source=candidate.source)
