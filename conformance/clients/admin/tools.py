"""Kafka's ``kafka-acls.sh`` and ``kafka-configs.sh`` on Rejoin: outputs beside those on a real Kafka.

    python -m conformance.clients.admin.tools [--record]

``--record`` starts a Kafka first and writes its outputs to ``tests/golden/security/tools.jsonl``.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Self

from conformance.clients.admin.both_brokers import kafka, rejoin
from conformance.clients.admin.tool_commands import CLASSES, runs
from conformance.clients.programs import HERE, JAVA, run
from conformance.clients.programs import class_path as tool_path
from conformance.kafka.broker import kafka_version
from tests.paths import GOLDEN, ROOT

RELEASE: Final = "4.4.0"
RECORDED: Final = GOLDEN / "security" / "tools.jsonl"
RUN_SECONDS: Final = 90.0
SETTLED_SECONDS: Final = 0.5
"""How long Kafka may take until a change that it has confirmed can be read."""
_ADDRESS: Final = re.compile(r"127\.0\.0\.1:\d+")
_USAGE: Final = re.compile(r"Option +Description$")
_SET: Final = re.compile(r"\[([A-Z_]+(?:, [A-Z_]+)+)\]")
_MESSAGE: Final = re.compile(r"(org\.apache\.[\w.]+Exception): .*")
_CONFIGS: Final = re.compile(r"((?:Quota|SCRAM credential) configs for .* are )(.*)")
_TRACE: Final = re.compile(r"^\s+at .*|^\s+\.\.\. \d+ more$")


class ToolRunner:
    """A JVM that runs tools one after the other. Use it as an async context manager."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._folder = tempfile.TemporaryDirectory(prefix="clients-")
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        jars = tool_path(HERE / "tools", RELEASE)
        source = Path(__file__).with_name("ToolRunner.java")
        run("javac", "-cp", jars, "-d", self._folder.name, str(source))
        self._process = await asyncio.create_subprocess_exec(
            *(*JAVA, "-cp", f"{self._folder.name}:{jars}", source.stem),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=2**24,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        async with asyncio.timeout(RUN_SECONDS):
            await self._process.wait()
        self._folder.cleanup()

    async def run(self, tool: str, arguments: list[str]) -> dict[str, Any]:
        """The exit code of a tool, its output, and its errors where there are any."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if {"--list", "--describe"} & set(arguments):
            await asyncio.sleep(SETTLED_SECONDS)
        line = "\t".join([CLASSES[tool], "--bootstrap-server", self._servers, *arguments])
        self._process.stdin.write(f"{line}\n".encode())
        async with asyncio.timeout(RUN_SECONDS):
            code, *texts = (await self._process.stdout.readline()).decode().split()
        out, err = (arranged(base64.b64decode(text[1:]).decode()) for text in texts)
        return {"code": int(code), "out": out} | ({"err": err} if err else {})


def arranged(output: str) -> str:
    """An output to compare: without addresses, stack traces and usage, and with rows that have no order sorted.

    Resources and their ACLs come in the order of Kafka's maps, and so do entities and sets of operations.
    """
    lines = [_ADDRESS.sub("HOST:PORT", line).rstrip() for line in output.splitlines() if not _TRACE.match(line)]
    usage = next((at for at, line in enumerate(lines) if _USAGE.match(line)), len(lines))
    lines = [_SET.sub(_sorted_set, line) for line in lines[:usage]]
    found: list[str] = []
    for kind, some in groupby(lines, _kind):
        rows = list(some)
        if kind == "acls":
            blocks: list[list[str]] = []
            for row in filter(None, map(str.strip, rows)):
                if row.startswith("("):
                    blocks[-1].append(row)
                else:
                    blocks.append([row])
            rows = [row for head, *entries in sorted(blocks) for row in (head, *sorted(entries))]
        elif kind in {"configs", "entries"}:
            rows = sorted(_CONFIGS.sub(_sorted_configs, row) for row in rows)
        found += rows
    return "\n".join(found).strip("\n")


def _sorted_set(found: re.Match[str]) -> str:
    return f"[{', '.join(sorted(found[1].split(', ')))}]"


def _sorted_configs(found: re.Match[str]) -> str:
    return found[1] + ", ".join(sorted(found[2].split(", ")))


def _kind(line: str) -> str:
    if re.match(r"Current ACLs|Adding ACLs|Acl \(pattern=|\s*\(principal=|$", line):
        return "acls"
    if line.startswith("  ") and "=" in line:
        return "entries"
    return "configs" if re.match(r"(Quota|SCRAM credential) configs for ", line) else "text"


async def outputs(servers: str) -> list[dict[str, Any]]:
    """All runs on a broker, each with its exit code and output."""
    async with ToolRunner(servers) as runner:
        return [{"run": [tool, *given], **await runner.run(tool, given)} for tool, given in runs()]


def compared(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without the words of errors about brokers, which are the broker's own."""
    if "brokers" not in entry["run"]:
        return entry
    return {key: _MESSAGE.sub(r"\1", value) if isinstance(value, str) else value for key, value in entry.items()}


async def compare(*, record: bool) -> int:
    """Run on Rejoin, on Kafka too if it is recorded anew, and print each command with what differs; the exit code."""
    if record:
        async with kafka() as servers:
            theirs = await outputs(servers)
        RECORDED.write_text("".join(f"{json.dumps(each)}\n" for each in theirs))
        print(f"written: {RECORDED.relative_to(ROOT)}")
    else:
        theirs = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    async with rejoin() as servers:
        ours = await outputs(servers)
    different = 0
    print(f"kafka-acls.sh and kafka-configs.sh {RELEASE} on Kafka {kafka_version()} and on Rejoin")
    for one, other in zip(theirs, ours, strict=True):
        is_same = compared(one) == compared(other)
        different += not is_same
        print(f"{'same' if is_same else 'DIFFERENT'}: {' '.join(one['run'])}")
        if not is_same:
            print(f"  Kafka {one['code']}: {one['out']}\n  Rejoin {other['code']}: {other['out']}")
    print(f"{len(theirs) - different} of {len(theirs)} outputs are the same")
    return 1 if different else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run tools for ACLs, quotas and users.")
    parser.add_argument("--record", action="store_true", help="run them on a real Kafka anew")
    return asyncio.run(compare(record=parser.parse_args().record))


if __name__ == "__main__":
    sys.exit(main())
