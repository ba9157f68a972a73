"""``rejoin serve`` for cyclopts: its options with what their types do not say."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from rejoin.coordinator.commands.serve_options import ServeOptions

_PLACEHOLDERS: Final[dict[str, tuple[Any, str]]] = {
    "host": (str, "HOST"),
    "port": (int, "PORT"),
    "kafka_port": (str, "PORT"),
    "as_kafka": (str | None, "RELEASE"),
    "advertised_host": (str | None, "HOST"),
    "journal": (str | None, "DIR"),
    "data": (str | None, "DIR"),
    "store": (str | None, "URL"),
    "brokers": (int, "N"),
    "port_file": (Path | None, "FILE"),
    "kafka_port_file": (Path | None, "FILE"),
    "ready_file": (Path | None, "FILE"),
    "evidence": (Path, "DIR"),
    "max_body_bytes": (str, "SIZE"),
    "control_token_file": (Path | None, "FILE"),
    "tls_ca_file": (Path | None, "FILE"),
    "users_file": (Path | None, "FILE"),
    "clock": (str, "CLOCK"),
}
"""Options with their types and what help shows for their values."""

ServeOptions.__annotations__ |= {
    name: Annotated[kind, Parameter(metavar=placeholder)] for name, (kind, placeholder) in _PLACEHOLDERS.items()
} | {
    "config": Annotated[tuple[str, ...], Parameter(name=("--config", "-c"), negative=(), metavar="NAME=VALUE")],
    "topic": Annotated[tuple[str, ...], Parameter(negative=(), metavar="TOPIC")],
    "control": Annotated[bool, Parameter(negative=())],
    "tls_self_signed": Annotated[bool, Parameter(negative=())],
    "insecure": Annotated[bool, Parameter(negative=())],
}


COMMAND: Final[ContextVar[tuple[str, ...]]] = ContextVar("COMMAND", default=())
"""The words after ``--``: cyclopts would take words before it for a command as well."""


def run(options: Annotated[ServeOptions, Parameter(name="*")] = ServeOptions()) -> int:  # noqa: B008 (it is frozen)
    """Run a coordinator node until SIGTERM or SIGINT; with ``-- COMMAND`` for as long as that command runs.

    COMMAND is a program with its arguments. It finds the node by the variables BOOTSTRAP_SERVERS and REJOIN_URL. Its
    exit code is the one of rejoin serve. If the command fails, rejoin why explains each group.
    """
    from rejoin.coordinator.commands import serve  # noqa: PLC0415 (the service, which --help can do without)

    return serve.run(options, COMMAND.get())
