"""The base of every part of a scenario, and the types of its values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from rejoin.client.assignors.registry import assignor_named
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.coordinator.config import Settings
from rejoin.protocol.security.acl_bindings import AclBinding
from rejoin.protocol.security.quota_limits import QuotaLimits

_BARE_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def _processing(value: object) -> str:
    text = str(value)
    parse_processing_time(text)
    with_units = _with_units(text)
    if with_units != text:
        raise ValueError(f"{text!r}: expected a time with its unit, as in {with_units}")
    return text


def _with_units(text: str) -> str:
    """The times of a distribution with ``ms`` behind each bare number; 0 and the shape of a Pareto need no unit."""
    times, comma, shape = text.partition(",") if text.lstrip().startswith("pareto") else (text, "", "")
    return _BARE_NUMBER.sub(lambda found: found[0] + ("ms" if float(found[0]) else ""), times) + comma + shape


def _assignors(value: object) -> object:
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        raise ValueError("expected the name of an assignor, or a list of them")
    for name in names:
        assignor_named(str(name))
    return names


def settings_as_text(settings: Mapping[str, bool | int | str]) -> dict[str, str]:
    """Settings as Kafka's tools write them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}


def names_of(value: object) -> Sequence[Any]:
    if not isinstance(value, (str, list, tuple)):
        raise ValueError("expected a name, or a list of names")
    return (value,) if isinstance(value, str) else value


def _settings(value: object) -> object:
    if isinstance(value, dict):
        Settings.model_validate(value)
    return value


SettingsByName = Annotated[dict[str, Any], BeforeValidator(_settings)]
"""Settings of the coordinator under Kafka's names."""
GroupSettings: TypeAlias = dict[str, bool | int | str]
"""Settings of a group under Kafka's names."""
Processing = Annotated[str, BeforeValidator(_processing)]
Assignors = Annotated[tuple[str, ...], BeforeValidator(_assignors), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(names_of), Field(min_length=1)]
NamesOrNone = Annotated[tuple[str, ...], BeforeValidator(names_of)]


def _acls(value: object) -> tuple[str, ...]:
    return tuple(str(AclBinding.parse(str(text))) for text in names_of(value))


def _quotas(value: object) -> tuple[str, ...]:
    return tuple(str(QuotaLimits.parse(str(text))) for text in names_of(value))


Acls = Annotated[tuple[str, ...], BeforeValidator(_acls)]
Quotas = Annotated[tuple[str, ...], BeforeValidator(_quotas), Field(min_length=1)]


class Part(BaseModel):
    """A part of a scenario. Frozen; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
