"""`rejoin consume`: a group's consumers as real processes, each with one or many of them.

The first process starts the others, prints their process ids, and waits for them. A child whose parent dies leaves the
group and ends: it reads its standard input, and the parent holds the other end.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import uuid4

from cyclopts import App, Parameter
from pydantic import ValidationError

from rejoin.client.assignors import assignor_named
from rejoin.client.config import ConsumerConfig
from rejoin.client.transports.http import base_url
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.client.workload.worker import CommitMode, Work, run_worker
from rejoin.journal.segments import JournalError
from rejoin.journal.writer import check_directory
from rejoin.protocol.units import duration_ms

app: Final = App(name="consume", help="Run a group's consumers as processes of their own.", version_flags=[])

_GRACE_SECONDS: Final = 40.0


class WrongOption(Exception):
    """An option has a value that makes no sense; the text is for the user."""


@app.default
def run(
    *,
    group: Annotated[str, Parameter(name=["--group", "-g"])],
    topic: Annotated[list[str] | None, Parameter(name=["--topic", "-t"], negative=())] = None,
    pattern: str | None = None,
    bootstrap: Annotated[str, Parameter(name=["--bootstrap", "--bootstrap-server"])] = "http://127.0.0.1:9095",
    consumers: Annotated[int, Parameter(name=["--consumers", "-n"])] = 1,
    processes: Annotated[int, Parameter(name=["--processes", "-p"])] = 1,
    assignor: Annotated[list[str] | None, Parameter(negative=())] = None,
    static: Annotated[bool, Parameter(negative=())] = False,
    instance_id_prefix: str | None = None,
    client_id: str | None = None,
    rack: Annotated[list[str] | None, Parameter(negative=())] = None,
    session_timeout_ms: int | None = None,
    heartbeat_interval_ms: int | None = None,
    max_poll_interval_ms: int | None = None,
    max_poll_records: int | None = None,
    auto_offset_reset: str = "earliest",
    processing_time: str = "0",
    commit: CommitMode = "auto",
    journal: Path | None = None,
    run_id: str | None = None,
    seed: int = 0,
    setting: Annotated[list[str] | None, Parameter(name=["-c", "--setting"], negative=())] = None,
    leave: Annotated[bool, Parameter(negative="--no-leave")] = True,
    duration: str | None = None,
    log_level: str = "info",
    first: Annotated[int, Parameter(show=False)] = 1,
    child: Annotated[bool, Parameter(show=False, negative=())] = False,
) -> int:
    """Run consumers until SIGTERM or Ctrl-C. Both leave the group cleanly; `kill -9` does not.

    Parameters
    ----------
    group
        The group to join.
    topic
        A topic to read; may be given several times, or with commas.
    pattern
        Read every topic whose whole name matches this regular expression instead.
    bootstrap
        The coordinator, as HOST:PORT or http://HOST:PORT; several with commas.
    consumers
        Consumers in each process.
    processes
        Number of processes. A single one is this process itself.
    assignor
        An assignor the consumers offer: range, roundrobin, sticky, cooperative-sticky or module:Class; in order of
        preference if there are several.
    static
        Make the members static: each has an instance id and keeps its membership over a restart.
    instance_id_prefix
        Prefix of the instance ids, before the consumer's number; implies --static.
    client_id
        Prefix of the client ids, before the consumer's number. The default is the group's name.
    rack
        Racks of the consumers, in rotation.
    session_timeout_ms
        The coordinator removes a member after this long without a heartbeat.
    heartbeat_interval_ms
        Time between heartbeats.
    max_poll_interval_ms
        Longest time between two polls, and how long the group waits for a member to rejoin.
    max_poll_records
        Most records that one poll returns.
    auto_offset_reset
        Where to start without a committed offset: earliest, latest or none.
    processing_time
        Time per record: 2, 2ms, 250us, exp(5ms), uniform(1,9), normal(5,1) or pareto(2,3). With /poll appended, time
        for all records of a poll together.
    commit
        auto (by interval), sync or async (after each poll), or none.
    journal
        Directory for the journal: records processed, offsets committed, partitions assigned, and why.
    run_id
        Name of this run in the journal.
    seed
        Seed of processing times and backoffs.
    setting
        Any other consumer setting, as NAME=VALUE with Kafka's name.
    leave
        Leave the group when stopping.
    duration
        Stop after this time: 90s, 5m, or a number of seconds.
    log_level
        debug, info, warning or error.
    """
    from rejoin.client.logs import LEVELS, configure  # noqa: PLC0415 (structlog, only here)

    if log_level not in LEVELS:
        return _refuse(f"--log-level {log_level}: expected one of {', '.join(LEVELS)}")
    try:
        _check(topic, pattern, consumers, processes, _split(assignor), journal)
        seconds = None if duration is None else _seconds(duration)
        given = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "session_timeout_ms": session_timeout_ms,
            "heartbeat_interval_ms": heartbeat_interval_ms,
            "max_poll_interval_ms": max_poll_interval_ms,
            "max_poll_records": max_poll_records,
            "auto_offset_reset": auto_offset_reset,
        }
        settings = settings_from(setting or (), {name: value for name, value in given.items() if value is not None})
        for server in settings["bootstrap_servers"]:
            base_url(server)
        prefix = client_id or group
        instance_prefix = instance_id_prefix or (f"{prefix}-" if static else None)
        numbers = range(first, first + consumers)
        work = Work(
            topics=_split(topic),
            pattern=pattern,
            client_ids=tuple(f"{prefix}-{number}" for number in numbers),
            instance_ids=tuple(f"{instance_prefix}{number}" for number in numbers) if instance_prefix else (),
            assignors=_split(assignor),
            settings=settings,
            commit=commit,
            processing_time=parse_processing_time(processing_time),
            seed=seed,
            node=f"{prefix}-{first}",
            run_id=run_id or os.environ.get("REJOIN_RUN_ID") or uuid4().hex,
            journal=journal,
            leave=leave,
            racks=_split(rack),
        )
    except (WrongOption, JournalError, ValueError) as problem:
        return _refuse(str(problem))
    configure(log_level)
    if processes == 1:
        try:
            return asyncio.run(_alone(work, seconds, child))
        except JournalError as problem:
            return _refuse(str(problem))
    return asyncio.run(_together(work.run_id, first, consumers, processes, seconds))


def _check(
    topic: Sequence[str] | None,
    pattern: str | None,
    consumers: int,
    processes: int,
    assignors: Sequence[str],
    journal: Path | None,
) -> None:
    """Raises WrongOption, or ValueError, for options that make no sense."""
    if not topic and pattern is None:
        raise WrongOption("expected --topic or --pattern")
    if consumers < 1 or processes < 1:
        raise WrongOption("--consumers and --processes: expected at least 1")
    for name in assignors:
        assignor_named(name)
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as problem:
            raise WrongOption(f"--pattern {pattern}: not a regular expression: {problem}") from None
    if journal is not None:
        check_directory(journal)


def _seconds(duration: str) -> float:
    try:
        return duration_ms(duration, bare="s") / 1_000
    except ValueError as problem:
        raise WrongOption(f"--duration {duration}: {problem}") from None


def settings_from(pairs: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Checked settings by their Python names, from options and from ``NAME=VALUE``; the latter win.

    Raises WrongOption naming the setting.
    """
    names = {info.alias or name: name for name, info in ConsumerConfig.model_fields.items()}
    found = dict(given)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WrongOption(f"-c {pair}: expected NAME=VALUE")
        if name.strip() not in names:
            near = get_close_matches(name, names, n=1)
            raise WrongOption(f"-c {pair}: there is no setting {name}" + (f"; is it {near[0]}?" if near else ""))
        found[names[name.strip()]] = value.strip()
    try:
        checked = ConsumerConfig(**found)
    except ValidationError as problem:
        error = problem.errors(include_url=False)[0]
        where = ".".join(str(part) for part in error["loc"]) or "settings"
        raise WrongOption(f"{where}: {error['msg'].removeprefix('Value error, ')}") from None
    return {name: getattr(checked, name) for name in found}


