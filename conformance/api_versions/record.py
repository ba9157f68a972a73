"""Records which APIs a broker offers, and what it does with requests that it does not: ``python -m
conformance.api_versions --record``.

A broker is started three times: as it comes, with unstable versions, and with a receiver of clients' metrics. The
first is asked for keys and versions that it does not list, each on a connection of its own.
"""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from rejoin.conform.player.messages import api_name, request_frame, response

HERE: Final = Path(__file__).parent
GOLDEN: Final = HERE.parents[1] / "tests" / "golden" / "api-versions.json"
RECEIVER: Final = "MetricsReceiver"
STOCK: Final = "stock"
KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    STOCK: {},
    "unstable": {"unstable.api.versions.enable": "true"},
    "receiver": {"metric.reporters": RECEIVER},
}
"""Settings of each broker that is recorded."""
LAST_KEY: Final = 100
"""Keys up to this one are tried; those of Kafka 4.4 end before."""
SECONDS: Final = 10.0
CLIENT: Final = "probe"
API_VERSIONS: Final = 18
CLOSED: Final = "closed"
ANSWERED: Final = "answered"


def request_of_zeros(key: int, version: int) -> bytes:
    """A frame with zeros behind the client id: tags of a flexible header, and a body that API 71 can read."""
    frame = struct.pack(">hhih", key, version, 1, len(CLIENT)) + CLIENT.encode() + bytes(18)
    return struct.pack(">i", len(frame)) + frame


async def answer_to(port: int, frame: bytes) -> bytes:
    """The answer without its length, or nothing where the connection ends instead."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(frame)
        async with asyncio.timeout(SECONDS):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return b""
    finally:
        writer.close()


def refusal(key: int, answer: bytes) -> str | dict[str, Any]:
    """The answer to a request that is not offered: the end of its connection, or the error of ApiVersions 0.

    Any other answer is not kept.
    """
    if not answer or key != API_VERSIONS:
        return ANSWERED if answer else CLOSED
    error, count = struct.unpack_from(">hi", answer, 4)
    return {
        "errorCode": error,
        "apiKeys": [list(struct.unpack_from(">hhh", answer, 10 + 6 * at)) for at in range(count)],
    }


def not_offered(offered: Mapping[int, tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Keys without an API, and the versions before and behind those of each API."""
    for key in range(LAST_KEY + 1):
        if key not in offered:
            yield key, 0
            continue
        first, last = offered[key]
        if first:
            yield key, first - 1
        yield key, last + 1


async def offered_by(port: int) -> dict[int, tuple[int, int]]:
    """Versions by API key, as ApiVersions lists them."""
    frame = request_frame("ApiVersions", 4, 1, CLIENT, {"clientSoftwareName": CLIENT, "clientSoftwareVersion": "1"})
    answer = await answer_to(port, struct.pack(">i", len(frame)) + frame)
    body = response("ApiVersions", 4, answer)
    return {each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in body["apiKeys"]}


async def _record() -> dict[str, Any]:
    jars = await class_path()
    found: dict[str, Any] = {"kafka": kafka_version(), "offered": {}}
    with tempfile.TemporaryDirectory(prefix="conformance-") as classes:
        compile_java = ("javac", "-cp", jars, "-d", classes, str(HERE / f"{RECEIVER}.java"))
        subprocess.run(compile_java, check=True, timeout=60)
        for kind, settings in KINDS.items():
            async with Cluster(f"{classes}:{jars}", 1, settings) as cluster:
                port = cluster.ports[1]
                offered = await offered_by(port)
                found["offered"][kind] = {str(key): list(offered[key]) for key in sorted(offered)}
                if kind == STOCK:
                    asked = list(not_offered(offered))
                    answers = await asyncio.gather(*(answer_to(port, request_of_zeros(*each)) for each in asked))
                    found["refused"] = {
                        f"{key} {version}": refusal(key, answer)
                        for (key, version), answer in zip(asked, answers, strict=True)
                    }
    found["names"] = {key: api_name(int(key)) for each in found["offered"].values() for key in each}
    return found


def record() -> None:
    """Write what the brokers answered. The refusal that is most frequent is left out: the connection ends."""
    found = asyncio.run(_record())
    refused = found["refused"]
    found["closed"] = sum(each == CLOSED for each in refused.values())
    found["refused"] = {asked: each for asked, each in refused.items() if each != CLOSED}
    GOLDEN.write_text(json.dumps(found, separators=(",", ":")) + "\n")
