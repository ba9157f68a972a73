"""Longer lives: topics that go, what may not be used, restarts, epochs that run out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from conformance.participants.looks import Looks
from conformance.participants.producer import Producer
from conformance.transactions.probes import REQUESTS, Probe
from conformance.transactions.states import STATES, State, markers
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

SECRET: Final = "secret"
"""Prefix of the resources that are denied to all clients, in the set with that setting."""
SURVIVORS: Final = {name: STATES[name] for name in STATES if not name.startswith(("fenced", "prepare"))}
"""States that are the same after a restart. With markers that are refused it depends on what a broker reads first."""


# --- topics


async def _topic_deleted(play: Play, commits: bool) -> None:
    """A transaction over two topics, one of which is deleted before the end."""
    looks, other = Looks(play), f"{play.topic}-other"
    topic = {"name": other, "numPartitions": 2, "replicationFactor": 1, "assignments": [], "configs": []}
    await looks.ask("CreateTopics", {"topics": [topic], "timeoutMs": 10_000}, 7)
    await play.until_led(other, 2)
    producer = Producer(play, version=1)
    await producer.init()
    await producer.add(0)
    await producer.add(0, 1, topic=other)
    await producer.produce(0)
    await producer.produce(0, topic=other, sequence=0)
    await producer.offsets_of(other, {0: 5})
    await looks.ask("DeleteTopics", {"topics": [{"name": other}], "timeoutMs": 10_000})
    await play.until_gone(other)
    await producer.produce(0, topic=other, sequence=1)
    await producer.add(0, topic=other)
    await looks.transactions()
    await producer.end(commits)
    await looks.transactions()
    await looks.fetch()
    await looks.ends()


async def _internal_topics(play: Play) -> None:
    """Internal topics in requests of clients."""
    looks, producer = Looks(play), Producer(play, version=1)
    await producer.init()
    for topic in ("__consumer_offsets", "__transaction_state"):
        await producer.add(0, topic=topic)
        await producer.produce(0, topic=topic, version=12, transactional_id=None, attributes=0)
        await markers(producer, 0, 7, topic=topic)
    await looks.transactions()
    await producer.end()


async def _no_such_version(play: Play) -> None:
    """Two-phase commits are not in the release."""
    body = {"transactionalId": play.transactional_id, "transactionTimeoutMs": 60_000}
    body |= {"producerId": -1, "producerEpoch": -1, "enable2Pc": False, "keepPreparedTxn": False}
    await play.ask("p", "InitProducerId", body, 6)
    await play.ask("p", "InitProducerId", body | {"enable2Pc": True}, 6)


async def _mixed_request(play: Play) -> None:
    """Batches of several producers, and of none, in one Produce."""
    producer = Producer(play)
    other = Producer(play, "q", f"{play.transactional_id}-other")
    await producer.init()
    await other.init()
    for batches in {
        "two-producers": {0: producer.batch(0), 1: other.batch(0)},
        "two-epochs": {0: producer.batch(0), 1: producer.batch(0, epoch=1)},
        "beside-a-plain-one": {
            0: producer.batch(0),
            1: producer.batch(0, attributes=0, producer_id=-1, epoch=-1, sequence=-1),
        },
        "a-gap-beside": {0: producer.batch(1), 1: producer.batch(9)},
        "an-unknown-partition-beside": {0: producer.batch(2), 9: producer.batch(0)},
    }.values():
        for version in (11, 13):
            await play.ask("p", "Produce", producer.produce_body(batches, version), version)
        await Looks(play).transactions()
    await producer.commit()
    await Looks(play).fetch()


def topics() -> Iterator[Script]:
    for commits in (True, False):
        yield Script(
            f"a-topic-is-deleted-before-{'a-commit' if commits else 'an-abort'}",
            lambda play, commits=commits: _topic_deleted(play, commits),  # type: ignore[misc]
        )
    yield Script("internal-topics", _internal_topics)
    yield Script("a-version-that-is-not-released", _no_such_version)
    yield Script("batches-of-several-producers", _mixed_request)


# --- denials


def _denied(of: str) -> Callable[[Play], Awaitable[None]]:
    async def run(play: Play) -> None:
        looks = Looks(play)
        transactional_id = f"{SECRET}-{play.transactional_id}" if of == "id" else play.transactional_id
        topic = f"{SECRET}-{play.topic}" if of == "topic" else play.topic
        group = f"{SECRET}-{play.group}" if of == "group" else play.group
        producer = Producer(play, transactional_id=transactional_id)
        for version in (0, 5):
            await producer.init(version=version)
        for version in range(4):
            await producer.add(
                version=version,
                v3AndBelowTopics=[{"name": topic, "partitions": [0, 1]}, {"name": play.topic, "partitions": [0]}],
            )
        for version in (9, 11, 12):
            await producer.produce(0, topic=topic, version=version)
        for version in (0, 2, 4):
            await producer.add_offsets(version, groupId=group)
        for version in range(6):
            await producer.offsets_of(topic, {0: 5}, version, groupId=group)
        await looks.ask("DescribeTransactions", {"transactionalIds": [transactional_id, play.transactional_id]})
        await looks.listed(transactionalIdPattern=f".*{play.transactional_id}")
        await looks.producers(0, topic=topic)
        for version in (0, 4, 5):
            await producer.end(version=version)
        await looks.ask("DescribeTransactions", {"transactionalIds": [transactional_id]})
        await looks.offsets(group=group, stable=True)

    return run


def denials() -> Iterator[Script]:
    for of in ("id", "topic", "group", "nothing"):
        yield Script(f"denied-{of}", _denied(of), more_topics={f"{SECRET}-orders-denied-{of}": 2})


# --- restarts


def _restarted(
    how: str, probe: Probe, states: Mapping[str, State], version: int, *, is_now: bool
) -> Callable[[Play], Awaitable[None]]:
    async def run(play: Play) -> None:
        producers = []
        for number, (name, state) in enumerate(states.items()):
            producer = Producer(play, transactional_id=f"{play.transactional_id}-{name}", version=version)
            producer.timestamp = play.now() if is_now else producer.timestamp
            await state(producer, 2 * number)
            producers.append(producer)
        await play.restart(how)
        for number, producer in enumerate(producers):
            looks = Looks(play)
            await looks.transactions(str(producer.transactional_id))
            await looks.producers(2 * number)
            await probe(producer, 2 * number)
            await play.settle(str(producer.transactional_id))
            await looks.transactions(str(producer.transactional_id))
        await Looks(play).producers()
        await Looks(play).fetch()

    return run


PROBED: Final = {
    "init-expected": REQUESTS["init"]["v5-expected"],
    "end-again": REQUESTS["end"]["v5-commit-older"],
    "commit": REQUESTS["end"]["v5-commit"],
    "produce-again": REQUESTS["produce"]["v13-again"],
    "offsets": REQUESTS["offsets"]["v6"],
}
"""Requests after a restart."""


PROBED_OF_OLD_CLIENTS: Final = {
    "init-expected": REQUESTS["init"]["v5-expected"],
    "commit": REQUESTS["end"]["v4-commit"],
    "add-and-produce": REQUESTS["add-partitions"]["v3"],
    "offsets": REQUESTS["offsets"]["v4"],
}


def restarts(version: int = 2) -> Iterator[Script]:
    """Of a cluster of a transaction version."""
    is_old = version < 2
    for number, (name, probe) in enumerate((PROBED_OF_OLD_CLIENTS if is_old else PROBED).items()):
        how, is_now = ("stopped", "killed")[number % 2], number % 4 < 2
        run = _restarted(how, probe, SURVIVORS, version, is_now=is_now)
        suffix = f"-tv{version}" if is_old else ""
        yield Script(f"{name}-after-it-was-{how}{suffix}", run, partitions=2 * len(SURVIVORS))


# --- epochs that run out

LAST: Final = 32_766


def _exhausted(steps: Iterable[str], version: int) -> Callable[[Play], Awaitable[None]]:
    async def run(play: Play) -> None:
        looks, producer = Looks(play), Producer(play, version=version)
        actions: dict[str, Callable[[], Awaitable[Any]]] = {
            "init": producer.init,
            "init-expected": lambda: producer.init(producer.known),
            "begin": lambda: producer.begin(0),
            "commit": producer.commit,
            "abort": producer.abort,
            "commit-v4": lambda: producer.commit(4),
            "other": Producer(play, "q", version=version).init,
            "again": lambda: producer.end(True, producerId=producer.before[0], producerEpoch=producer.before[1]),
            "offsets": producer.offsets if version else lambda: producer.offsets({0: 5}, 3),
        }
        for step in steps:
            await actions[step]()
            await play.settle(play.transactional_id)
            await looks.transactions()
        await looks.producers(0)
        await looks.fetch(0)

    return run


EXHAUSTED: Final = {
    "by-init": ("init", "init", "init"),
    "by-init-expected": ("init", "init-expected", "init-expected", "init-expected"),
    "by-commits": ("init", "begin", "commit", "begin", "commit", "again", "begin", "commit"),
    "by-aborts": ("init", "begin", "abort", "abort", "abort", "begin", "abort"),
    "by-fencing": ("init", "init", "begin", "other", "other", "begin", "commit"),
    "by-fencing-at-the-last": ("init", "begin", "commit", "begin", "other", "begin", "commit", "other", "init"),
    "with-version-1": ("init", "begin", "commit-v4", "init", "begin", "commit-v4", "init"),
    "with-offsets": ("init", "offsets", "commit", "offsets", "abort", "offsets", "commit"),
}


def exhausted(version: int = 2) -> Iterator[Script]:
    """Each begins some epochs before the last one, on a cluster of a transaction version."""
    suffix = "" if version == 2 else f"-tv{version}"
    for before in (3, 2, 1):
        for name, steps in EXHAUSTED.items():
            run = _exhausted(steps, version)
            yield Script(f"epochs-end-in-{before}-{name}{suffix}", run, partitions=1, epoch=LAST - before)
