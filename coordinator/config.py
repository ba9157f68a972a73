"""Settings, under Kafka's own dotted names where Kafka has one, with Kafka's defaults.

Names that begin with ``emulator.`` are ours. Every setting can be given as ``-c NAME=VALUE`` or as an environment
variable: ``REJOIN_`` and the name in capitals with underscores, ``REJOIN_GROUP_INITIAL_REBALANCE_DELAY_MS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Self

from pydantic import ConfigDict, SecretStr, ValidationError, model_validator

from rejoin.coordinator.settings.cluster import ClusterSettings
from rejoin.coordinator.settings.consumer_groups import ConsumerGroupSettings
from rejoin.coordinator.settings.emulator import EmulatorSettings
from rejoin.coordinator.settings.groups import ClassicGroupSettings
from rejoin.coordinator.settings.listeners import ListenerSettings
from rejoin.coordinator.settings.logs import FetchSettings, LogSettings
from rejoin.coordinator.settings.security import SecuritySettings
from rejoin.coordinator.settings.share_groups import ShareGroupSettings
from rejoin.coordinator.settings.share_records import ShareRecordSettings
from rejoin.coordinator.settings.streams_groups import StreamsGroupSettings
from rejoin.coordinator.settings.telemetry import TelemetrySettings
from rejoin.coordinator.settings.topic_defaults import TopicDefaults
from rejoin.coordinator.settings.transactions import TransactionSettings
from rejoin.protocol.brokers.releases import newest_versions
from rejoin.protocol.validation import reason

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""Longest wait of a new member in the join phase before it is removed. Not a setting in Kafka."""

END_TXN_KEY: Final = 26
FIRST_END_WITH_EPOCH_BUMP: Final = 5


def _dotted(name: str) -> str:
    return name.replace("_", ".")


class Settings(
    EmulatorSettings,
    ClusterSettings,
    SecuritySettings,
    TelemetrySettings,
    ListenerSettings,
    LogSettings,
    TransactionSettings,
    ShareRecordSettings,
    FetchSettings,
    ClassicGroupSettings,
    StreamsGroupSettings,
    ShareGroupSettings,
    TopicDefaults,
    ConsumerGroupSettings,
):
    """Everything that can be set. Frozen; times are whole milliseconds unless the name says minutes.

    The last base's fields come first, in documents, errors and answers.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=_dotted,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=False,
    )

    @property
    def transaction_version(self) -> int:
        """The level of transaction.version; releases before 4.0 have no such feature."""
        release = self.emulator_as_kafka
        is_known = not release or newest_versions(release).get(END_TXN_KEY, 0) >= FIRST_END_WITH_EPOCH_BUMP
        return self.emulator_transaction_version if is_known else 0

    @model_validator(mode="after")
    def _check_session_timeouts(self) -> Self:
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ValueError(
                f"group.min.session.timeout.ms ({self.group_min_session_timeout_ms}) is more than "
                f"group.max.session.timeout.ms ({self.group_max_session_timeout_ms}): no member could join"
            )
        return self


DEFAULTS: Final = Settings()

_SECRET: Final = frozenset(
    info.alias or name for name, info in Settings.model_fields.items() if info.annotation is SecretStr
)
"""Settings that are never on a command line, nor in an error, a log or a response."""

VARIABLE_PREFIX: Final = "REJOIN_"
_OTHER_VARIABLES: Final = frozenset(
    {
        "REJOIN_STORE",
        "REJOIN_URL",
        "REJOIN_CONTROL_TOKEN",
        "REJOIN_RUN_ID",
        "REJOIN_SASL_PASSWORD",
        "REJOIN_SPARK_CLASSES",
        "REJOIN_SPARK_MASTER",
        "REJOIN_SPARK_MEMORY",
    }
)
"""Variables that are not settings, so that none of them is reported."""
_MISSPELT: Final = 0.85
"""How similar a variable must be to a setting's to be refused as misspelt. Others are ignored with a warning."""


class WrongSetting(Exception):
    """A setting or option that is invalid. The text is for the user."""


# Ours, since pydantic-settings adds 27 modules and 75 ms to a start of 500, and its errors do not name the variable.
def settings_from(
    pairs: Sequence[str], environment: Mapping[str, str], options: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> Settings:
    """Settings from ``NAME=VALUE`` pairs, else from ``options`` of their own (name: option, value), or variables."""
    names = {info.alias or name for name, info in Settings.model_fields.items()}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for variable, name in _variables(names, environment).items():
        values[name], origins[name] = environment[variable], variable
    for name, (option, value) in options.items():
        values[name], origins[name] = value, option
    for pair in pairs:
        name, equals, value = map(str.strip, pair.partition("="))
        if not equals:
            raise WrongSetting(f"-c {pair}: expected NAME=VALUE")
        if name not in names:
            from rejoin.coordinator.client_settings import unknown_setting  # noqa: PLC0415 - for mistakes only

            raise WrongSetting(f"-c {pair}: {unknown_setting(name, sorted(names))}")
        if name in _SECRET:
            variable = _variable(name)
            raise WrongSetting(f"-c {name}: expected in the environment, as {variable}; other users see command lines")
        values[name], origins[name] = value, f"-c {name}"
    if isinstance(values.get("emulator.deny"), str):
        values["emulator.deny"] = tuple(rule.strip() for rule in values["emulator.deny"].split(",") if rule.strip())
    try:
        return Settings.model_validate(values)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        message = reason(first)
        if not name:
            raise WrongSetting(message) from None
        given = "" if name in _SECRET or repr(first["input"]) in message else f", not {first['input']!r}"
        raise WrongSetting(f"{origins.get(name, name)}: {message}{given}") from None


def _variables(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of settings that are set, each with its setting. Raises WrongSetting for a misspelt one."""
    settings = {_variable(name): name for name in sorted(names)}
    for variable in unknown_variables(environment):
        near = get_close_matches(variable, settings, n=1, cutoff=_MISSPELT)
        if near:
            raise WrongSetting(f"{variable} in the environment: there is no such setting; is it {near[0]}?")
    return {variable: name for variable, name in settings.items() if variable in environment}


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Variables that look like those of settings and belong to none."""
    known = {_variable(info.alias or name) for name, info in Settings.model_fields.items()} | _OTHER_VARIABLES
    return sorted(each for each in environment if each.startswith(VARIABLE_PREFIX) and each not in known)


def _variable(name: str) -> str:
    return VARIABLE_PREFIX + name.replace(".", "_").upper()
