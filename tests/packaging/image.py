"""Carries out the Dockerfile without Docker, and runs the result as a container would: ``make image``.

    unshare --mount python -m tests.packaging.image        # as root, on Linux

Each stage is a root directory: the programs of this machine and its Python, read-only, and folders for the files that
the steps write. The last stage runs its command as its user, in a network of its own, on a root that is read-only. The
container must become healthy by its own check, answer a client, and end within a second of SIGTERM.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rejoin.output import print_text
from tests.packaging.every_python import size_mb
from tests.paths import ROOT

READY_S: Final = 60.0
STOPPED_S: Final = 1.0
_PROGRAMS: Final = ("usr", "bin", "sbin", "lib", "lib64")
_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin"
_CLIENT: Final = """
import socket, struct
with socket.create_connection(("127.0.0.1", 9092), timeout=5) as connection:
    connection.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
    _, correlation, error = struct.unpack(">iih", connection.recv(10))
assert (correlation, error) == (1, 0)
"""


class Failed(Exception):
    """A step or a check that did not succeed, with its output."""


@dataclass(slots=True)
class Stage:
    """A stage of the Dockerfile: its root directory, and what its instructions have set."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0"
    health: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """The place of a path of the stage on this machine."""
        return self.root / os.path.normpath(os.path.join("/", self.folder, path)).lstrip("/")

    def command_line(self, *command: str) -> list[str]:
        """A command in the stage, as its user and in its folder."""
        inside = ["chroot", f"--userspec={self.user}:{self.user}", str(self.root)]
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return [*inside, "env", "-i", *variables, "sh", "-c", f'cd {self.folder} && exec "$@"', "sh", *command]


def _run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Failed(f"{shlex.join(words)}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile, each with its arguments on one line."""
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        yield name, rest.strip()


def _base(root: Path) -> Stage:
    """A stage before its first instruction. Mounts end with the mount namespace of this process."""
    for name in _PROGRAMS:
        source = Path("/") / name
        if source.is_symlink():
            (root / name).symlink_to(source.readlink())
        elif source.is_dir():
            (root / name).mkdir(parents=True)
            _run("mount", "--bind", source, root / name)
            _run("mount", "-o", "remount,bind,ro", root / name)
    for name in ("dev", "proc"):
        (root / name).mkdir()
        _run("mount", "--rbind", f"/{name}", root / name)
    shutil.copytree("/etc", root / "etc", symlinks=True)
    for name in ("tmp", "root", "home"):
        (root / name).mkdir(mode=0o777 if name == "tmp" else 0o755)
    python = root / sys.base_prefix.lstrip("/")
    if not python.exists():
        python.mkdir(parents=True)
        _run("mount", "--bind", sys.base_prefix, python)
        _run("mount", "-o", "remount,bind,ro", python)
    return Stage(root, {"PATH": f"{sys.base_prefix}/bin:{_PATH}"})


def _copy(stage: Stage, stages: dict[str, Stage], words: Sequence[str]) -> None:
    here = ROOT
    if words[0].startswith("--from="):
        here, words = stages[words[0].removeprefix("--from=")].root, words[1:]
    *sources, target = words
    for source in sources:
        path = here / source.lstrip("/")
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__") if here == ROOT else None
            shutil.copytree(path, stage.inside(target), symlinks=True, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(path, stage.inside(target))


def built(folder: Path) -> Stage:
    """The last stage of the Dockerfile. Raises :class:`Failed`."""
    stages: dict[str, Stage] = {}
    stage = Stage(folder)
    for name, rest in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        match name:
            case "FROM":
                stage = _base(folder / str(len(stages)))
                stages[rest.partition(" AS ")[2]] = stage
            case "WORKDIR":
                stage.folder = rest
                stage.inside(".").mkdir(parents=True, exist_ok=True)
            case "ENV":
                words = shlex.split(rest.replace("$PATH", stage.environment["PATH"]))
                stage.environment |= dict(word.split("=", 1) for word in words)
            case "COPY":
                _copy(stage, stages, rest.split())
            case "RUN":
                print_text(f"RUN {rest[:100]} ...")
                # The package registry is reached as on this machine.
                pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
                step = Stage(stage.root, stage.environment | pip, stage.folder)
                _run(*step.command_line("sh", "-ec", rest))
            case "USER":
                stage.user = rest
            case "HEALTHCHECK":
                stage.health = json.loads(rest.partition("CMD ")[2])
            case "CMD":
                stage.command = json.loads(rest)
            case "EXPOSE":
                pass
            case _:
                raise Failed(f"Dockerfile: there is no step for {name}")
    return stage


def tried(stage: Stage) -> tuple[float, float]:
    """Run the container, and return the seconds until it is healthy and from SIGTERM to its end."""
    _run("mount", "--rbind", stage.root, stage.root)
    _run("mount", "-o", "remount,bind,ro", stage.root)
    began = time.perf_counter()
    own = ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    process = subprocess.Popen(
        [*own, *stage.command_line(*stage.command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    beside = ["nsenter", "--target", str(process.pid), "--net", "--"]
    try:
        while subprocess.run(
            [*beside, *stage.command_line(*stage.health)], capture_output=True, check=False
        ).returncode:
            if process.poll() is not None or time.perf_counter() - began > READY_S:
                raise Failed("the container did not become healthy")
        healthy = time.perf_counter() - began
        _run(*beside, *stage.command_line("python", "-c", _CLIENT))
    except BaseException:
        process.kill()
        assert process.stdout is not None
        print_text(process.stdout.read())
        raise
    began = time.perf_counter()
    process.terminate()
    said = process.communicate(timeout=READY_S)[0]
    ended = time.perf_counter() - began
    if process.returncode or '"stopped"' not in said:
        raise Failed(f"after SIGTERM the container ended with {process.returncode}\n{said}")
    return healthy, ended


def _mounts(process: str) -> str:
    """The mount namespace of a process."""
    return os.readlink(f"/proc/{process}/ns/mnt")


def main() -> int:
    """The exit code; prints the size of the image, and how fast it starts and ends."""
    if not sys.platform.startswith("linux") or os.geteuid() or _mounts("self") == _mounts(str(os.getppid())):
        print_text("expected root on Linux, and a mount namespace of its own: make image")
        return 1
    # The mounts are seen by this process alone, and end with it. The folder below them stays empty.
    folder = Path(tempfile.mkdtemp(prefix="rejoin-image-"))
    try:
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
        stage = built(folder)
        size = size_mb(stage.root / "opt/rejoin")
        healthy, ended = tried(stage)
    except Failed as problem:
        print_text(str(problem))
        return 1
    finally:
        _run("umount", "--lazy", folder)
        folder.rmdir()
    print_text(
        f"The image adds {size:.0f} MB to its base. As user {stage.user}, on a read-only root, the container was"
    )
    print_text(f"healthy after {healthy:.1f} s and ended {ended:.2f} s after SIGTERM (at most {STOPPED_S:.0f} s).")
    return 0 if ended <= STOPPED_S else 1


if __name__ == "__main__":
    sys.exit(main())
