"""Run the tests of the helpers, with brokers that they start: ``python -m conformance.clients.helpers``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

from conformance.clients.programs import EXAMPLES
from conformance.clients.results import ROOT

SECONDS: Final = 300.0
HELPERS: Final = ROOT / "helpers"
COMMANDS: Final = {
    "Java": ["mvn", "-q", "-B", "-f", str(EXAMPLES / "java" / "pom.xml"), "test", "-Dtest=RejoinSelfTest"],
    "Go": ["go", "test", "-C", str(HELPERS / "go"), "-count=1", "."],
    "JavaScript": ["node", "--test", str(HELPERS / "node" / "rejoin.test.mjs")],
}


def starting_brokers() -> dict[str, str]:
    """The environment of a test whose helper starts a broker of this interpreter."""
    environment = {name: value for name, value in os.environ.items() if name not in {"REJOIN_URL", "BOOTSTRAP_SERVERS"}}
    return environment | {"REJOIN_COMMAND": f'"{sys.executable}" -m rejoin'}


def problems() -> Iterator[str]:
    """Output of failed tests, by language; then a broker that outlives its test."""
    for language, command in COMMANDS.items():
        done = subprocess.run(
            command, env=starting_brokers(), capture_output=True, text=True, check=False, timeout=SECONDS
        )
        print(f"helper for {language}: {'failed' if done.returncode else 'passed'}", flush=True)
        if done.returncode:
            yield done.stdout + done.stderr
    if problem := outlives():
        yield problem


KILLED: Final = """
const { startRejoin } = await import(process.argv[1]);
console.log((await startRejoin()).bootstrapServers);
process.kill(process.pid, "SIGKILL");
"""


def outlives() -> str:
    """The problem where a broker goes on although the process of its test was killed by kill -9."""
    node = ["node", "--input-type=module", "-e", KILLED, str(HELPERS / "node" / "rejoin.mjs")]
    killed = subprocess.run(node, env=starting_brokers(), capture_output=True, text=True, check=False, timeout=SECONDS)
    host, _, port = killed.stdout.strip().rpartition(":")
    for _ in range(100):
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            print("broker of a killed test: ended", flush=True)
            return ""
        time.sleep(0.1)
    return f"the broker at {host}:{port} goes on after its test was killed"


def main() -> int:
    found = list(problems())
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