def _split(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for text in given or () for part in text.split(",") if part.strip())


def _refuse(problem: str) -> int:
    print(f"error: {problem}", file=sys.stderr)
    return 2


# -- one process


async def _alone(work: Work, duration: float | None, child: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if child:
        await _watch_parent(stop)
    if duration is not None:
        loop.call_later(duration, stop.set)
    return await run_worker(work, until=stop)


async def _watch_parent(stop: asyncio.Event) -> None:
    """Stop when the parent is gone: its end of our standard input closes."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def until_closed() -> None:
        await reader.read()
        stop.set()

    _TASKS.append(asyncio.create_task(until_closed()))


_TASKS: list[asyncio.Task[None]] = []


# -- several processes


async def _together(run_id: str, first: int, consumers: int, processes: int, duration: float | None) -> int:
    """Start a process for each batch of consumers, pass signals on, and wait for all of them."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if duration is not None:
        loop.call_later(duration, stop.set)
    children = [await _start(run_id, first + index * consumers) for index in range(processes)]
    for index, process in enumerate(children):
        start = first + index * consumers
        _print_event("process_started", process=index + 1, pid=process.pid, consumers=[start, start + consumers - 1])
    ends = [asyncio.create_task(_wait(index + 1, process)) for index, process in enumerate(children)]
    stopped = asyncio.create_task(stop.wait())
    all_ended = asyncio.gather(*ends)
    either: list[asyncio.Future[Any]] = [all_ended, stopped]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not all_ended.done():
        for process in children:
            if process.returncode is None:
                process.terminate()
        await asyncio.wait([all_ended], timeout=_GRACE_SECONDS)
        for process in children:
            if process.returncode is None:
                process.kill()
    codes = await all_ended
    return 0 if all(code == 0 for code in codes) else 1


async def _start(run_id: str, first: int) -> asyncio.subprocess.Process:
    arguments = [*_without_processes(sys.argv[1:]), "--processes", "1", "--first", str(first), "--child"]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "rejoin",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        env={**os.environ, "REJOIN_RUN_ID": run_id},
        start_new_session=True,  # Ctrl-C reaches the parent alone, which then stops each child once.
    )


def _without_processes(arguments: Sequence[str]) -> list[str]:
    """The arguments without the number of processes, in any of its forms: a child is one process."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in {"--processes", "-p"}:
            skip = True
        elif not re.match(r"--processes=|-p=?\d", argument):
            kept.append(argument)
    return kept


async def _wait(number: int, process: asyncio.subprocess.Process) -> int:
    code = await process.wait()
    result = {"code": code} if code >= 0 else {"signal": signal.Signals(-code).name}
    _print_event("process_ended", process=number, pid=process.pid, **result)
    return code


def _print_event(event: str, **fields: Any) -> None:
    """A line about processes on standard output, JSON like the rest of what machines read."""
    print(json.dumps({"event": event, **fields}), flush=True)
