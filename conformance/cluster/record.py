"""Records what a broker answers to requests about the cluster: ``python -m conformance.cluster.record``."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from conformance.cluster.broker_probes import broker_steps
from conformance.cluster.logger_probes import logger_steps
from conformance.cluster.replica_probes import CLUSTER, LOG_DIR, replica_steps
from conformance.kafka.broker import CLUSTER_ID, LOGGED_FOLDER, Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, PRINCIPALS, TOPICS, Step
from conformance.security.record_acls import Login, settings

GOLDEN: Final = Path(__file__).parent.parent.parent / "tests" / "golden" / "cluster"
REPLICAS: Final = GOLDEN / "replicas.jsonl.gz"
LOGGERS: Final = GOLDEN / "loggers.jsonl.gz"
BROKERS: Final = GOLDEN / "brokers.jsonl.gz"
DENIED: Final = "$denied"
"""Stands for what Kafka says of a request that a principal may not make: it has addresses and objects' hashes."""
_REFUSED: Final = re.compile(r'Request Request\(processor=(?:\\.|[^"\\])*')
_SETTLES_SECONDS: Final = 0.6
"""The broker's own view of settings follows its controller's."""


def filled(body: Any, values: dict[str, str]) -> Any:
    """A request with values for its placeholders."""
    text = json.dumps(body)
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return json.loads(text)


async def play(cluster: Cluster, steps: Iterable[Step], changing: frozenset[str]) -> list[Any]:
    """The answer to each step, in order."""
    folder = str(cluster.data_folder(1))
    port = cluster.listener_ports[1]["SASL"]
    logins = {name: await Login.of(name, port) for name in (ADMIN, PRINCIPALS[0])}
    answers = []
    for who, probe in steps:
        body = filled(probe.body, {LOG_DIR: folder, CLUSTER: CLUSTER_ID})
        try:
            answer = await logins[who].ask(Probe(probe.api, probe.version, body))
        except ValueError as problem:
            print(f"not answered: {who} {probe}: {problem!r}"[:300])
            answer = None
            logins[who].close()
            logins[who] = await Login.of(who, port)
        text = json.dumps(answer).replace(folder, LOG_DIR).replace(CLUSTER_ID, CLUSTER)
        text = _REFUSED.sub(DENIED, text)
        answers.append(json.loads(text.replace(str(cluster.data_folder(1).parent), LOGGED_FOLDER)))
        if probe.api in changing and not probe.body["validateOnly"]:
            await asyncio.sleep(_SETTLES_SECONDS)
    for login in logins.values():
        login.close()
    return answers


async def record(chosen: Collection[str]) -> None:
    """Play steps against a broker, and write what it answered."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    async with Cluster(await class_path(), 1, settings(), listeners={"SASL": "SASL_PLAINTEXT"}) as cluster:
        await ready(cluster.addresses, dict.fromkeys(TOPICS, 1), 1, 1)
        changing = frozenset({"IncrementalAlterConfigs", "AlterConfigs"})
        for path, steps in ((REPLICAS, replica_steps), (LOGGERS, logger_steps), (BROKERS, broker_steps)):
            if path.name.partition(".")[0] in chosen:
                _write(path, await play(cluster, steps(), changing))


def _write(path: Path, answers: list[Any]) -> None:
    lines = [{"kafka": kafka_version()}, *answers]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path.name}: {len(answers)} answers recorded")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1:] or ("replicas", "loggers", "brokers")))
