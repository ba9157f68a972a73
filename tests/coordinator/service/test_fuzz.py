"""Requests to all routes at random, by their own schemas: nothing breaks, a heartbeat beside them is answered in time,
and afterwards latency and memory are back where they were.

``make fuzz`` sends many more. Requests to the control API are made here, of the schemas of ``GET /control``, and not by
schemathesis: it reads OpenAPI and GraphQL, and that answer is neither.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.registry import APIS
from tests.coordinator.service.schemas import message, mostly, spoilt, valid

EXAMPLES: Final = int(os.environ.get("REJOIN_FUZZ_EXAMPLES", "120"))
PARKED_SECONDS: Final = 0.05
"""What may wait and is not answered by then is given up with its connection."""
ANSWER_SECONDS: Final = 20.0
SLOWEST_SECONDS: Final = 15.0
"""Far beyond what a busy machine delays a heartbeat. A request that held the event loop took 30 s."""
MORE_BYTES: Final = 40 * 2**20
HEARTBEATS: Final = 100
JSON: Final = {"Content-Type": "application/json"}
NEGATIVE_SIZE: Final = re.compile(rb'"(?:partitionM|m)axBytes": ?-')
"""In a Fetch of a partition that has something to read."""
MAY_WAIT: Final = ("/v1/fetch", "/v1/join-group", "/v1/sync-group", "/wait", "/control/clock", "/events")


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]


def may_wait(asked: Asked) -> bool:
    return any(part in asked.path for part in MAY_WAIT)


def is_unexpected_to_kafka(asked: Asked) -> bool:
    """Whether Kafka itself answers a request with UNKNOWN_SERVER_ERROR."""
    has_unknown_isolation_level = json.loads(asked.body).get("isolationLevel") not in (None, 0, 1)
    return has_unknown_isolation_level or NEGATIVE_SIZE.search(asked.body) is not None


class Server:
    """``rejoin serve --control`` as a process, with a connection for what is sent at random and one beside it."""

    def __init__(self, directory: Path) -> None:
        port_file = directory / "port"
        command = [sys.executable, "-m", "rejoin", "serve", "--control", "--port", "0", "--port-file", str(port_file)]
        self.log = (directory / "log").open("w+")
        self.process = subprocess.Popen([*command, "--log-level", "error"], stderr=self.log)
        end = time.monotonic() + 60
        while not port_file.exists() and time.monotonic() < end:
            time.sleep(0.01)
        self.port = int(port_file.read_text())
        self.fuzzed, self.beside = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS) for _ in range(2)
        )

    def send(self, asked: Asked) -> tuple[int, bytes] | None:
        """Status and body, or None where there was no answer yet."""
        try:
            if self.fuzzed.sock is None:
                self.fuzzed.connect()
            self.fuzzed.sock.settimeout(PARKED_SECONDS if may_wait(asked) else ANSWER_SECONDS)
            self.fuzzed.request(asked.method, asked.path, asked.body, asked.headers)
            answer = self.fuzzed.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.fuzzed.close()
            return None

    def ask(self, method: str, path: str, body: bytes = b"") -> Any:
        """A request beside the others, which has to be answered."""
        self.beside.request(method, path, body, JSON)
        answer = self.beside.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return json.loads(content)

    def heartbeat(self) -> float:
        """Send one, and return how many seconds it took."""
        began = time.perf_counter()
        self.ask("POST", "/v1/heartbeat", b'{"groupId":"beside","generationId":1,"memberId":"m"}')
        return time.perf_counter() - began

    def heartbeats(self) -> float:
        """Send many, and return how many seconds of the service's CPU one took."""
        before = self.cpu()
        for _ in range(HEARTBEATS):
            self.heartbeat()
        return (self.cpu() - before) / HEARTBEATS

    def cpu(self) -> float:
        """Seconds that the service has run so far; how busy the machine is makes little difference."""
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def logged(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text()

    def stop(self) -> None:
        for connection in (self.fuzzed, self.beside):
            connection.close()
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path)
    yield started
    started.stop()


