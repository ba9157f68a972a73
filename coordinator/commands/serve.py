"""The command ``rejoin serve``: its options, and the process that runs a node."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import orjson
import structlog

from rejoin.coordinator.config import WrongSetting, settings_from
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import (
    HOST,
    PORT,
    App,
    ControlOptions,
    InitialTopic,
    Options,
    StartFailed,
    calm_collector,
)
from rejoin.coordinator.service.atomic_file import FileNotWritten, atomic_file, check_writable
from rejoin.coordinator.service.http.server import MAX_BODY_BYTES
from rejoin.coordinator.service.publisher import journal_schema
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.journal.segments import JournalError
from rejoin.protocol.units import size_bytes

_SETTLED_SECONDS: Final = 1.0

HIGHEST_PORT: Final = 65_535
STORE_VARIABLE: Final = "REJOIN_STORE"

SHORT: Final = {"-c": "config"}
"""Short names of options."""


def topic_from(text: str) -> InitialTopic:
    """A topic from ``NAME:PARTITIONS[:RECORDS_PER_SECOND]``."""
    name, *numbers = text.split(":")
    try:
        partitions = int(numbers[0])
        rate = float(numbers[1]) if len(numbers) > 1 else None
    except (IndexError, ValueError):
        partitions, rate = 0, None
    if not name or partitions < 1 or len(numbers) > 2 or (rate is not None and not 0 <= rate < math.inf):
        raise WrongSetting(f"--topic {text}: expected NAME:PARTITIONS or NAME:PARTITIONS:RECORDS_PER_SECOND")
    try:
        return InitialTopic(name, partitions, rate)
    except ValueError as problem:
        raise WrongSetting(f"--topic {text}: {problem}") from None


def _most_bytes(text: str) -> int:
    try:
        size = size_bytes(text)
    except ValueError as problem:
        raise WrongSetting(f"--max-body-bytes {text}: {problem}") from None
    if size < 1:
        raise WrongSetting(f"--max-body-bytes {text}: expected 1 or more, as no request fits into that")
    return size


def _control_from(control: bool, token: str | None, clock: str) -> ControlOptions | None:
    if control:
        return ControlOptions(token, clock)
    if token is not None:
        raise WrongSetting("--control-token: there is nothing to protect without --control")
    if clock != "real":
        raise WrongSetting(f"--clock {clock}: expected --control too, as nothing else can drive it")
    return None


def run(
    *,
    host: str = HOST,
    port: int = PORT,
    advertised_host: str | None = None,
    journal: str | None = None,
    data: str | None = None,
    store: str | None = None,
    config: tuple[str, ...] = (),
    topic: tuple[str, ...] = (),
    log_level: Literal["debug", "info", "warning", "error", "critical"] = "info",
    port_file: Path | None = None,
    max_body_bytes: str = str(MAX_BODY_BYTES),
    control: bool = False,
    control_token: str | None = None,
    clock: str = "real",
) -> int:
    """Run a coordinator node until SIGTERM or SIGINT.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 picks a free one.
    advertised_host
        Host that clients connect to. The default is --host, or this machine's name if that is every address.
    journal
        Directory for the journal: every event, one line of JSON each.
    data
        Directory for groups, offsets and topics. Without it they are lost when the process ends.
    store
        Database that several nodes share, as postgresql://USER:PASSWORD@HOST:PORT/DATABASE. Each node leads some of
        the groups and needs its own id: -c broker.id=NUMBER. The variable REJOIN_STORE does the same and keeps the
        password off the command line.
    config
        A setting by Kafka's name, as NAME=VALUE; may be given several times. Wins over the environment, where
        group.max.size is REJOIN_GROUP_MAX_SIZE.
    topic
        A topic to create at startup, as NAME:PARTITIONS or NAME:PARTITIONS:RECORDS_PER_SECOND; may be given several
        times.
    log_level
        The least severe level to log. At debug, each request is one line.
    port_file
        File to write the port to once the service listens.
    max_body_bytes
        Largest request body to accept, in bytes or as 64MiB.
    control
        Serve the control API under /control, for tests: faults, waiting, the clock, recordings.
    control_token
        Token that the control API requires as Authorization: Bearer TOKEN. Required unless --host is loopback.
    clock
        With --control: real; virtual, which moves only on request; or fast:SPEED, as in fast:60.
    """
    logs.configure(log_level)
    try:
        if not 0 <= port <= HIGHEST_PORT:
            raise WrongSetting(f"--port {port}: expected 0 to {HIGHEST_PORT}")
        for name, folder in (("--journal", journal), ("--data", data)):
            # As a path it would be this directory, and a variable that is not set is not meant so.
            if folder == "":
                raise WrongSetting(f"{name} '': expected the name of a directory, as . for this one")
        if store == "":
            raise WrongSetting("--store '': expected the address of a database, as postgresql://HOST/DATABASE")
        if port_file is not None:
            check_writable("--port-file", port_file)
        other = "--store" if store else f"{STORE_VARIABLE} in the environment"
        store = store or os.environ.get(STORE_VARIABLE)
        if store is not None and data is not None:
            raise WrongSetting(f"--data {data}: expected that or {other}, not both")
        options = Options(
            settings=settings_from(config, os.environ),
            host=host,
            port=port,
            advertised_host=advertised_host,
            journal=None if journal is None else Path(journal),
            data=None if data is None else Path(data),
            store=store,
            topics=tuple(topic_from(text) for text in topic),
            max_body_bytes=_most_bytes(max_body_bytes),
            control=_control_from(control, control_token, clock),
        )
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(options, port_file))
    except (WrongSetting, StartFailed, StoreProblem, JournalError, FileNotWritten, OSError) as problem:
        print(f"rejoin: {problem}", file=sys.stderr)
        return 2
    return 0


def print_journal_schema() -> int:
    """Print the JSON Schema of the journal's rows."""
    sys.stdout.buffer.write(orjson.dumps(journal_schema().json_schema(), option=orjson.OPT_INDENT_2) + b"\n")
    return 0


async def _serve(options: Options, port_file: Path | None) -> None:
    _allow_many_connections()
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    node = App(options)
    starting, stopping = asyncio.ensure_future(node.start()), asyncio.ensure_future(done.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        # It may wait for its store for a long time.
        starting.cancel()
        await asyncio.wait((starting,))
    if starting.cancelled():
        structlog.get_logger("coordinator").info("stopped", started=False)
        return
    starting.result()
    try:
        # Not at once: it costs a twentieth of the start, and a client may be waiting for that.
        loop.call_later(_SETTLED_SECONDS, calm_collector)
        if port_file is not None:
            with atomic_file("--port-file", port_file) as handle:
                handle.write(f"{node.port}\n")
        await stopping
    finally:
        stopping.cancel()
        await node.stop()


def _allow_many_connections() -> None:
    """A parked join is an open connection; take as many as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if soft == hard and hard < 4_096:
        structlog.get_logger("coordinator").warning("few_open_files_allowed", limit=hard)


def _loop_factory() -> Any:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
