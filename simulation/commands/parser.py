"""``rejoin simulate``, ``search`` and ``gallery``: their options. Showing them must not import the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter

gallery_app: Final = cyclopts.App(
    name="gallery", help="Scenarios that come with rejoin, each named for the question that it answers."
)


def run(
    file: Path,
    /,
    *,
    seed: int | None = None,
    html: Path | None = None,
    journal: Path | None = None,
    compare: Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=True, show_default=False)] = (),
    quiet: Annotated[bool, Parameter(negative=())] = False,
    plain: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Play a scenario: its timeline, and a summary.

    Parameters
    ----------
    file
        A scenario, or the name of one in the gallery.
    seed
        Seed to use instead of the scenario's.
    html
        Write a page with a chart of partition ownership.
    journal
        Write the journal that a service would write, to a .jsonl file or a directory.
    compare
        Play variants and show what differs: KEY=VALUE,VALUE of a group, as in assignor=range,cooperative-sticky. May be
        given often; several assignors of one variant are joined with a plus.
    quiet
        Print only the summary.
    plain
        Play every heartbeat, including those that change nothing.
    """
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.run(file, seed, html, journal, compare, quiet=quiet, plain=plain)


def lab(
    file: Path = Path("stuck_handler_holds_up_a_rebalance"),
    *,
    seed: int | None = None,
    port: int = 0,
    browser: bool = True,
) -> int:
    """Open the laboratory in the browser: play a scenario, step through it, and change it while it runs.

    A journal, which is a directory or a .jsonl file, is shown likewise.

    Parameters
    ----------
    file
        A scenario, the name of one in the gallery, or a journal.
    seed
        Seed to use instead of the scenario's.
    port
        Port on 127.0.0.1; 0 takes a free one.
    browser
        Open the page in the browser.
    """
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.lab(file, seed, port, browser=browser)


def search(
    *,
    seeds: str = "0:200",
    schedule: Literal["faults", "failovers", "producers", "transactions", "consumer"] = "faults",
    minutes: float | None = None,
    shrink: bool = True,
    into: Path | None = None,
) -> int:
    """Play random scenarios with random faults, and check that nothing happens that never may.

    Parameters
    ----------
    seeds
        Seeds to play: A:B from A up to but excluding B, or one number.
    schedule
        Kind of scenarios: faults of every kind, mostly failovers of nodes, idempotent producers, consumers that
        transform in transactions, or groups of the consumer protocol and groups that move to it.
    minutes
        Stop after this many minutes.
    shrink
        Shrink a failing scenario before it is shown.
    into
        Directory for the scenario and the transcript of a failure. Without it they are only printed.
    """
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.search(seeds, schedule, minutes, into, shrink=shrink)


@gallery_app.command(name="list")
def list_gallery() -> None:
    """List every scenario of the gallery with its question."""
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    actions.list_gallery()


@gallery_app.command(name="show")
def show_yaml(name: str, /) -> int:
    """Print the YAML of one scenario, to start another from."""
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.show_yaml(name)


@gallery_app.command
def answer(name: str, /) -> int:
    """Show the question and the answer of one scenario."""
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.answer(name)
