"""Kafka's tools with delegation tokens against this broker: ``python -m conformance.security.token_tools``.

``kafka-delegation-tokens`` makes, describes, renews and expires a token; a console producer and a console consumer,
both Kafka's Java clients, log in by it, until it is gone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Final

from conformance.clients.node import running
from conformance.clients.programs import HERE, JAVA, class_path
from conformance.clients.tools import CONSUMER, TOOLS

TOKENS: Final = f"{TOOLS}.DelegationTokenCommand"
PRODUCER: Final = f"{TOOLS}.ConsoleProducer"
TOPIC: Final = "tokens"
SECONDS: Final = 60.0
_MODULES: Final = "org.apache.kafka.common.security"
_CREATED: Final = re.compile(r"tokenId : (\S+)")


class Tools:
    """Kafka's tools at one broker. Each raises ``RuntimeError`` where its output is not as expected."""

    def __init__(self, bootstrap_servers: str, folder: Path) -> None:
        self._jars = class_path(HERE / "tools")
        self._servers = bootstrap_servers
        self._folder = folder

    def properties(self, name: str, mechanism: str, module: str, options: str) -> str:
        """A file with the settings of a client that logs in."""
        file = self._folder / f"{name}.properties"
        lines = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{_MODULES}.{module} required {options};",
        }
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return str(file)

    def run(self, tool: str, *arguments: str, expected: str, reads: str = "") -> str:
        """The output of a tool."""
        command = [*JAVA, "-cp", self._jars, tool, "--bootstrap-server", self._servers, *arguments]
        done = subprocess.run(command, input=reads, capture_output=True, text=True, check=False, timeout=SECONDS)
        said = done.stdout + done.stderr
        if re.search(expected, said) is None:
            raise RuntimeError(f"{tool} {' '.join(arguments)}: expected {expected!r}: {said[-2_000:]}")
        print(f"passed: {tool.rpartition('.')[2]} {' '.join(each for each in arguments if each.startswith('--'))}")
        return said


def play(tools: Tools) -> None:
    """Make a token, use it, and let it expire."""
    alice = tools.properties("alice", "PLAIN", "plain.PlainLoginModule", 'username="alice" password="alice-secret"')
    with_alice = ("--command-config", alice)
    lifetime = ("--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    said = tools.run(TOKENS, *with_alice, "--create", *lifetime, expected=r"User:alice\s+User:alice\s+\[?User:bob")
    [token_id] = _CREATED.findall(said)
    [hmac] = re.findall(rf"^{re.escape(token_id)}\s+(\S+)", said, re.MULTILINE)
    shown = rf"{re.escape(token_id)}\s+{re.escape(hmac)}"
    tools.run(TOKENS, *with_alice, "--describe", "--owner-principal", "User:alice", expected=shown)
    renewal = ("--renew-time-period", "60000", "--hmac", hmac)
    tools.run(TOKENS, *with_alice, "--renew", *renewal, expected="Completed renew operation")
    options = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    token = tools.properties("token", "SCRAM-SHA-512", "scram.ScramLoginModule", options)
    produced = ("--topic", TOPIC, "--command-config", token)
    consumed = (*produced, "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000")
    tools.run(PRODUCER, *produced, reads="by a token\n", expected="")
    tools.run(CONSUMER, *consumed, expected="by a token")
    refused = ("--command-config", token, "--create", *lifetime)
    tools.run(TOKENS, *refused, expected="DelegationTokenRequest|Delegation Token requests are not allowed")
    tools.run(
        TOKENS, *with_alice, "--expire", "--expiry-time-period", "-1", "--hmac", hmac, expected="Completed expire"
    )
    tools.run(TOKENS, "--command-config", token, "--describe", expected="invalid credentials")


def main() -> int:
    """Play against a broker of its own."""
    settings = {
        "listeners": "SASL://127.0.0.1:0",
        "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,HTTP:PLAINTEXT",
    }
    pairs = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    os.environ["REJOIN_DELEGATION_TOKEN_SECRET_KEY"] = "a-secret-of-the-tools"
    with tempfile.TemporaryDirectory(prefix="tokens-") as name:
        users = Path(name) / "users.yaml"
        users.write_text("alice: alice-secret\n")
        with running("--users-file", str(users), "--topic", f"{TOPIC}:1", *pairs) as node:
            with urllib.request.urlopen(f"{node.url}/cluster", timeout=10) as answered:
                address = json.load(answered)["nodes"][0]["listeners"]["SASL"]
            play(Tools(address, Path(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
