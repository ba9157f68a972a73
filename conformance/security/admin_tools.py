"""Kafka's ``kafka-acls.sh`` and ``kafka-configs.sh`` on a real Kafka and on Rejoin: what they print, beside each other.

    python -m conformance.security.admin_tools [--record]

Both brokers have the StandardAuthorizer and begin without ACLs, quotas and users of SCRAM. ``--record`` writes the
outputs of Kafka to the file that a test plays again with Rejoin's own commands.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any, Final

from conformance.clients.node import running
from conformance.clients.programs import HERE, JAVA
from conformance.clients.programs import class_path as tool_path
from conformance.clients.tools import TOOLS
from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from tests.client.commands.security.tools import GOLDEN, SETTINGS, arranged
from tests.paths import ROOT

RELEASE: Final = "4.4.0"
TOOL_SECONDS: Final = 120.0
CLASSES: Final = {"acls": f"{TOOLS}.AclCommand", "configs": f"{TOOLS}.ConfigCommand"}
COMMANDS: Final = Path(__file__).parent / "tool_commands.txt"
"""Commands in their order, with the tool in front. No shell reads them: a star is a star."""


async def played(servers: str, jars: str) -> list[dict[str, Any]]:
    """The entries of all commands on a broker."""
    process = await asyncio.create_subprocess_exec(
        *(*JAVA, "-cp", jars, str(Path(__file__).parent / "ToolRuns.java")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2**20,
    )
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    entries: list[dict[str, Any]] = []
    try:
        for command in COMMANDS.read_text().splitlines():
            tool, *arguments = shlex.split(command)
            line = "\t".join([CLASSES[tool], "--bootstrap-server", servers, *arguments])
            process.stdin.write(f"{line}\n".encode())
            async with asyncio.timeout(TOOL_SECONDS):
                code, *texts = (await process.stdout.readline()).split()
            out, err = (arranged(b64decode(text[1:]).decode()) for text in texts)
            entry = {"tool": tool, "run": " ".join(arguments), "code": int(code), "out": out}
            entries.append(entry | ({"err": err.partition("\n")[0]} if entry["code"] else {}))
    finally:
        process.kill()
        await process.wait()
    return entries


async def compare(*, record: bool) -> int:
    """Play on both, and print each command with what differs; the exit code."""
    jars = tool_path(HERE / "tools", RELEASE)
    async with Cluster(await class_path(), 1, SETTINGS) as cluster:
        theirs = await played(f"{HOST}:{cluster.ports[1]}", jars)
    if record:
        GOLDEN.write_text("".join(f"{json.dumps(entry)}\n" for entry in theirs))
        print(f"written: {GOLDEN.relative_to(ROOT)}")
    options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    node = running(*options)
    started = await asyncio.to_thread(node.__enter__)
    try:
        ours = await played(started.bootstrap_servers, jars)
    finally:
        await asyncio.to_thread(node.__exit__, None, None, None)
    different = 0
    print(f"kafka-acls.sh and kafka-configs.sh {RELEASE} on Kafka {kafka_version()} and on Rejoin")
    for one, other in zip(theirs, ours, strict=True):
        is_same = (one["code"], one["out"]) == (other["code"], other["out"])
        different += not is_same
        print(f"{'same' if is_same else 'DIFFERENT'}: {one['tool']} {one['run']}")
        if not is_same:
            print(f"--- Kafka, {one['code']}\n{one['out']}\n--- Rejoin, {other['code']}\n{other['out']}")
    return 1 if different else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Run kafka-acls.sh and kafka-configs.sh on a real Kafka and on Rejoin."
    )
    parser.add_argument("--record", action="store_true", help="write what Kafka prints for the test")
    return asyncio.run(compare(record=parser.parse_args().record))


if __name__ == "__main__":
    sys.exit(main())
