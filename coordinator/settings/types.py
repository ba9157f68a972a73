"""The types of numbers that Kafka's settings have; each setting has its own lower bound. Kafka: ConfigDef.Type."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Int32: TypeAlias = Annotated[int, Field(le=2**31 - 1)]
"""Kafka's INT."""

Int64: TypeAlias = Annotated[int, Field(le=2**63 - 1)]
"""Kafka's LONG."""


class SettingsPart(BaseModel):
    """A part of the settings. Only the whole is validated, so no part builds a validator of its own."""

    model_config = ConfigDict(defer_build=True)
