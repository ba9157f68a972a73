"""Settings as options: ``-c NAME=VALUE`` with Kafka's dotted names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from rejoin.protocol.validation import nearest


class WrongOption(Exception):
    """An option has a value that makes no sense; the text is for the user."""


def with_settings(model: type[BaseModel], given: Mapping[str, Any], pairs: Sequence[str]) -> dict[str, Any]:
    """Settings by their Python names, from options and from ``NAME=VALUE``; the latter win. Raises WrongOption."""
    names = {info.alias or name: name for name, info in model.model_fields.items()}
    found = dict(given)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WrongOption(f"-c {pair}: expected NAME=VALUE")
        if name.strip() not in names:
            raise WrongOption(f"-c {pair}: there is no setting {name}{nearest(name, names)}")
        found[names[name.strip()]] = value.strip()
    return found
