"""Settings as CreateTopics and DescribeConfigs list them: those of a topic, of a group, and of a node.

Kafka: ConfigHelper, DescribeConfigsResponse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import SecretStr

from rejoin.coordinator.config import DEFAULT_OF, ChangedDefaults, Settings, TopicDefaults, changed_defaults
from rejoin.coordinator.core.topics.configs import (
    RATE_CONFIG,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigSource,
    ConfigType,
    shown,
)
from rejoin.protocol.brokers.listener_address import ListenerAddress, addresses_text
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from rejoin.protocol.messages.topics.create_topics import CreatableTopicConfigs
from rejoin.protocol.unvalidated import unvalidated

_DEFAULT: Final = ConfigSource.DEFAULT_CONFIG
_TOPIC_DEFAULTS: Final = TopicDefaults.model_fields.keys()
_ADVERTISED: Final = "advertised.listeners"
_LONG_SETTINGS: Final = frozenset(
    {"connections.max.idle.ms", "offsets.retention.check.interval.ms", "log.retention.check.interval.ms"}
)
"""Kafka's other numbers are of type INT."""


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
    candidates = _of_cluster(definition, default)
    source, value = _DEFAULT, definition.default
    if given is not None:
        source, value = ConfigSource.DYNAMIC_TOPIC_CONFIG, shown(definition, given)
        candidates = (ConfigValueSource(definition.name, value, source), *candidates)
    elif candidates:
        _, nearest, source = candidates[0]
        value = nearest or value
    return ConfigEntry(definition.name, value, source, definition.type, False, candidates)


def _of_cluster(definition: ConfigDef, changed: str | None) -> tuple[ConfigValueSource, ...]:
    """Where the default of a topic's setting comes from; ``changed``: what the node has in its place."""
    name = definition.synonym
    candidates = [] if name is None else [ConfigValueSource(name, definition.default, _DEFAULT)]
    if changed is not None:
        name = DEFAULT_OF[definition.name]
        candidates.insert(0, ConfigValueSource(name, shown(definition, changed), ConfigSource.STATIC_BROKER_CONFIG))
    if definition.in_cluster:
        candidates.insert(0, candidates[0]._replace(source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
    return tuple(candidates)


def of_group(configs: Mapping[str, str], definitions: Mapping[str, ConfigDef]) -> tuple[ConfigEntry, ...]:
    """All settings of a group, by name. Kafka: what comes from the broker counts as a default."""
    entries = []
    for name, definition in sorted(definitions.items()):
        given = configs.get(name)
        source = _DEFAULT if given is None else ConfigSource.DYNAMIC_GROUP_CONFIG
        value = ConfigValueSource(name, shown(definition, definition.default if given is None else given), source)
        entries.append(ConfigEntry(*value, definition.type, False, (value,)))
    return tuple(entries)


def of_node(settings: Settings, endpoints: tuple[ListenerAddress, ...]) -> tuple[ConfigEntry, ...]:
    """All settings of a node, by name: its own, and those that are defaults of its topics.

    ``endpoints`` are what it advertises: with the ports that were bound, and also where no setting names them.
    """
    entries = [_of_setting(settings, field) for field in type(settings).model_fields if field not in _TOPIC_DEFAULTS]
    if endpoints:
        entries = [_with_endpoints(each, endpoints) if each.name == _ADVERTISED else each for each in entries]
    changed = dict(changed_defaults(settings))
    for definition in TOPIC_CONFIGS.values():
        candidates = _of_cluster(definition, changed.get(definition.name))
        if candidates:
            nearest = candidates[0]
            entries.append(ConfigEntry(*nearest, definition.type, True, candidates))
    return tuple(sorted(entries))


def _with_endpoints(entry: ConfigEntry, endpoints: tuple[ListenerAddress, ...]) -> ConfigEntry:
    value = ConfigValueSource(entry.name, addresses_text(endpoints), entry.source)
    return ConfigEntry(*value, entry.type, entry.read_only, (value, *entry.candidates[1:]))


def _of_setting(settings: Settings, field: str) -> ConfigEntry:
    info = type(settings).model_fields[field]
    name, value, default = info.alias or field, getattr(settings, field), info.get_default()
    if name == "broker.id":
        default = -1  # Kafka: a node without an id makes one; none is without one here.
    candidates: tuple[ConfigValueSource, ...] = (ConfigValueSource(name, _text(default), _DEFAULT),)
    if value != default:
        candidates = (ConfigValueSource(name, _text(value), ConfigSource.STATIC_BROKER_CONFIG), *candidates)
    return ConfigEntry(*candidates[0], _type_of(name, default), True, candidates)


def _type_of(name: str, default: object) -> ConfigType:
    match default:
        case bool():
            return ConfigType.BOOLEAN
        case int():
            return ConfigType.LONG if name in _LONG_SETTINGS else ConfigType.INT
        case float() | None:
            return ConfigType.DOUBLE
        case tuple():
            return ConfigType.LIST
        case SecretStr():
            return ConfigType.PASSWORD
    return ConfigType.STRING


def _text(value: object) -> str | None:
    match value:
        case None | SecretStr():
            return None
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
    return str(value)


# --- in messages


def creatable_configs(
    configs: Mapping[str, str], rate: float | None, defaults: ChangedDefaults
) -> tuple[CreatableTopicConfigs, ...]:
    """The settings of a topic that was created. Nothing of a response changes, so topics share what is equal."""
    return _creatable(_described(configs, rate, defaults)) if configs else _creatable_defaults(rate, defaults)


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
