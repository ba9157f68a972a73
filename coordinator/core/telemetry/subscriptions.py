"""Subscriptions to metrics of clients: their settings, checked, and which clients they match.

Kafka: ClientMetricsConfigs, ClientMetricsInstanceMetadata, ClientMetricsManager.SubscriptionInfo.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import Context, Millis
from rejoin.coordinator.core.topics.config_entries import ConfigEntry, ConfigValueSource
from rejoin.coordinator.core.topics.configs import (
    CLIENT_METRICS_CONFIGS,
    ConfigError,
    ConfigSource,
    parsed,
    shown,
)
from rejoin.coordinator.core.topics.names import TopicError
from rejoin.protocol.errors import ErrorCode

INTERVAL: Final = "interval.ms"
MATCH: Final = "match"
METRICS: Final = "metrics"
ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final[Millis] = 300_000
SHORTEST_INTERVAL_MS: Final[Millis] = 100
LONGEST_INTERVAL_MS: Final[Millis] = 3_600_000
NO_SOFTWARE: Final = "unknown"
"""Kafka: ClientInformation.EMPTY."""

CLIENT_INSTANCE_ID: Final = "client_instance_id"
CLIENT_ID: Final = "client_id"
SELECTORS: Final = (
    CLIENT_INSTANCE_ID,
    CLIENT_ID,
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

_DEFINITIONS: Final = {each.name: each for each in CLIENT_METRICS_CONFIGS}

ClientAttributes: TypeAlias = Mapping[str, str]
"""Values by selector; one that is not known is left out."""


class MetricsSubscription(NamedTuple):
    """A subscription: prefixes of the names of metrics, how often to push, and the clients that it is for."""

    metrics: tuple[str, ...]
    interval_ms: Millis
    patterns: tuple[tuple[str, str], ...]
    """Selectors with regular expressions, all of which have to match; none: every client."""

    def matches(self, attributes: ClientAttributes) -> bool:
        return all(_matches(pattern, attributes.get(selector)) for selector, pattern in self.patterns)


def attributes_of(instance_id: str, context: Context) -> dict[str, str]:
    """Attributes that a subscription may select a client by."""
    name, _, version = context.software.partition(" ")
    port = {} if context.client_port is None else {"client_source_port": str(context.client_port)}
    return {
        CLIENT_INSTANCE_ID: instance_id,
        CLIENT_ID: context.client_id,
        "client_software_name": name or NO_SOFTWARE,
        "client_software_version": version or NO_SOFTWARE,
        "client_source_address": context.client_host.removeprefix("/"),
        **port,
    }


def subscription_of(configs: Mapping[str, str]) -> MetricsSubscription:
    """The subscription with these settings, which were checked."""
    interval, match, metrics = (
        parsed(definition, configs.get(name, definition.default)) for name, definition in _DEFINITIONS.items()
    )
    assert isinstance(interval, int), "it is a number"
    assert isinstance(match, tuple), "it is a list"
    assert isinstance(metrics, tuple), "it is a list"
    return MetricsSubscription(tuple(dict.fromkeys(metrics)), interval, _patterns(match))


def check_subscription(configs: Mapping[str, str]) -> None:
    """Raise :class:`ConfigError` or :class:`TopicError` where no subscription can have these settings."""
    for name in configs:
        if name not in _DEFINITIONS:
            expected = ", ".join(_DEFINITIONS)
            message = f"{name[:200]!r} is not a setting of client metrics; expected one of {expected}"
            raise TopicError(ErrorCode.INVALID_REQUEST, message)
    for name, text in configs.items():
        value = parsed(_DEFINITIONS[name], text)
        if isinstance(value, tuple) and not all(value):
            raise ConfigError(f"{name}={text[:200]}: an entry of the list is empty")
    subscription = subscription_of(configs)
    if not SHORTEST_INTERVAL_MS <= subscription.interval_ms <= LONGEST_INTERVAL_MS:
        bounds = f"{SHORTEST_INTERVAL_MS} to {LONGEST_INTERVAL_MS}"
        raise TopicError(ErrorCode.INVALID_REQUEST, f"{INTERVAL}={subscription.interval_ms}: expected {bounds}")


def of_subscription(configs: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
    """All settings of a subscription, as DescribeConfigs lists them."""
    entries = []
    for name, definition in _DEFINITIONS.items():
        given = configs.get(name)
        if given is None:
            entry = ConfigEntry(name, definition.default, ConfigSource.DEFAULT_CONFIG, definition.type, False, ())
        else:
            own = ConfigValueSource(name, shown(definition, given), ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG)
            entry = ConfigEntry(*own, definition.type, False, (own,))
        entries.append(entry)
    return tuple(entries)


def _patterns(selectors: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Selectors with expressions, the last of each selector. Raises :class:`ConfigError`."""
    found: dict[str, str] = {}
    for text in selectors:
        # JDK: String.split leaves out what is empty at the end.
        name, *values = text.rstrip("=").split("=")
        selector, pattern = name.strip(), values[0].strip() if values else ""
        if len(values) != 1 or selector not in SELECTORS or _compiled(pattern) is None:
            names = ", ".join(SELECTORS)
            raise ConfigError(f"{MATCH}={text[:200]}: expected NAME=REGEX with a name of {names}")
        found[selector] = pattern
    return tuple(found.items())


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """A regular expression; none if it is invalid."""
    # Differs: Kafka has Java's expressions, whose time may be exponential.
    import re2  # noqa: PLC0415 - most processes have no expressions

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _matches(pattern: str, value: str | None) -> bool:
    """Whether an expression matches a whole value."""
    compiled = _compiled(pattern)
    return value is not None and compiled is not None and compiled.fullmatch(value) is not None
