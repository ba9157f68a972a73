"""The command ``rejoin conform-client``: judges a consumer by its requests in trouble."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from rejoin.conform.commands.running_client import WantedTroubles


def run(
    *command: Annotated[str, Parameter(help="Program with its arguments, behind --.", show=False)],
    only: Annotated[
        list[str] | None, Parameter(help="Play this trouble only; several times.", negative="", metavar="TROUBLE")
    ] = None,
    timeout: Annotated[float, Parameter(help="Longest wait in seconds for each reaction.", metavar="SECONDS")] = 30.0,
    at_once: Annotated[int, Parameter(help="Number of troubles played at the same time.", metavar="N")] = 2,
    junit: Annotated[Path | None, Parameter(help="Write the verdicts as JUnit XML.", metavar="FILE")] = None,
    transcripts: Annotated[
        Path | None, Parameter(help="Write a transcript of each trouble into this directory.", metavar="DIR")
    ] = None,
    proxy: Annotated[
        str,
        Parameter(
            help="Play on a real cluster, through a proxy in front of it, and not on brokers of Rejoin.",
            metavar="HOST:PORT",
        ),
    ] = "",
    command_config: Annotated[
        str | None, Parameter(help="Properties file with TLS and SASL towards that cluster.", metavar="FILE")
    ] = None,
    list_: Annotated[bool, Parameter(name="--list", help="List the troubles, and play none.", negative="")] = False,
) -> int:
    """Judge a consumer in trouble: rejoin conform-client [OPTIONS] -- COMMAND ARGUMENTS.

    COMMAND is started anew for each trouble, with BOOTSTRAP_SERVERS, TOPIC and GROUP_ID in its environment;
    {BOOTSTRAP_SERVERS}, {TOPIC} and {GROUP_ID} in its arguments are replaced. It must be one consumer that polls until
    it gets SIGTERM.
    """
    from rejoin.conform.commands.running_client import WantedTroubles, main  # noqa: PLC0415 (help can do without)

    wanted: WantedTroubles = WantedTroubles(
        command, tuple(only or ()), timeout, at_once, junit, transcripts, list_, proxy, command_config
    )
    return main(wanted)
