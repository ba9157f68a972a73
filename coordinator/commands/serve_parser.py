"""``rejoin serve`` for cyclopts: its options with what their types do not say."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from rejoin.coordinator.commands.serve_options import ServeOptions

ServeOptions.__annotations__ |= {
    "config": Annotated[tuple[str, ...], Parameter(name=("--config", "-c"), negative=())],
    "topic": Annotated[tuple[str, ...], Parameter(negative=())],
    "control": Annotated[bool, Parameter(negative=())],
    "tls_self_signed": Annotated[bool, Parameter(negative=())],
    "insecure": Annotated[bool, Parameter(negative=())],
}


def run(options: Annotated[ServeOptions, Parameter(name="*")] = ServeOptions()) -> int:  # noqa: B008 (it is frozen)
    """Run a coordinator node until SIGTERM or SIGINT."""
    from rejoin.coordinator.commands import serve  # noqa: PLC0415 (the service, which --help can do without)

    return serve.run(options)
