"""Settings as options: ``-c NAME=VALUE`` with Kafka's dotted names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from rejoin.client.security_config import ClientSecurityConfig
from rejoin.files import read_text
from rejoin.protocol.validation import nearest, sentence


class WrongOption(Exception):
    """An option has a value that makes no sense; the text is for the user."""


def with_settings(model: type[BaseModel], given: Mapping[str, Any], pairs: Sequence[str]) -> dict[str, Any]:
    """Settings by their Python names, from options and from ``NAME=VALUE``; the latter win. Raises WrongOption.

    Passwords come from the environment, and from nowhere else.
    """
    names = {info.alias or name: name for name, info in model.model_fields.items()}
    secret = {name for name, info in model.model_fields.items() if info.annotation is SecretStr}
    found = {name: os.environ[_variable(name)] for name in secret if _variable(name) in os.environ} | dict(given)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WrongOption(f"-c {pair}: expected NAME=VALUE")
        if name.strip() not in names:
            raise WrongOption(f"-c {pair}: there is no setting {name}{nearest(name, names)}")
        field = names[name.strip()]
        if field in secret:
            where = f"expected as {_variable(field)} in the environment, since other users can read command lines"
            raise WrongOption(f"-c {name}: {where}")
        found[field] = value.strip()
    return found


def security_from(file: str | None) -> ClientSecurityConfig:
    """The security of a command's connections, from a properties file; passwords may be in the environment as well.

    Raises WrongOption. Settings of other kinds are ignored, as such files are shared by several programs.
    """
    names = {info.alias or name for name, info in ClientSecurityConfig.model_fields.items()}
    try:
        lines = read_text(file).splitlines() if file is not None else []
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "not text"
        raise WrongOption(f"--command-config {file}: {why}; expected a properties file") from None
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith(("#", "!")))
    in_file = {name.strip(): value.strip() for name, _, value in pairs if name.strip() in names}
    try:
        return ClientSecurityConfig.model_validate({**with_settings(ClientSecurityConfig, {}, ()), **in_file})
    except ValidationError as problem:
        text = sentence(problem, ClientSecurityConfig, kind="setting")
        raise WrongOption(f"--command-config {file}: {text}") from None


def _variable(field: str) -> str:
    return f"REJOIN_{field.upper()}"
