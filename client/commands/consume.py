"""`rejoin consume`: its options. Showing them must not import the client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.client.workload.commit_mode import CommitMode

app: Final = App(name="consume", help="Run a group's consumers as processes of their own.", version_flags=[])


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """What can be given on the command line. The texts are those of ``--help``."""

    group: Annotated[str, Parameter(name=["--group", "-g"])]
    """The group to join."""
    topic: Annotated[list[str] | None, Parameter(name=["--topic", "-t"], negative=())] = None
    """A topic to read; may be given several times, or with commas."""
    pattern: str | None = None
    """Read every topic whose whole name matches this regular expression instead."""
    bootstrap: Annotated[str, Parameter(name=["--bootstrap", "--bootstrap-server"])] = "http://127.0.0.1:9095"
    """Where to connect: HOST:PORT speaks Kafka's protocol, http://HOST:PORT HTTP; several with commas."""
    consumers: Annotated[int, Parameter(name=["--consumers", "-n"])] = 1
    """Consumers in each process."""
    processes: Annotated[int, Parameter(name=["--processes", "-p"])] = 1
    """Number of processes. A single one is this process itself."""
    assignor: Annotated[list[str] | None, Parameter(negative=())] = None
    """An assignor the consumers offer: range, roundrobin, sticky, cooperative-sticky or module:Class; in order of
    preference if there are several."""
    group_protocol: str | None = None
    """classic, where a member assigns, or consumer, where the coordinator does. The default is classic."""
    static: Annotated[bool, Parameter(negative=())] = False
    """Make the members static: each has an instance id and keeps its membership over a restart."""
    instance_id_prefix: str | None = None
    """Prefix of the instance ids, before the consumer's number; implies --static."""
    client_id: str | None = None
    """Prefix of the client ids, before the consumer's number. The default is the group's name."""
    rack: Annotated[list[str] | None, Parameter(negative=())] = None
    """Racks of the consumers, in rotation."""
    session_timeout_ms: int | None = None
    """The coordinator removes a member after this long without a heartbeat."""
    heartbeat_interval_ms: int | None = None
    """Time between heartbeats."""
    max_poll_interval_ms: int | None = None
    """Longest time between two polls, and how long the group waits for a member to rejoin."""
    max_poll_records: int | None = None
    """Most records that one poll returns."""
    auto_offset_reset: str = "earliest"
    """Where to start without a committed offset: earliest, latest or none."""
    processing_time: str = "0"
    """Time per record: 2ms, 250us, exp(5ms), uniform(1ms,9ms), normal(5ms,1ms) or pareto(2ms,3). With /poll appended,
    time for all records of a poll together."""
    revoke_time: str = "0"
    """Time the listener takes for each partition that it gives up, as to flush what was read from it."""
    assign_time: str = "0"
    """Time the listener takes for each partition that it gets, as to load what processing needs."""
    commit: CommitMode | None = None
    """auto (by interval), sync or async (after each poll), or none. The default is auto."""
    transform_to: str | None = None
    """Write each record that was processed to this topic, before its offset is committed: at least once. Needs Kafka's
    protocol."""
    exactly_once: Annotated[bool, Parameter(negative=())] = False
    """With --transform-to: one transaction for the records of a poll and their offsets."""
    commit_interval: str | None = None
    """With --exactly-once: a transaction takes in what polls return within this time, as 500ms or 5s, and ends earlier
    where partitions are revoked. The default is to end it with each poll."""
    journal: Path | None = None
    """Directory for the journal: records processed, offsets committed, partitions assigned, and why."""
    run_id: str | None = None
    """Name of this run in the journal."""
    seed: int = 0
    """Seed of processing times and backoffs."""
    setting: Annotated[list[str] | None, Parameter(name=["-c", "--setting"], negative=())] = None
    """Any other consumer setting, as NAME=VALUE with Kafka's name; with --transform-to also one of the producer."""
    leave: Annotated[bool, Parameter(negative="--no-leave")] = True
    """Leave the group when stopping."""
    duration: str | None = None
    """Stop after this time: 90s, 5m, or a number of seconds."""
    log_level: str = "info"
    """debug, info, warning or error."""
    first: Annotated[int, Parameter(show=False)] = 1
    child: Annotated[bool, Parameter(show=False, negative=())] = False


@app.default
def run(options: ConsumeOptions) -> int:
    """Run consumers until SIGTERM or Ctrl-C. Both leave the group cleanly; `kill -9` does not."""
    from rejoin.client.commands import consumer_processes  # noqa: PLC0415 (the client, which --help can do without)

    return consumer_processes.run(options)
