"""What the keys of a scenario have in common: the base of every part, and the types of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from rejoin.client.assignors.registry import assignor_named
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.coordinator.config import Settings


def _processing(text: object) -> str:
    shown = str(text)
    parse_processing_time(shown)
    return shown


def _assignors(value: object) -> object:
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        raise ValueError("expected the name of an assignor, or a list of them")
    for name in names:
        assignor_named(str(name))
    return names


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
Processing = Annotated[str, BeforeValidator(_processing)]
Assignors = Annotated[tuple[str, ...], BeforeValidator(_assignors), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(names_of), Field(min_length=1)]
NamesOrNone = Annotated[tuple[str, ...], BeforeValidator(names_of)]


class Part(BaseModel):
    """A part of a scenario. Frozen; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
