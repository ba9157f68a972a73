"""Records the APIs that the first recording of ACLs leaves out: ``python -m conformance.security.acls.record``.

One line for each sequence in ``tests/golden/security/more-acls.jsonl.gz``: the outcomes of its steps.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any, Final

from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.record import ready
from conformance.security.acl_probes import Probe, metadata
from conformance.security.acl_sequences import ADMIN, CLEAR, PRINCIPALS, TOPICS, outcome
from conformance.security.acls.sequences import sequences
from conformance.security.record_acls import GOLDEN as FIRST
from conformance.security.record_acls import Login, follow, settings, settle
from rejoin.protocol.types import ZERO_UUID

GOLDEN: Final = FIRST.with_name("more-acls.jsonl.gz")
CLOSED: Final = "closed"
"""Stands for the answer where the broker closed the connection instead."""
ABSENT_ID: Final = "bm8gc3VjaCB0b3BpYyBpZA"
"""The id of a topic that does not exist."""
PENDING: Final = {"CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"}
"""Errors at which a client asks again: the transaction before still ends, or a log is still being read."""
ENDS_LATER: Final = {"EndTxn", "WriteTxnMarkers", "InitProducerId", "ShareFetch"}
"""Requests that are answered before all of their effects are there."""
_TRIES: Final = 50
_PAUSE_SECONDS: Final = 0.1
_LEARNED: Final = ("memberId", "generationId", "producerId", "producerEpoch")


class Placeholders:
    """Values of one run that stand in requests: ids of topics, and what JoinGroup and InitProducerId answered."""

    def __init__(self, topic_ids: dict[str, str]) -> None:
        self._values: dict[str, Any] = dict.fromkeys(_LEARNED, 0) | {"memberId": "nobody"}
        self._ids = {"other": ABSENT_ID} | topic_ids

    def filled(self, probe: Probe) -> Probe:
        """A probe with values for its placeholders."""
        text = json.dumps(probe.body)
        if "$" in text:
            for name, topic_id in self._ids.items():
                text = text.replace(f"$id:{name}$", topic_id)
            for name, value in self._values.items():
                text = text.replace(f'"${name}$"', json.dumps(value))
        return Probe(probe.api, probe.version, json.loads(text))

    def learn(self, probe: Probe, answer: Any) -> None:
        """Keep what later requests are to name."""
        if probe.api in {"JoinGroup", "InitProducerId"} and answer != CLOSED and answer["errorCode"] == 0:
            self._values |= {name: answer[name] for name in _LEARNED if name in answer}


async def play(port: int, chosen: str = "") -> list[Any]:
    """The outcomes of the sequences whose name has this text; a broker listens for principals on the port."""
    logins = {name: await Login.of(name, port) for name in (ADMIN, *PRINCIPALS)}
    ids = {}
    for name in TOPICS:
        (topic,) = (await logins[ADMIN].ask(Probe("Metadata", 12, metadata(name))))["topics"]
        ids[name] = topic["topicId"]
    assert ZERO_UUID not in ids.values(), "the topics exist"
    values = Placeholders(ids)
    lines: list[Any] = []
    for name, steps in sequences().items():
        if chosen not in name:
            continue
        known: set[str] = set()
        answers = []
        for who, unfilled in (CLEAR, *steps):
            probe = values.filled(unfilled)
            try:
                answer = await _settled(logins[who], probe)
            except ValueError as problem:
                print(f"{name}: {problem}"[:400])
                answer = CLOSED
                logins[who].close()
                logins[who] = await Login.of(who, port)
            values.learn(probe, answer)
            answers.append(outcome(answer))
            if answer != CLOSED and who == ADMIN and probe.api in {"CreateAcls", "DeleteAcls"}:
                follow(known, probe, answer)
                await settle(logins[ADMIN], len(known))
        lines.append({"sequence": name, "answers": answers[1:]})
    for login in logins.values():
        login.close()
    return lines


async def _settled(login: Login, probe: Probe) -> Any:
    """The answer to a probe, once it is not about what will be over in a moment."""
    answer = await login.ask(probe)
    for _ in range(_TRIES):
        if not is_pending(outcome(answer)):
            break
        await asyncio.sleep(_PAUSE_SECONDS)
        answer = await login.ask(probe)
    if probe.api in ENDS_LATER:
        await asyncio.sleep(_PAUSE_SECONDS)
    return answer


def is_pending(answer: Any) -> bool:
    """Whether an outcome has an error at which a client asks again."""
    text = json.dumps(answer)
    return any(f'"{error}"' in text for error in PENDING)


async def record(path: Path) -> None:
    """Play every sequence against a broker, and write what it answered."""
    async with Cluster(await class_path(), 1, settings(), listeners={"SASL": "SASL_PLAINTEXT"}) as cluster:
        await ready(cluster.addresses, dict.fromkeys(TOPICS, 1), 1, 1)
        began = time.monotonic()
        lines = await play(cluster.listener_ports[1]["SASL"])
        print(f"{len(lines)} sequences recorded in {time.monotonic() - began:.0f} s")
    write(path, lines)


def write(path: Path, lines: list[Any]) -> None:
    """The version of the broker, then one line for each sequence."""
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in ({"kafka": kafka_version()}, *lines))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    asyncio.run(record(GOLDEN))
