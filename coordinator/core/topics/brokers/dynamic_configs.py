"""Settings that brokers were given since they started: single brokers, and all of them. Kafka: DynamicBrokerConfig.

A value is text, as it was given. The nearest counts: the broker's own, that of all brokers, that of the start, Kafka's
default. From the settings that this node can obey new :class:`Settings` are made; others are kept and listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import ValidationError

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.topics.config_entries import GivenDefaults, GivenValue, GivenValues
from rejoin.coordinator.core.topics.configs import BROKER_NAMES, ConfigSource
from rejoin.coordinator.settings.topic_defaults import DEFAULT_OF, changed_defaults
from rejoin.protocol.records.topics import ConfigData

ALL_BROKERS: Final = ""
"""The name of the resource whose settings count for all brokers."""

RETENTION: Final = "log.retention.ms"
OBEYED: Final = frozenset(
    {
        *DEFAULT_OF.values(),
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.topic.name.prefix",
        "group.consumer.assignment.interval.ms",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
    }
)
"""Settings that take effect when they change. Others that Kafka changes have nothing here that could obey them."""


class DynamicConfigs:
    """The values that brokers were given. They change only by records of the topics log."""

    def __init__(self, settings: Settings) -> None:
        self.at_start = settings
        self.own = str(settings.broker_id)
        """The name of this node's resource."""
        self._static = dict(changed_defaults(settings))
        self.by_broker: dict[str, dict[str, str]] = {}
        """Values by broker, or ``ALL_BROKERS``, and name."""
        self.effective = settings
        """The settings that this node obeys."""
        self.defaults: GivenDefaults = self._defaults()

    def of(self, broker: str) -> Mapping[str, str]:
        """The values of a broker, or of all of them."""
        return self.by_broker.get(broker, {})

    def set(self, data: ConfigData) -> None:
        """A setting has a value, or has none any more."""
        values = self.by_broker.setdefault(data.resource_name, {})
        values.pop(data.name, None)
        if data.value is not None:
            values[data.name] = data.value
        if not values:
            del self.by_broker[data.resource_name]
        if data.resource_name in {ALL_BROKERS, self.own}:
            self._changed()

    def clear(self) -> None:
        """Forget everything: the log is read again from its beginning."""
        self.by_broker.clear()
        self._changed()

    def names(self) -> list[str]:
        """The settings that this node was given, sorted."""
        return sorted({*self.of(self.own), *self.of(ALL_BROKERS)})

    def given(self, name: str) -> GivenValues:
        """The values that this node was given for a setting."""
        return tuple(self._given(name))

    def _given(self, name: str) -> Iterator[GivenValue]:
        for broker, source in (
            (self.own, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (ALL_BROKERS, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ):
            value = self.of(broker).get(name)
            if value is not None:
                yield GivenValue(_obeyed(name, value), source)

    def _defaults(self) -> GivenDefaults:
        found = []
        for topic_name, broker_name in BROKER_NAMES.items():
            values = list(self._given(broker_name))
            if topic_name in self._static:
                values.append(GivenValue(self._static[topic_name], ConfigSource.STATIC_BROKER_CONFIG))
            if values:
                found.append((topic_name, tuple(values)))
        return tuple(found)

    def _changed(self) -> None:
        self.defaults = self._defaults()
        try:
            self.effective = changed_settings(self.at_start, {**self.of(ALL_BROKERS), **self.of(self.own)})
        except ValidationError:
            # Another release has accepted values that this one cannot have.
            self.effective = self.at_start


def changed_settings(settings: Settings, wanted: Mapping[str, str]) -> Settings:
    """Settings with other values of those that a node can obey. Raises ``ValidationError``."""
    changes = {name.replace(".", "_"): _obeyed(name, value) for name, value in wanted.items() if name in OBEYED}
    if not changes:
        return settings
    fields = {field: getattr(settings, field) for field in type(settings).model_fields}
    return type(settings).model_validate(fields | changes)


def _obeyed(name: str, value: str) -> str:
    # Kafka: any negative time of retention is for ever.
    return "-1" if name == RETENTION and value.strip().startswith("-") else value
