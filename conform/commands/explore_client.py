"""The command ``rejoin explore-client``: releases the answers to a consumer in orders that seeds choose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def run(
    *command: Annotated[str, Parameter(help="Program with its arguments, behind --.", show=False)],
    seeds: Annotated[str, Parameter(help="Seeds to play, as A:B or one number.", metavar="SEEDS")] = "0:10",
    steps: Annotated[int, Parameter(help="Choices in each play.", metavar="N")] = 80,
    order: Annotated[
        Path | None, Parameter(help="Play the choices in this file, and no seeds.", metavar="FILE")
    ] = None,
    brokers: Annotated[
        int, Parameter(help="Number of brokers; with several, leaders of partitions move.", metavar="N")
    ] = 1,
    errors: Annotated[
        bool, Parameter(help="Some answers are errors, or the ends of their connections.", negative=())
    ] = False,
    shrink: Annotated[
        int | None,
        Parameter(help="Shorter orders to try where one fails: 20, and 0 with --order.", metavar="N"),
    ] = None,
    timeout: Annotated[
        float, Parameter(help="Longest wait in seconds for the start, and for the last records.", metavar="SECONDS")
    ] = 30.0,
    into: Annotated[
        Path | None, Parameter(help="Write failing orders and their transcripts into this directory.", metavar="DIR")
    ] = None,
) -> int:
    """Look for orders of answers in which a consumer fails: rejoin explore-client [OPTIONS] -- COMMAND ARGUMENTS.

    COMMAND is started anew for each play, as for rejoin conform-client, and must print a line
    "processed TOPIC PARTITION OFFSET" for each record. It must read from the earliest record on.
    """
    from rejoin.conform.commands.exploring_client import WantedPlays, main  # noqa: PLC0415 (help can do without)

    return main(WantedPlays(command, seeds, steps, order, shrink, timeout, into, brokers, errors))