def requests(operations: list[dict[str, Any]]) -> st.SearchStrategy[Asked]:
    """Requests to every route: Kafka's, those of the control API by its own description, and the views."""
    kafka = [
        st.builds(
            lambda path, version, body, headers: Asked("POST", path, body, {**_of_version(version), **headers}),
            st.just(api.path),
            st.just(version),
            spoilt(message(api.request, version)).map(_encoded),
            mostly(st.just(JSON), st.just({})),
        )
        for api in APIS
        for first, last in (offered()[api.key],)
        for version in {first, (first + last) // 2, last}
    ]
    control = [
        st.builds(
            _controlling,
            st.just(each["method"]),
            st.sampled_from([each["path"].replace("{id}", some) for some in ("1", "..", "%00", "x" * 300)]),
            spoilt(valid(each.get("body") or each.get("query") or {"type": "object", "properties": {}})),
            st.just("query" in each),
        )
        for each in operations
    ]
    views = st.builds(
        Asked,
        st.sampled_from(["GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS"]),
        st.sampled_from(
            [
                "/", "/groups", "/groups/g", "/groups?id=..", "/topics", "/topics/%FF", "/events?limit=5",
                "/events?after=99999999999999999999", "/cluster", "/cluster/partitions/7/resign", "/healthz", "/readyz",
                "/metrics", "/nowhere", "/v1/" + "x" * 3_000, "/control/../groups", "//", "/%2e%2e",
            ]
        ),
        st.binary(max_size=32),
        st.sampled_from([JSON, {}, {"Origin": "http://x"}, {"Host": "a.b"}, {"Authorization": "Bearer \xff"}]),
    )  # fmt: skip
    return st.one_of(*kafka, *control, views)


def _controlling(method: str, path: str, arguments: Any, in_query: bool) -> Asked:
    if in_query:
        pairs = arguments if isinstance(arguments, dict) else {"since": arguments}
        return Asked(method, f"{path}?{urlencode(pairs, errors='replace')}", b"", JSON)
    return Asked(method, path, _encoded(arguments), JSON)


def _of_version(version: int) -> dict[str, str]:
    return {"Kafka-Api-Version": str(version)}


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_requests_at_random_break_nothing(server: Server) -> None:
    operations = server.ask("GET", "/control")["operations"]
    for _ in range(2):
        server.heartbeats()  # what is made at the first request is there
    server.ask("POST", "/control/reset", b"{}")
    used, memory = server.heartbeats(), server.memory()
    seen: Counter[str] = Counter()
    slowest = 0.0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(requests(operations))
    def attempt(asked: Asked) -> None:
        nonlocal slowest
        answered = server.send(asked)
        if asked.path.startswith("/control/faults"):
            server.ask("DELETE", "/control/faults")
        slowest = max(slowest, server.heartbeat())
        if answered is None:
            assert may_wait(asked), f"no answer to {asked}"
            return
        status, body = answered
        seen[str(status)] += 1
        assert status < 500 or (status == 503 and asked.path == "/readyz"), (asked, body)
        if status == 200 and asked.path.startswith("/v1/") and asked.method == "POST":
            assert b'"errorCode":-1' not in body or is_unexpected_to_kafka(asked), (asked, body)

    attempt()
    server.ask("DELETE", "/control/faults")
    server.ask("POST", "/control/reset", b"{}")
    after = server.heartbeats()
    grown = server.memory() - memory
    print(f"{dict(seen)}; slowest heartbeat beside it {slowest * 1_000:.0f} ms, {used * 1_000:.2f} ms of CPU before")
    print(f"and {after * 1_000:.2f} ms after; {grown / 2**20:.1f} MiB more")
    assert seen["200"] > EXAMPLES // 10
    assert after < 5 * used + 0.001
    assert slowest < SLOWEST_SECONDS
    assert grown < MORE_BYTES
    assert server.logged() == "", "nothing failed inside"
