"""``rejoin simulate``, ``search`` and ``gallery``: their options. Showing them must not import the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter

_Seed = Annotated[int | None, Parameter(metavar="SEED")]
_Compare = Annotated[
    tuple[str, ...],
    Parameter(negative=(), consume_multiple=True, show_default=False, metavar="KEY=VALUE,VALUE"),
]

gallery_app: Final = cyclopts.App(
    name="gallery", help="Show the scenarios that come with Rejoin, each named for the question that it answers."
)


def run(
    file: Path,
    /,
    *,
    seed: _Seed = None,
    html: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    journal: Annotated[Path | None, Parameter(metavar="PATH")] = None,
    client_logs: Annotated[str | None, Parameter(metavar="LIBRARY")] = None,
    client_logs_into: Annotated[Path, Parameter(metavar="DIR")] = Path("client-logs"),
    compare: _Compare = (),
    protocol: Literal["classic", "streams"] | None = None,
    quiet: Annotated[bool, Parameter(negative=())] = False,
    plain: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Play a scenario: its timeline, and a summary.

    Parameters
    ----------
    file
        Scenario in YAML, or the name of one in the gallery.
    seed
        Seed to use instead of the scenario's.
    html
        Page to write, with a chart of partition ownership.
    journal
        Where to write the journal that a service would write: a .jsonl file, or a directory.
    client_logs
        Library in whose words the consumers log: java, rdkafka, rdkafka-debug, kafka-python, aiokafka, kafkajs,
        franz-go or sarama. Each consumer has a file, which rejoin report reads.
    client_logs_into
        Directory for these files, in a folder for each group.
    compare
        Setting of the groups to vary, such as assignor=range,cooperative-sticky; the variants are played and compared.
        May be given several times. A plus joins the assignors of one variant.
    protocol
        Protocol of Kafka Streams applications, in place of the scenario's.
    quiet
        Print only the summary.
    plain
        Play every heartbeat, including those that change nothing.
    """
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    wanted = actions.Outputs(html, journal, client_logs, client_logs_into)
    return actions.run(file, seed, wanted, compare, protocol=protocol, quiet=quiet, plain=plain)


def lab(
    file: Path = Path("stuck_handler_holds_up_a_rebalance"),
    *,
    seed: _Seed = None,
    port: Annotated[int, Parameter(metavar="PORT")] = 0,
    browser: bool = True,
) -> int:
    """Open the laboratory in the browser: play a scenario, step through it, and change it while it runs.

    The laboratory also shows a journal, which is a directory or a .jsonl file.

    Parameters
    ----------
    file
        Scenario in YAML, the name of one in the gallery, or a journal.
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
    seeds: Annotated[str, Parameter(metavar="SEEDS")] = "0:200",
    schedule: Literal["faults", "failovers", "producers", "transactions", "consumer", "share", "streams"] = "faults",
    minutes: Annotated[float | None, Parameter(metavar="MINUTES")] = None,
    shrink: bool = True,
    into: Annotated[Path | None, Parameter(metavar="DIR")] = None,
) -> int:
    """Play random scenarios with random faults, and check every invariant.

    Parameters
    ----------
    seeds
        Seeds to play: one number, or A:B for A to B-1.
    schedule
        Kind of scenarios. faults: faults of every kind. failovers: mostly failovers of nodes. producers: idempotent
        producers. transactions: consumers that transform records in transactions. consumer: groups of the consumer
        protocol, and groups that migrate to it. share: share groups. streams: threads of Kafka Streams applications.
    minutes
        Stop after this many minutes.
    shrink
        Shrink a failing scenario before it is shown.
    into
        Directory for the scenario and the transcript of a failure. Without it they are only printed.
    """
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.search(seeds, schedule, minutes, into, shrink=shrink)


def explore(
    world: Path,
    /,
    *,
    depth: Annotated[int | None, Parameter(metavar="STEPS")] = None,
    states: Annotated[int | None, Parameter(metavar="STATES")] = None,
    liveness: bool = True,
    into: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    spark: Annotated[bool, Parameter(negative=())] = False,
    master: Annotated[str | None, Parameter(metavar="URL")] = None,
) -> int:
    """Take every step that could come next, in every state of a small world, and check every invariant.

    The first counterexample is a shortest one. It is written as a scenario, which rejoin simulate plays and rejoin lab
    opens, and as a transcript.

    Parameters
    ----------
    world
        World in YAML, which is a scenario with a part explore, or the name of one that comes with Rejoin.
    depth
        How many steps deep; without it as the world says.
    states
        Stop at the end of the depth that has met so many states.
    liveness
        Look for a way without faults from each state to where every group has settled.
    into
        Directory for the counterexample. Without it the counterexample is only printed.
    spark
        Explore on Spark, one round a depth. A way to settle is not looked for then.
    master
        Spark master to run on; without it all cores of this machine.
    """
    from rejoin.simulation.commands import exploring  # noqa: PLC0415

    return exploring.explore(world, depth, states, into, liveness=liveness, spark=spark, master=master)


@gallery_app.command(name="list")
def list_gallery() -> None:
    """List all scenarios, each with its question."""
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    actions.list_gallery()


@gallery_app.command(name="show")
def show_yaml(name: str, /) -> int:
    """Print the YAML of a scenario, as a start for your own."""
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.show_yaml(name)


@gallery_app.command
def answer(name: str, /) -> int:
    """Show the question and the answer of a scenario."""
    from rejoin.simulation.commands import actions  # noqa: PLC0415

    return actions.answer(name)
