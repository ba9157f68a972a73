"""The command lines of ``rejoin report``, ``watch``, ``why`` and ``sweep``. Their help must not import Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from rejoin.pipeline.report.defaults import MOST_GROUPS, TITLE


def report(
    inputs: list[Path],
    /,
    *,
    out: Path,
    kind: Literal["journal", "parquet", "log"] | None = None,
    group: Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=True, show_default=False)] = (),
    groups: int = MOST_GROUPS,
    timezone: str = "UTC",
    master: str | None = None,
    title: str = TITLE,
    annotations: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
) -> int:
    """Explain every rebalance: tables in Parquet, findings in the terminal, and one HTML page.

    Parameters
    ----------
    inputs
        Files and directories: journals (*.jsonl), Parquet of events, brokers' server.log and kafka-request.log, packed
        with gzip or not. The kind of each file follows from its content.
    out
        Folder for report.html and tables/, not one that is read. An earlier report there is replaced.
    kind
        Read all files as this kind, whatever their content.
    group
        Show this group on the page; may be given several times. The default is the worst groups.
    groups
        Number of groups with a chart on the page.
    timezone
        Time zone of the brokers' logs, such as Europe/Berlin.
    master
        Spark master: local[N], local-cluster[EXECUTORS,CORES,MB] or spark://HOST:PORT; all cores of this machine
        without it.
    title
        Title of the page.
    annotations
        What happened around the groups: the JSON of kubectl get events -o json, or lines with an instant and a text.
        Drawn on the timeline and held against the rebalances. May be given several times.
    """
    from rejoin.pipeline.commands.report import run  # noqa: PLC0415

    return run(
        inputs=inputs,
        out=out,
        kind=kind,
        group=group,
        groups=groups,
        timezone=timezone,
        master=master,
        title=title,
        annotations=annotations,
    )


def watch(
    *,
    from_: Annotated[tuple[str, ...], Parameter(name="--from", negative="", show_default=False)] = (),
    journal: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    bootstrap_server: Annotated[str | None, Parameter(name=("--bootstrap-server", "--bootstrap"))] = None,
    command_config: Path | None = None,
    group: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    log: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    timezone: str | None = None,
    out: Path | None = None,
    once: Annotated[bool, Parameter(negative=())] = False,
    every: float | None = None,
    lost: Literal["skip", "fail"] | None = None,
    master: str | None = None,
) -> int:
    """Follow running coordinators and show rebalances, their causes and findings as they come.

    What was read is kept, each event once, also when this is killed: the same command goes on where it was.

    Parameters
    ----------
    from_
        A coordinator to follow, http://HOST:PORT. May be given several times, for all nodes of a cluster.
    journal
        A folder of journals to follow instead. Segments are read once they are closed.
    bootstrap_server
        Any Kafka cluster to follow instead, HOST:PORT; separate several with commas. Its groups are polled over Kafka's
        protocol, which changes nothing there.
    command_config
        With --bootstrap-server: properties file with security.protocol, sasl.mechanism and so on.
    group
        With --bootstrap-server: follow this group alone; may be given several times.
    log
        With --bootstrap-server: a broker's server.log, which is followed as it grows; may be given several times.
    timezone
        With --log: time zone of the logs, such as Europe/Berlin; the default is UTC.
    out
        Folder for the tables and the progress. Without it nothing is kept.
    once
        Read what there is now, write the tables, and exit.
    every
        Seconds between polls; the default is 1, and 5 for --bootstrap-server.
    lost
        With --from: what to do when a service has lost events that were not read yet, as after a restart without a
        journal: skip, the default, says so in the quarantine and goes on; fail ends with an error.
    master
        With --from and --journal: Spark master, local[N] or spark://HOST:PORT; all cores of this machine without it.
    """
    from rejoin.pipeline.commands.watch_options import WatchOptions, run  # noqa: PLC0415

    of_cluster = (bootstrap_server, command_config, group, log, timezone)
    return run(WatchOptions(from_, journal, *of_cluster, out, once, every, lost, master))


def why(
    group: str,
    folder: Path | None = None,
    /,
    *,
    bootstrap_server: Annotated[str | None, Parameter(name=("--bootstrap-server", "--bootstrap"))] = None,
    at: str | None = None,
    command_config: Path | None = None,
    seconds: Annotated[float, Parameter(name="--for")] = 2.0,
    annotations: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Say in ten lines why a group rebalances, and what to change.

    Parameters
    ----------
    group
        The group's id.
    folder
        The folder that was --out of rejoin report or rejoin watch, or a journal: a folder or a .jsonl file.
    bootstrap_server
        Instead of a folder: http://HOST:PORT is a running coordinator, whose events are read; HOST:PORT is any Kafka
        cluster, which shows only the current state. Separate several with commas. The default is http://127.0.0.1:9095.
    at
        Explain the rebalance at this instant, such as 2026-03-01T14:02:00Z, or 14:02 on the last day; without a zone,
        UTC. In a simulation: 0:10:00 since its start.
    command_config
        Properties file with security.protocol, sasl.mechanism and so on, for HOST:PORT.
    seconds
        How many seconds to poll a cluster for.
    annotations
        File of events around the group, such as deployments, as for rejoin report.
    json
        Print the data behind the answer: status, rebalances, findings.
    """
    from rejoin.pipeline.commands.why import run  # noqa: PLC0415

    return run(
        group=group,
        folder=folder,
        bootstrap_server=bootstrap_server,
        at=at,
        command_config=command_config,
        seconds=seconds,
        annotations=annotations,
        as_json=json,
    )


def mcp(
    folder: Path | None = None,
    /,
    *,
    bootstrap_server: Annotated[str | None, Parameter(name=("--bootstrap-server", "--bootstrap"))] = None,
    command_config: Path | None = None,
) -> int:
    """Serve the Model Context Protocol on standard input and output: groups, why, rebalances, findings. It only reads.

    Parameters
    ----------
    folder
        The folder that was --out of rejoin report or rejoin watch, or a journal: a folder or a .jsonl file.
    bootstrap_server
        Instead of a folder: a running coordinator (http://HOST:PORT) or a Kafka cluster (HOST:PORT), as for rejoin why.
    command_config
        Properties file with security.protocol, sasl.mechanism and so on, for HOST:PORT.
    """
    from rejoin.pipeline.commands.mcp import run  # noqa: PLC0415

    return run(folder=folder, bootstrap_server=bootstrap_server, command_config=command_config)


def sweep(
    grid: Path,
    *,
    out: Path | None = None,
    master: str | None = None,
    seeds: str | None = None,
    top: int = 12,
    by: Literal["rebalances", "stopped", "unowned", "late", "twice"] | None = None,
    again: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Play a scenario with every combination of values and every seed, on Spark, and rank the settings.

    Finished runs are kept: the same command goes on where it was stopped, and a grid that has grown plays only what
    is new.

    Parameters
    ----------
    grid
        The YAML file that names scenario, parameters and seeds; see examples/sweeps.
    out
        Folder for the results. The default is out/sweep-NAME.
    master
        Spark master: local[N], local-cluster[EXECUTORS,CORES,MB] or spark://HOST:PORT; all cores of this machine
        without it.
    seeds
        Seeds to use instead of the grid's: a number of them, or A:B from A up to but excluding B.
    top
        Number of settings to show.
    by
        Rank the settings by this instead of the grid's rank_by.
    again
        Play runs again that failed before.
    """
    from rejoin.pipeline.commands.sweep import run  # noqa: PLC0415

    return run(grid=grid, out=out, master=master, seeds=seeds, top=top, by=by, again=again)
