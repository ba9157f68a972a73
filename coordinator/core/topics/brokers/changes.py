"""Changes of brokers' settings, checked as Kafka does it.

Kafka: ConfigAdminManager, DynamicBrokerConfig.validate, ConfigurationControlManager.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final, NoReturn, TypeAlias

from pydantic import ValidationError

from rejoin.coordinator.core.topics.broker_configs import broker_configs
from rejoin.coordinator.core.topics.brokers.dynamic_configs import (
    ALL_BROKERS,
    RETENTION,
    DynamicConfigs,
    changed_settings,
)
from rejoin.coordinator.core.topics.configs import (
    BROKER_NAMES,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigError,
    ConfigType,
    parsed,
)
from rejoin.coordinator.core.topics.names import TopicError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.validation import reason

Changes: TypeAlias = dict[str, str | None]
"""New values by name; none: taken back."""

MOST_SETTINGS: Final = 1_000
"""Settings of brokers that are kept. Differs: Kafka keeps any number, of unknown names too."""

MIN_ISR: Final = "min.insync.replicas"
CORDONED: Final = "cordoned.log.dirs"
REPORTERS: Final = "metric.reporters"
_LEAST: Final = {
    **dict.fromkeys(
        ("group.coordinator.cached.buffer.max.bytes", "share.coordinator.cached.buffer.max.bytes"), 524_288
    ),
    **dict.fromkeys((f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams")), 0),
    **dict.fromkeys(("max.connections", "max.connections.per.ip", "max.connection.creation.rate"), 0),
    **dict.fromkeys(("log.cleaner.backoff.ms", "log.cleaner.io.buffer.size", "log.cleaner.threads"), 0),
    "log.cleaner.dedupe.buffer.size": 1_048_576,
    "log.roll.jitter.ms": 0,
}
"""Lower bounds of settings that topics do not have; others that are listed in ``_COUNTS`` have 1."""
_UNBOUNDED: Final = (RETENTION, "log.flush.interval.ms")
"""Times that may be negative, unlike those of topics."""
_COUNTS: Final = ("background.threads", "num.", "producer.id.expiration.ms", "remote.")
_THREADS: Final = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
"""Numbers of threads, which one change may halve or double at most."""
_VALUES: Final = {"ssl.client.auth": ("required", "requested", "none")}
_NEEDS_LISTENER: Final = ("ssl.key.password", "ssl.keystore.", "ssl.truststore.")
"""Beginnings of names that Kafka changes for a listener only, whose name stands before them."""
_OF_ONE_BROKER: Final = (CORDONED, "listener", "principal.builder.class", "sasl.", "ssl.")
"""Beginnings of names that cannot be changed for all brokers at once."""
_AS_STARTED: Final = (CORDONED, "listener.security.protocol.map", "listeners")
"""Differs: in Kafka they can be changed. Here they can only be taken back."""


@cache
def definition_of(name: str) -> ConfigDef | None:
    """A setting of Kafka's brokers, with its bounds; none of any other name."""
    known = broker_configs().get(name)
    if known is None:
        return None
    default = known.default or ""
    topic_name = next((topic for topic, broker in BROKER_NAMES.items() if broker == name), None)
    if topic_name is not None:
        of_topic = TOPIC_CONFIGS[topic_name]
        least = -math.inf if name in _UNBOUNDED else of_topic.least
        exception = of_topic.exception
        return ConfigDef(name, known.type, default, None, least, of_topic.most, of_topic.values, exception)
    least = _LEAST.get(name, 1 if name.startswith(_COUNTS) else -math.inf)
    return ConfigDef(name, known.type, default, least=least, values=_VALUES.get(name, ()))


class BrokerChanges:
    """Checks what brokers are to be given."""

    def __init__(self, configs: DynamicConfigs) -> None:
        self._configs = configs

    def checked(self, broker: str, changes: Changes, *, replaces: bool) -> Changes:
        """The changes that have an effect; with ``replaces`` those of AlterConfigs. Raises :class:`TopicError`."""
        current = self._configs.of(broker)
        wanted = {name: value for name, value in {**current, **changes}.items() if value is not None}
        self._check_names(broker, [name for name in wanted if name in changes])
        for name, value in wanted.items():
            _check_value(name, value)
        for name in _THREADS:
            if name in wanted:
                self._check_threads(name, int(wanted[name]))
        self._check_settings(broker, wanted)
        self._check_min_isr(broker, changes, replaces=replaces)
        new = [name for name in wanted if name not in current]
        if new and sum(map(len, self._configs.by_broker.values())) + len(new) > MOST_SETTINGS:
            raise TopicError(
                ErrorCode.POLICY_VIOLATION, f"brokers have {MOST_SETTINGS:,} settings; take some back first"
            )
        return {name: value for name, value in changes.items() if current.get(name) != value}

    def _check_names(self, broker: str, names: Collection[str]) -> None:
        known = broker_configs()
        fixed = sorted(name for name in names if name in known and known[name].read_only)
        if fixed:
            _refuse(f"{_listed(fixed)}: no running broker changes this; set it and start the broker anew")
        unnamed = sorted(name for name in names if name.startswith(_NEEDS_LISTENER))
        if unnamed:
            _refuse(f"{_listed(unnamed)}: changes for one listener only; expected listener.name.NAME. before it")
        if broker == ALL_BROKERS:
            single = sorted(name for name in names if name.startswith(_OF_ONE_BROKER))
            if single:
                _refuse(f"{_listed(single)}: not for all brokers at once; name one")

    def _check_threads(self, name: str, wanted: int) -> None:
        given = self._configs.given(name)
        current = int(given[0].value if given else broker_configs()[name].default or "1")
        if not current / 2 <= wanted <= current * 2:
            _refuse(f"{name}={wanted}: now {current}; one change may halve or double it at most")

    def _check_settings(self, broker: str, wanted: Mapping[str, str]) -> None:
        of_all = wanted if broker == ALL_BROKERS else self._configs.of(ALL_BROKERS)
        of_one = self._configs.of(self._configs.own) if broker == ALL_BROKERS else wanted
        try:
            changed_settings(self._configs.at_start, {**of_all, **of_one})
        except ValidationError as problem:
            first = problem.errors()[0]
            _refuse(f"{'.'.join(map(str, first['loc']))}: {reason(first)}")

    def _check_min_isr(self, broker: str, changes: Changes, *, replaces: bool) -> None:
        """Refuse changes that eligible leader replicas (KIP-966) do not allow."""
        if broker != ALL_BROKERS:
            if MIN_ISR in changes:
                text = f"{MIN_ISR} of one broker cannot be changed; set it for all brokers"
                raise TopicError(ErrorCode.INVALID_CONFIG, text)
        elif changes.get(MIN_ISR, "") is None or (replaces and MIN_ISR not in changes):
            raise TopicError(ErrorCode.INVALID_CONFIG, f"{MIN_ISR} of all brokers cannot be taken back")


def _check_value(name: str, value: str) -> None:
    definition = definition_of(name)
    if definition is None:
        return
    if name in _AS_STARTED and (value or name != CORDONED):
        _refuse(f"{name} is as at the start of this node")
    is_class = definition.type is ConfigType.CLASS or (name == REPORTERS and value)
    if is_class and value != broker_configs()[name].default:
        _refuse(f"{name}={value[:200]}: there is no such class")
    try:
        parsed(definition, value)
    except ConfigError as problem:
        _refuse(str(problem))


def _refuse(message: str) -> NoReturn:
    raise TopicError(ErrorCode.INVALID_REQUEST, message)


def _listed(names: Collection[str]) -> str:
    return ", ".join(names)[:200]
