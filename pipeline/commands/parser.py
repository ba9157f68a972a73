"""The command lines of ``rejoin report``, ``watch``, ``why``, ``mcp`` and ``sweep``. Help must not import Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from rejoin.pipeline.report.defaults import MOST_GROUPS, TITLE

_Dir = Annotated[Path | None, Parameter(metavar="DIR")]
_File = Annotated[Path | None, Parameter(metavar="FILE")]
_Files = Annotated[tuple[Path, ...], Parameter(negative="", show_default=False, metavar="FILE")]
_Groups = Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=True, show_default=False, metavar="GROUP")]
_Master = Annotated[str | None, Parameter(metavar="MASTER")]
_Instant = Annotated[str | None, Parameter(metavar="TIME")]
_Server = Annotated[str | None, Parameter(name=("--bootstrap-server", "--bootstrap"), metavar="HOST:PORT")]


def report(
    inputs: list[Path],
    /,
    *,
    out: Annotated[Path, Parameter(metavar="DIR")],
    kind: Literal["journal", "parquet", "log"] | None = None,
    group: _Groups = (),
    groups: int = MOST_GROUPS,
    timezone: Annotated[str, Parameter(metavar="ZONE")] = "UTC",
    master: _Master = None,
    title: str = TITLE,
    annotations: _Files = (),
    since: _Instant = None,
    until: _Instant = None,
) -> int:
    """Explain every rebalance: findings in the terminal, one HTML page, and tables in Parquet.

    Parameters
    ----------
    inputs
        Files and directories to read, or - for standard input: logs of consumers (fifteen client libraries), brokers'
        server.log and kafka-request.log, journals (*.jsonl), and Parquet of events. Files may be packed (gzip, bzip2,
        xz), and lie in zip and tar archives. The content of a file decides how it is read.
    out
        Directory for report.html and tables/. An earlier report there is replaced. It must not be an input.
    kind
        Read every file as this kind, whatever its content.
    group
        Show this group on the page; may be given several times. The default is the worst groups.
    groups
        Number of groups with a chart on the page.
    timezone
        Time zone of the logs of consumers and brokers, such as Europe/Berlin.
    master
        Spark master: local[N], local-cluster[EXECUTORS,CORES,MB] or spark://HOST:PORT. The default is all cores of this
        machine.
    title
        Title of the page.
    annotations
        File with events around the groups, such as deployments: the output of kubectl get events -o json, or lines with
        an instant and a text. They are drawn on the timeline and compared with the rebalances. May be given several
        times.
    since
        Of logs, read only lines from then on: 2026-03-01T14:02:00Z, 14:02 (UTC, the last day), or 30m before the end
    until
        Of logs, read only lines up to this time.
    """
    from rejoin.pipeline.arrow_without_pandas import import_arrow  # noqa: PLC0415

    import_arrow()
    from rejoin.pipeline.commands.report import run  # noqa: PLC0415

    shown: dict[str, Any] = {"group": group, "groups": groups, "title": title, "annotations": annotations}
    return run(inputs=inputs, out=out, kind=kind, timezone=timezone, master=master, window=(since, until), **shown)


def watch(
    *,
    from_: Annotated[tuple[str, ...], Parameter(name="--from", negative="", show_default=False, metavar="URL")] = (),
    journal: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False, metavar="DIR")] = (),
    bootstrap_server: _Server = None,
    command_config: _File = None,
    group: Annotated[tuple[str, ...], Parameter(negative="", show_default=False, metavar="GROUP")] = (),
    log: _Files = (),
    timezone: Annotated[str | None, Parameter(metavar="ZONE")] = None,
    out: _Dir = None,
    once: Annotated[bool, Parameter(negative=())] = False,
    every: Annotated[float | None, Parameter(metavar="SECONDS")] = None,
    lost: Literal["skip", "fail"] | None = None,
    master: _Master = None,
) -> int:
    """Follow running coordinators, and show rebalances, their causes and findings as they come.

    With --out, the same command continues where it stopped, also after kill -9. No event is read twice.

    Parameters
    ----------
    from_
        Coordinator to follow, http://HOST:PORT; may be given several times, for the nodes of a cluster.
    journal
        Directory of journals to follow instead. Segments are read once they are closed.
    bootstrap_server
        Kafka cluster to follow instead; separate several addresses with commas. Its groups are polled over Kafka's
        protocol, which changes nothing in the cluster.
    command_config
        With --bootstrap-server: properties file with security.protocol, sasl.mechanism and so on.
    group
        With --bootstrap-server: follow only this group; may be given several times.
    log
        With --bootstrap-server: a broker's server.log, to be followed as it grows; may be given several times.
    timezone
        With --log: time zone of the logs, such as Europe/Berlin. The default is UTC.
    out
        Directory for the tables and the progress. Without it nothing is kept.
    once
        Read the events so far, write the tables, and exit.
    every
        Time between polls. The default is 1, and 5 with --bootstrap-server.
    lost
        With --from: what to do when a coordinator has lost events before they were read, as after a restart without a
        journal. skip, the default, adds a line to the quarantine and continues; fail ends with an error.
    master
        With --from or --journal: Spark master, local[N] or spark://HOST:PORT. The default is all cores of this machine.
    """
    from rejoin.pipeline.commands.watch_options import WatchOptions, run  # noqa: PLC0415

    of_cluster = (bootstrap_server, command_config, group, log, timezone)
    return run(WatchOptions(from_, journal, *of_cluster, out, once, every, lost, master))


def why(
    group: str,
    /,
    *folders: Path,
    bootstrap_server: _Server = None,
    at: Annotated[str | None, Parameter(metavar="TIME")] = None,
    command_config: _File = None,
    seconds: Annotated[float, Parameter(name="--for", metavar="SECONDS")] = 2.0,
    annotations: _Files = (),
    since: _Instant = None,
    until: _Instant = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Say in ten lines why a group rebalances, and what to change.

    Parameters
    ----------
    group
        The group's id. Not needed before a file or directory with only one group.
    folders
        The --out directory of rejoin report or rejoin watch; a journal, which is a directory or a .jsonl file; or
        logs of consumers or brokers: files, directories, zip and tar archives, or - for standard input.
    bootstrap_server
        Address to ask instead of a folder. http://HOST:PORT is a running coordinator, which has all its events;
        HOST:PORT is any Kafka cluster, which has only its current state. Separate several with commas. The default is
        http://127.0.0.1:9095.
    at
        Explain the rebalance at this time: 2026-03-01T14:02:00Z, 14:02 for the last day, or 30m before the
        end. Without a zone, the time is UTC. In a simulation, 0:10:00 is ten minutes after its start.
    command_config
        With HOST:PORT: properties file with security.protocol, sasl.mechanism and so on.
    seconds
        With HOST:PORT: how long to poll the cluster.
    annotations
        File with events around the group, such as deployments, as for rejoin report.
    since
        Of logs, read only lines from this time on, as if the log began there: 2026-03-01T14:02:00Z, 14:02 for the last
        day, or 30m for the last half hour. Without a zone, the time is UTC. Files without times are left out.
    until
        Of logs, read only lines up to this time.
    json
        Print the data behind the answer: status, rebalances, findings.
    """
    from rejoin.pipeline.commands.why import run  # noqa: PLC0415
    from rejoin.pipeline.instants import LogWindow  # noqa: PLC0415

    return run(
        group=group,
        folders=folders,
        bootstrap_server=bootstrap_server,
        at=at,
        command_config=command_config,
        seconds=seconds,
        annotations=annotations,
        window=LogWindow(since, until),
        as_json=json,
    )


