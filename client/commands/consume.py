"""`rejoin consume`: its options. Showing them must not import the client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.client.commands.server_option import DEFAULT_SERVER
from rejoin.client.workload.commit_mode import CommitMode

app: Final = App(name="consume", help="Run consumers of a group.", version_flags=[])


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """Options of the command line. The texts are those of ``--help``."""

    group: Annotated[str, Parameter(name=["--group", "-g"], metavar="GROUP")]
    """Group to join."""
    topic: Annotated[list[str] | None, Parameter(name=["--topic", "-t"], negative=(), metavar="TOPIC")] = None
    """A topic to read; may be given several times, or with commas."""
    pattern: Annotated[str | None, Parameter(metavar="REGEX")] = None
    """Read every topic whose whole name matches this regular expression, instead of --topic."""
    bootstrap: Annotated[str, Parameter(name=["--bootstrap-server", "--bootstrap"], metavar="SERVER")] = DEFAULT_SERVER
    """Where to connect: HOST:PORT for Kafka's protocol, http://HOST:PORT for HTTP. Separate several with commas."""
    consumers: Annotated[int, Parameter(name=["--consumers", "-n"], metavar="N")] = 1
    """Number of consumers in each process."""
    processes: Annotated[int, Parameter(name=["--processes", "-p"], metavar="N")] = 1
    """Number of processes. One process is this process itself."""
    assignor: Annotated[list[str] | None, Parameter(negative=(), metavar="ASSIGNOR")] = None
    """Assignor that the consumers offer: range, roundrobin, sticky, cooperative-sticky or module:Class. May be given
    several times, in order of preference."""
    group_protocol: Annotated[str | None, Parameter(metavar="PROTOCOL")] = None
    """classic, in which a member assigns, or consumer, in which the coordinator does. The default is classic."""
    share: Annotated[bool, Parameter(negative=())] = False
    """Join a share group: members share the records of each partition, and accept each record on its own. The group's
    settings say where to start."""
    static: Annotated[bool, Parameter(negative=())] = False
    """Make the members static: each has an instance id and keeps its membership over a restart."""
    instance_id_prefix: Annotated[str | None, Parameter(metavar="PREFIX")] = None
    """Prefix of the instance ids, followed by the consumer's number. Implies --static."""
    client_id: Annotated[str | None, Parameter(metavar="PREFIX")] = None
    """Prefix of the client ids, followed by the consumer's number. The default is the group's name."""
    rack: Annotated[list[str] | None, Parameter(negative=(), metavar="RACK")] = None
    """Racks of the consumers, in rotation."""
    session_timeout_ms: Annotated[int | None, Parameter(metavar="MS")] = None
    """Time without a heartbeat after which the coordinator removes a member."""
    heartbeat_interval_ms: Annotated[int | None, Parameter(metavar="MS")] = None
    """Time between heartbeats."""
    max_poll_interval_ms: Annotated[int | None, Parameter(metavar="MS")] = None
    """Longest time between two polls. The group waits as long for a member to rejoin."""
    max_poll_records: Annotated[int | None, Parameter(metavar="N")] = None
    """Largest number of records that a poll returns."""
    auto_offset_reset: Annotated[str, Parameter(metavar="WHERE")] = "earliest"
    """Where to start without a committed offset: earliest, latest or none."""
    processing_time: Annotated[str, Parameter(metavar="TIME")] = "0"
    """Time that each record takes: 2ms, 250us, exp(5ms), uniform(1ms,9ms), normal(5ms,1ms) or pareto(2ms,3). With /poll
    appended, the time for all records of a poll together."""
    revoke_time: Annotated[str, Parameter(metavar="TIME")] = "0"
    """Time that the rebalance listener takes for each revoked partition, as if to flush results."""
    assign_time: Annotated[str, Parameter(metavar="TIME")] = "0"
    """Time that the rebalance listener takes for each assigned partition, as if to load state."""
    commit: CommitMode | None = None
    """auto commits at an interval, sync and async after each poll, none never. The default is auto."""
    transform_to: Annotated[str | None, Parameter(metavar="TOPIC")] = None
    """Write each processed record to this topic before its offset is committed: at least once. Needs Kafka's
    protocol."""
    exactly_once: Annotated[bool, Parameter(negative=())] = False
    """With --transform-to: write the records of a poll and their offsets in one transaction."""
    commit_interval: Annotated[str | None, Parameter(metavar="TIME")] = None
    """With --exactly-once: length of a transaction, such as 500ms or 5s. A transaction ends earlier when partitions are
    revoked. The default is one transaction a poll."""
    journal: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """Directory for the journal: records processed, offsets committed, partitions assigned, and why."""
    run_id: Annotated[str | None, Parameter(metavar="ID")] = None
    """Name of this run in the journal."""
    seed: Annotated[int, Parameter(metavar="SEED")] = 0
    """Seed of processing times and backoffs."""
    setting: Annotated[list[str] | None, Parameter(name=["-c", "--setting"], negative=(), metavar="NAME=VALUE")] = None
    """Any other setting of a consumer, by Kafka's name; with --transform-to also of a producer. May be given several
    times."""
    leave: Annotated[bool, Parameter(negative="--no-leave")] = True
    """Leave the group when stopping."""
    wait: Annotated[str, Parameter(metavar="TIME")] = "60s"
    """How long to look for a coordinator at the start before giving up. A consumer that has found one outlives every
    restart of the brokers."""
    duration: Annotated[str | None, Parameter(metavar="TIME")] = None
    """Stop after this time: 90s, 5m, or a number of seconds."""
    log_level: Annotated[str, Parameter(metavar="LEVEL")] = "info"
    """debug, info, warning or error."""
    first: Annotated[int, Parameter(show=False)] = 1
    child: Annotated[bool, Parameter(show=False, negative=())] = False


@app.default
def run(options: ConsumeOptions) -> int:
    """Run consumers until SIGTERM or Ctrl-C, which leave the group cleanly. `kill -9` does not."""
    from rejoin.client.commands import consumer_processes  # noqa: PLC0415 (the client, which --help can do without)

    return consumer_processes.run(options)
