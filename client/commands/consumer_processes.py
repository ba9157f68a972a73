"""The processes of `rejoin consume`: a group's consumers as real processes, each with one or many of them.

The first process starts the others, prints their process ids, and waits for them. A child whose parent dies leaves the
group and ends: it reads its standard input, and the parent holds the other end.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from rejoin.client.assignors import assignor_named
from rejoin.client.commands.consume import ConsumeOptions
from rejoin.client.commands.setting_options import WrongOption, with_settings
from rejoin.client.commands.transform_options import check_transform, split_settings, transform_from
from rejoin.client.config import ConsumerConfig, checked_config
from rejoin.client.logs import LEVELS, configure
from rejoin.client.share_config import ShareConsumerConfig, checked_share_config
from rejoin.client.transports.addresses import check_servers
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.client.workload.share_worker import ShareConsumerLoop
from rejoin.client.workload.worker import Work, run_worker
from rejoin.error_lines import refuse
from rejoin.journal.segments import JournalError
from rejoin.journal.writer import check_directory
from rejoin.output import print_json
from rejoin.posix import stop_signals
from rejoin.protocol.units import duration_ms

_GRACE_SECONDS: Final = 40.0


def run(given: ConsumeOptions) -> int:
    """Run the consumers, and return the exit code."""
    if given.log_level not in LEVELS:
        return refuse(f"--log-level {given.log_level}: expected one of {', '.join(LEVELS)}")
    try:
        _check(given)
        seconds = None if given.duration is None else _seconds("--duration", given.duration)
        work = work_from(given)
    except (WrongOption, JournalError, ValueError) as problem:
        return refuse(str(problem))
    configure(given.log_level)
    if given.processes == 1:
        try:
            return asyncio.run(_alone(work, seconds, given.child))
        except JournalError as problem:
            return refuse(str(problem))
    return asyncio.run(_together(work.run_id, given.first, given.consumers, given.processes, seconds))


def work_from(given: ConsumeOptions) -> Work:
    """The work of this process. Raises WrongOption, or ValueError, for options that make no sense."""
    pairs, of_producer = split_settings(given)
    settings = settings_from(pairs, _settings_given(given), share=given.share)
    config = ShareConsumerConfig(**settings) if given.share else ConsumerConfig(**settings)
    check_servers(config.bootstrap_servers, config)
    prefix = given.client_id or given.group
    instance_prefix = given.instance_id_prefix or (f"{prefix}-" if given.static else None)
    numbers = range(given.first, given.first + given.consumers)
    return Work(
        topics=_split(given.topic),
        pattern=given.pattern,
        client_ids=tuple(f"{prefix}-{number}" for number in numbers),
        instance_ids=tuple(f"{instance_prefix}{number}" for number in numbers) if instance_prefix else (),
        assignors=_split(given.assignor),
        settings=settings,
        commit=given.commit or ("none" if given.exactly_once else "auto"),
        processing_time=parse_processing_time(given.processing_time),
        revoke_time=parse_processing_time(given.revoke_time),
        assign_time=parse_processing_time(given.assign_time),
        seed=given.seed,
        node=f"{prefix}-{given.first}",
        run_id=given.run_id or os.environ.get("REJOIN_RUN_ID") or uuid4().hex,
        journal=given.journal,
        leave=given.leave,
        racks=_split(given.rack),
        wait_seconds=_seconds("--wait", given.wait),
        transform=transform_from(given, config, of_producer),
        share=given.share,
    )


def _settings_given(given: ConsumeOptions) -> dict[str, Any]:
    """The settings that have options of their own."""
    settings = {
        "bootstrap_servers": given.bootstrap,
        "group_id": given.group,
        "group_protocol": given.group_protocol,
        "session_timeout_ms": given.session_timeout_ms,
        "heartbeat_interval_ms": given.heartbeat_interval_ms,
        "max_poll_interval_ms": given.max_poll_interval_ms,
        "max_poll_records": given.max_poll_records,
        "auto_offset_reset": None if given.share else given.auto_offset_reset,
        "isolation_level": "read_committed" if given.exactly_once else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _check(given: ConsumeOptions) -> None:
    """Raises WrongOption, or ValueError, for options that make no sense."""
    if not given.topic and given.pattern is None:
        raise WrongOption("expected --topic or --pattern")
    if given.consumers < 1 or given.processes < 1:
        raise WrongOption("--consumers and --processes: expected at least 1")
    if given.share:
        _check_share(given)
    for name in _split(given.assignor):
        assignor_named(name)
    if given.pattern is not None:
        try:
            re.compile(given.pattern)
        except re.error as problem:
            raise WrongOption(f"--pattern {given.pattern}: not a regular expression: {problem}") from None
    check_transform(given, _split(given.topic))
    if given.journal is not None:
        check_directory(given.journal)


def _check_share(given: ConsumeOptions) -> None:
    """Raises WrongOption for options that mean nothing in a share group."""
    useless = {
        "--pattern": given.pattern,
        "--assignor": given.assignor,
        "--group-protocol": given.group_protocol,
        "--static": given.static or given.instance_id_prefix,
        "--transform-to": given.transform_to,
        "--revoke-time": given.revoke_time != "0",
        "--assign-time": given.assign_time != "0",
    }
    for option, value in useless.items():
        if value:
            raise WrongOption(f"{option}: a share group has nothing of this kind; leave it out beside --share")


def _seconds(option: str, duration: str) -> float:
    try:
        return duration_ms(duration, bare="s") / 1_000
    except ValueError as problem:
        raise WrongOption(f"{option} {duration}: {problem}") from None


def settings_from(pairs: Sequence[str], given: Mapping[str, Any], *, share: bool = False) -> dict[str, Any]:
    """Checked settings by their Python names, from options and from ``NAME=VALUE``; the latter win.

    Raises WrongOption naming the setting.
    """
    found = with_settings(ShareConsumerConfig if share else ConsumerConfig, given, pairs)
    try:
        checked = checked_share_config(found) if share else checked_config(found)
    except ValueError as problem:
        raise WrongOption(str(problem)) from None
    return {name: getattr(checked, name) for name in found}


def _split(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for text in given or () for part in text.split(",") if part.strip())


# -- one process


async def _alone(work: Work, duration: float | None, child: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if child:
        await _watch_parent(stop)
    if duration is not None:
        loop.call_later(duration, stop.set)
    if work.share:
        return await run_worker(work, stop, ShareConsumerLoop)
    return await run_worker(work, stop)


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
    if duration is not None:
        loop.call_later(duration, stop.set)
    with stop_signals(loop, stop.set):
        return await _run_children(stop, run_id, first, consumers, processes)


async def _run_children(stop: asyncio.Event, run_id: str, first: int, consumers: int, processes: int) -> int:
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
    print_json({"event": event, **fields}, flush=True)
