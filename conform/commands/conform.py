"""The command ``rejoin conform``: judges a broker by what a real Kafka answered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from rejoin.conform.commands.running import Wanted


def run(
    *,
    bootstrap_server: Annotated[
        str,
        Parameter(name="--bootstrap-server", help="The broker; --list needs none.", metavar="HOST:PORT"),
    ] = "",
    set_: Annotated[
        list[str] | None,
        Parameter(name="--set", negative="", help="Play this set of scripts only; several times.", metavar="SET"),
    ] = None,
    only: Annotated[str, Parameter(help="Play scripts whose names contain this.", metavar="SCRIPT")] = "",
    kafka: Annotated[
        str,
        Parameter(help="Compare with this release; the default is the nearest by ApiVersions.", metavar="RELEASE"),
    ] = "",
    at_once: Annotated[int, Parameter(help="Number of scripts played at the same time.", metavar="N")] = 6,
    command_config: Annotated[
        str | None, Parameter(help="Properties file with the settings of TLS and SASL.", metavar="FILE")
    ] = None,
    junit: Annotated[Path | None, Parameter(help="Write the outcomes as JUnit XML.", metavar="FILE")] = None,
    html: Annotated[Path | None, Parameter(help="Write a page with each difference.", metavar="FILE")] = None,
    baseline: Annotated[Path | None, Parameter(help="Known differences, which do not count.", metavar="FILE")] = None,
    write_baseline: Annotated[
        Path | None, Parameter(help="Write the differences of this run as a baseline.", metavar="FILE")
    ] = None,
    list_: Annotated[bool, Parameter(name="--list", help="List the scripts, and play none.", negative="")] = False,
    verbose: Annotated[bool, Parameter(help="Print every difference.", negative="")] = False,
) -> int:
    """Play recorded scripts on a Kafka-compatible broker, and compare each answer with Kafka's."""
    from rejoin.conform.commands.running import Wanted, main  # noqa: PLC0415 (help can do without)

    wanted: Wanted = Wanted(
        bootstrap_server,
        tuple(set_ or ()),
        only,
        at_once,
        command_config,
        junit,
        html,
        baseline,
        write_baseline,
        kafka=kafka,
        lists=list_,
        verbose=verbose,
    )
    return main(wanted)
