"""Sequences that few clients send: internal topics, filters of each version, batched requests, late records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from conformance.groups.classic_member import ClassicMember
from conformance.participants.looks import Looks
from conformance.participants.producer import Producer
from conformance.transactions.states import SHORT_MS, markers
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state")
Run = Callable[[Play, int], Awaitable[None]]
"""A script for producers of a transaction version."""


async def _batches_for_internal_topics(play: Play, version: int) -> None:
    """Transactional batches for internal topics: not added, added by the batch, added by the client."""
    looks, producer = Looks(play), Producer(play, version=version)
    await producer.init()
    newer = (12,) if version else ()
    for topic in INTERNAL_TOPICS:
        for produce_version in (9, 11, *newer):
            await producer.produce(0, topic=topic, version=produce_version)
            await looks.transactions()
        await producer.add(0, topic=topic)
        await producer.produce(0, topic=topic, version=11)
        await producer.produce(0, topic=topic, version=11, epoch=producer.epoch + 1)
        await producer.produce(0, topic=topic, version=11, transactional_id="tx-of-others")
        await producer.end(topic == INTERNAL_TOPICS[0])
        await looks.transactions()
    await producer.produce(9, topic=INTERNAL_TOPICS[0], version=11)
    await producer.init()
    await looks.transactions()


STATES: Final = ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "CompleteAbort", "ongoing", "", "Dead")
PATTERNS: Final = (
    None,
    "",
    ".*",
    "^tx-.*$",
    "(?i)TX-.*",
    r"tx-[\w-]+",
    "(?=a)",
    "[",
    "*",
    r"tx-.*\b",
    "(a|b)+",
    "(?P<n>t).*",
)


async def _lists(play: Play, version: int) -> None:
    """ListTransactions in each version, with filters that match some, all, none, or cannot be."""
    looks, producers = Looks(play), []
    for number in range(4):
        producer = Producer(play, f"p{number}", f"{play.transactional_id}-{number}", version)
        await producer.init()
        if number:
            await producer.begin(0)
        if number > 1:
            await producer.end(number == 2)
        producers.append(producer)
    own = {"producerIdFilters": [producer.producer_id for producer in producers]}
    for asked in range(3):
        pattern = {"transactionalIdPattern": ""} if asked > 1 else {}
        await looks.listed(asked, **own, **pattern)
        for state in STATES:
            await looks.listed(asked, **own, **pattern, stateFilters=[state])
        await looks.listed(asked, **own, **pattern, stateFilters=["Ongoing", "Ongoing", "nothing", "CompleteAbort"])
        await looks.listed(asked, **pattern, producerIdFilters=[producers[1].producer_id, -1])
        for duration in (-1, 0, 10**12, -(2**63)) if asked else ():
            await looks.listed(asked, **own, **pattern, durationFilter=duration)
    for one in PATTERNS:
        await looks.listed(2, **own, transactionalIdPattern=one)


async def _several_at_once(play: Play, version: int) -> None:
    """AddPartitionsToTxn and WriteTxnMarkers for several transactions, and for one of them twice."""
    looks = Looks(play)
    p, q = (Producer(play, name, f"{play.transactional_id}-{name}", version) for name in "pq")
    await p.init()
    await q.init()
    await q.begin(1)

    def one(producer: Producer, *partitions: int, verify: bool = False, **over: object) -> dict[str, object]:
        return {
            "transactionalId": producer.transactional_id,
            "producerId": producer.producer_id,
            "producerEpoch": producer.epoch,
            "verifyOnly": verify,
            "topics": [{"name": play.topic, "partitions": list(partitions)}],
        } | over

    adding = version > 0
    for transactions in (
        [one(p, 0, verify=not adding), one(q, 0, 1, verify=True)],
        [one(p, 0, 1, verify=True), one(p, 0, verify=True, transactionalId="tx-of-nobody")],
        [one(p, 7, verify=True), one(q, 1, verify=True, producerEpoch=9)],
        [one(p, 7, 0, verify=not adding), one(q, 1, verify=True, transactionalId="")],
    ):
        for asked in (4, 5):
            await p.ask("AddPartitionsToTxn", {"transactions": transactions}, asked)
    await looks.transactions(str(p.transactional_id), str(q.transactional_id))
    await markers(q, 0, 1, 7, epoch=q.epoch + 1, transaction_version=version)
    marker = {
        "producerId": q.producer_id,
        "producerEpoch": q.epoch + 1,
        "transactionResult": True,
        "topics": [{"name": play.topic, "partitionIndexes": [0]}, {"name": "nowhere", "partitionIndexes": [0]}],
        "coordinatorEpoch": 0,
        "transactionVersion": version,
    }
    other = marker | {"producerId": p.producer_id, "producerEpoch": p.epoch + 1, "transactionResult": False}
    await p.ask("WriteTxnMarkers", {"markers": [marker, other, marker]}, 2)
    await p.ask("WriteTxnMarkers", {"markers": []}, 2)
    await looks.producers(0, 1)
    await looks.fetch(0, 1)


async def _static_member_replaced(play: Play, version: int) -> None:
    """Another process takes over a group instance id while offsets of the first are pending."""
    looks, first = Looks(play), ClassicMember(play, "one", "m")
    await first.join()
    await first.sync()
    producers = [Producer(play, name, f"{play.transactional_id}-{name}", version) for name in "pq"]
    for producer in producers:
        await producer.init()
    p, q = producers
    if version < 2:
        await p.add_offsets()
        await q.add_offsets()
    await p.offsets({0: 1}, **first.identity)
    second = ClassicMember(play, "one", "n")
    await second.join()
    await second.sync()
    for asked in (3, 4) if version < 2 else (3, 4, 5, 6):
        await p.offsets({1: 2}, asked, **first.identity)
        await p.offsets({1: 2}, asked, **(first.identity | {"groupInstanceId": None}))
        await q.offsets({1: 3}, asked, **second.identity)
        await q.offsets({1: 3}, asked, **(second.identity | {"memberId": first.member_id}))
    await looks.both_offsets()
    await p.commit()
    await looks.both_offsets()
    await second.leave()
    await q.offsets({0: 4}, **second.identity)
    await q.abort()
    await looks.both_offsets()


async def _late_batch(play: Play, version: int) -> None:
    """A batch that was on its way when its transaction ended comes late: first of a new one, or of none."""
    looks, p, q = Looks(play), Producer(play, version=version), Producer(play, "q", version=version)
    await p.init()
    await p.begin(0, 1)
    late = p.batch(0), p.batch(1)
    asked = p.versions["Produce"]
    await p.commit()
    for partition, data in enumerate(late):
        await p.ask("Produce", p.produce_body({partition: data}, asked), asked)
        await p.ask("Produce", p.produce_body({partition: data}, 9), 9)
    await looks.ends(0, 1)
    await looks.producers(0, 1)
    await p.begin(0)
    await p.ask("Produce", p.produce_body({1: late[1]}, asked), asked)
    await looks.producers(0, 1)
    await q.init()
    await play.until_complete()
    await q.init()
    await looks.fetch(0, 1)
    await p.ask("Produce", p.produce_body({0: late[0]}, asked), asked)
    await q.begin(1)
    await q.abort()
    await looks.ends(0, 1)
    await looks.transactions()


async def _timeouts_given(play: Play, version: int) -> None:
    """Each InitProducerId says how long a transaction may take; what was open before counts by its own."""
    looks, producer = Looks(play), Producer(play, version=version)
    for timeout in (1, 900_000, 5_000):
        await producer.init(timeout=timeout)
        await looks.transactions()
    await producer.begin(0)
    await producer.init(timeout=7_000)
    await play.until_complete()
    await looks.transactions()
    await producer.init(producer.known, timeout=8_000)
    await looks.transactions()
    for timeout in (0, -1, 900_001, 2**31 - 1):
        await producer.init(timeout=timeout)
    await looks.transactions()


async def _coordinators(play: Play, version: int) -> None:
    """FindCoordinator of transactional ids in each version, and ApiVersions with its features."""
    looks = Looks(play)
    for asked in range(1, 4):
        for key in (play.transactional_id, ""):
            await looks.ask("FindCoordinator", {"key": key, "keyType": 1}, asked)
    for asked in range(4, 7):
        for keys in ([play.transactional_id], [play.transactional_id, play.transactional_id], ["", "other"], []):
            await looks.ask("FindCoordinator", {"keyType": 1, "coordinatorKeys": keys}, asked)
        await looks.ask("FindCoordinator", {"keyType": 9, "coordinatorKeys": ["a"]}, asked)
    software = {"clientSoftwareName": "script", "clientSoftwareVersion": "1"}
    for asked in range(5):
        await looks.ask("ApiVersions", software if asked > 2 else {}, asked)
    producer = Producer(play, version=version)
    await producer.init()


async def _two_groups(play: Play, version: int) -> None:
    """One transaction commits offsets of two groups and writes records; another one has them, too."""
    looks = Looks(play)
    p, q = (Producer(play, name, f"{play.transactional_id}-{name}", version) for name in "pq")
    groups = [f"{play.group}-{number}" for number in range(2)]
    for producer in (p, q):
        await producer.init()
        for number, group in enumerate(groups):
            if version < 2:
                await producer.add_offsets(group=group)
            await producer.offsets({number: 5, 1 - number: 6}, groupId=group)
        await producer.begin(0)
    for group in groups:
        await looks.offsets(0, 1, stable=True, group=group)
    await looks.ask("DeleteGroups", {"groupsNames": groups[:1]}, 2)
    await p.commit()
    for group in groups:
        await looks.offsets(0, 1, stable=True, group=group)
    await q.abort()
    for group in groups:
        await looks.offsets(0, 1, stable=True, group=group)
    await looks.ask("DescribeGroups", {"groups": groups}, 5)
    await looks.fetch(0)


RUNS: Final[dict[str, Run]] = {
    "batches-for-internal-topics": _batches_for_internal_topics,
    "lists-by-filters": _lists,
    "several-transactions-at-once": _several_at_once,
    "a-static-member-is-replaced": _static_member_replaced,
    "a-batch-comes-late": _late_batch,
    "timeouts-are-given": _timeouts_given,
    "coordinators-and-features": _coordinators,
    "two-groups-in-one-transaction": _two_groups,
}


def unusual(version: int = 2) -> Iterator[Script]:
    """Scripts for a cluster of a transaction version."""
    for name, run in RUNS.items():
        yield Script(f"{name}-tv{version}", _of_version(run, version))


def _of_version(run: Run, version: int) -> Callable[[Play], Awaitable[None]]:
    async def play_it(play: Play) -> None:
        await run(play, version)

    return play_it


# --- what time does


async def _producers_forgotten(play: Play) -> None:
    """The partition forgets producers whose records are old, but for those in a transaction."""
    looks = Looks(play)
    idempotent, old = Producer(play, "i", None), Producer(play, "o", None)
    p, q, r = (Producer(play, name, f"{play.transactional_id}-{name}") for name in "pqr")
    for producer in (idempotent, p, q, r):
        producer.timestamp = play.now()
    old.timestamp = LONG_AGO
    for producer in (idempotent, old, p, q, r):
        await producer.init()
    for producer in (idempotent, old):
        await producer.produce(0, attributes=0)
        await producer.produce(0, attributes=0)
    await p.begin(0)
    await q.begin(0)
    await q.commit()
    await r.produce(0, sequence=3)
    await play.wait(300)
    await looks.producers(0)
    await play.wait(FORGOTTEN_AFTER_MS)
    await looks.producers(0)
    for producer in (idempotent, old):
        await producer.produce(0, sequence=9, attributes=0)
    await q.produce(0, sequence=2)
    await r.produce(0, sequence=1)
    await q.produce(0, sequence=0)
    await p.produce(0)
    await looks.producers(0)
    for producer in (p, q, r):
        await producer.abort()
    await looks.fetch(0)
    await looks.ends(0)


async def _refused_beyond_the_timeout(play: Play) -> None:
    """A transaction that is decided, and whose markers are refused, is not timed out."""
    looks = Looks(play)
    for number, commits in enumerate((True, False)):
        producer = Producer(play, transactional_id=f"{play.transactional_id}-{number}")
        await producer.init(timeout=SHORT_MS)
        await producer.begin(2 * number, 2 * number + 1)
        await markers(producer, 2 * number, epoch=100)
        await producer.end(commits, waits=False)
        await play.wait(1_000)
        await looks.transactions(str(producer.transactional_id))
        await producer.init()
        await producer.produce(2 * number + 1)
        await producer.end(commits, waits=False)
        await producer.offsets({0: 5})
    await looks.producers()
    await looks.fetch()


async def _timed_out_between(play: Play) -> None:
    """Transactions of one producer, of which every second one is timed out, with offsets and without."""
    looks, producer = Looks(play), Producer(play)
    await producer.init(timeout=SHORT_MS)
    for number in range(4):
        await producer.begin(0, 1)
        await producer.offsets({0: number})
        if number % 2:
            await looks.both_offsets()
            await play.wait(1_000)
            await looks.both_offsets()
            await looks.transactions()
            await producer.produce(0)
            await producer.end(number == 1, waits=False)
            await play.settle(play.transactional_id)
            await producer.init(producer.known, timeout=SHORT_MS)
        else:
            await producer.commit()
    await looks.all()


FORGOTTEN_AFTER_MS: Final = 3_000
LONG_AGO: Final = 1_600_000_000_000
"""Records of this time are old by any clock."""


def forgotten() -> Iterator[Script]:
    yield Script("producers-are-forgotten", _producers_forgotten, partitions=1)


def timed_out() -> Iterator[Script]:
    yield Script("markers-are-refused-beyond-the-timeout", _refused_beyond_the_timeout, partitions=4)
    yield Script("every-second-one-is-timed-out", _timed_out_between)