def mcp(
    folder: Path | None = None,
    /,
    *,
    bootstrap_server: _Server = None,
    command_config: _File = None,
) -> int:
    """Serve the Model Context Protocol on standard input and output: groups, why, rebalances, findings. It only reads.

    Parameters
    ----------
    folder
        The --out directory of rejoin report or rejoin watch; a journal, which is a directory or a .jsonl file; or
        logs of consumers or brokers, a file or a directory.
    bootstrap_server
        Address to ask instead of a folder: a running coordinator (http://HOST:PORT) or a Kafka cluster (HOST:PORT).
    command_config
        With HOST:PORT: properties file with security.protocol, sasl.mechanism and so on.
    """
    from rejoin.pipeline.commands.mcp import run  # noqa: PLC0415

    return run(folder=folder, bootstrap_server=bootstrap_server, command_config=command_config)


def sweep(
    grid: Path,
    *,
    out: _Dir = None,
    master: _Master = None,
    seeds: Annotated[str | None, Parameter(metavar="SEEDS")] = None,
    top: Annotated[int, Parameter(metavar="N")] = 12,
    by: Literal["rebalances", "stopped", "unowned", "late", "twice"] | None = None,
    again: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Play a scenario with every combination of values and every seed, on Spark, and rank the settings.

    Finished runs are kept: the same command continues where it stopped, and a larger grid plays only its new runs.

    Parameters
    ----------
    grid
        YAML file with the scenario, the parameters and the seeds. examples/sweeps has some.
    out
        Directory for the results. The default is out/sweep-NAME.
    master
        Spark master: local[N], local-cluster[EXECUTORS,CORES,MB] or spark://HOST:PORT. The default is all cores of this
        machine.
    seeds
        Seeds to use instead of the grid's: how many, or A:B for A to B-1.
    top
        Number of settings to show.
    by
        Rank the settings by this, instead of by the grid's rank_by.
    again
        Play failed runs again.
    """
    from rejoin.pipeline.commands.sweep import run  # noqa: PLC0415

    return run(grid=grid, out=out, master=master, seeds=seeds, top=top, by=by, again=again)
