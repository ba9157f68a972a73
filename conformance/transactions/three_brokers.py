"""Transactions on three brokers: coordinators and leaders that move and die, and requests to the wrong broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from conformance.groups.classic_member import ClassicMember
from conformance.participants.brokers import INTERNAL_PARTITIONS, TRANSACTIONS
from conformance.participants.looks import Looks
from conformance.participants.producer import Producer
from conformance.participants.session import PARTITIONS, Session
from conformance.transactions.states import markers
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script
from rejoin.protocol.partitioner import partition_for

ASSIGNMENT: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
CLIENTS: Final = {1: "an-old-client", 2: "a-new-client"}
ALONE: Final = [[1], [2], [3]]
"""One replica each: with its broker a partition is gone."""
OUTAGE_MS: Final = 300
"""So long a broker is dead before anything is asked; the others do not know yet."""
FENCED_MS: Final = 7_000
"""After this a dead broker is fenced, also where the controller died with it."""


Run = Callable[[Session], Awaitable[None]]


async def _ask_everything(session: Session, broker: int) -> None:
    """Each request to coordinators, at a broker that is none."""
    producer, looks = session.producer, Looks(session.play, broker)
    known, producer.broker = producer.broker, broker
    for version in (0, 3, 5):
        await producer.init(version=version)
    await producer.init(producer.known)
    await producer.add(0)
    await producer.add_as_broker(0)
    await producer.add_as_broker(0, verify=True)
    await producer.add_offsets()
    for version in (1, 4, 5):
        await producer.end(True, version, waits=False)
    await looks.transactions()
    await looks.listed()
    for version in (2, 4, 6):
        await producer.offsets({0: 1}, version, groupId=session.play.group)
    producer.broker = known


async def _coordinator_moves(session: Session) -> None:
    """Between the records and the end; the old one is asked for everything."""
    old = await session.find()
    await session.producer.init()
    await session.begin(0, 1)
    await session.looks.transactions()
    (new, other) = session.brokers.others(old)
    await session.brokers.move_coordinator(new)
    for broker in (old, other):
        await session.looks.ask("DescribeTransactions", {"transactionalIds": [session.play.transactional_id]})
        session.looks.broker = broker
    await session.producer.ask("EndTxn", _end_of(session), session.producer.versions["EndTxn"], old)
    await session.find()
    await session.look()
    await session.begin(1, 2)
    await session.end(commits=True)
    await session.look()
    await session.begin(0)
    await session.brokers.move_coordinator(old)
    await session.find()
    await session.end(commits=False)
    await session.look()


def _end_of(session: Session) -> dict[str, Any]:
    producer = session.producer
    return {
        "transactionalId": producer.transactional_id,
        "producerId": producer.producer_id,
        "producerEpoch": producer.epoch,
        "committed": True,
    }


async def _wrong_broker(session: Session) -> None:
    """Every request at brokers that do not coordinate or lead; then markers by an administrator at each."""
    coordinator = await session.find()
    producer, play = session.producer, session.play
    await producer.init()
    await session.begin(0)
    await session.offsets({0: 1})
    for broker in session.brokers.others(coordinator, await session.brokers.group_coordinator()):
        await _ask_everything(session, broker)
    for broker in session.brokers.others(await session.brokers.leader(0)):
        for version in (9, 11, 13):
            await producer.produce(0, version=version, broker=broker)
        await producer.produce(
            0, transactional_id=None, attributes=0, producer_id=-1, epoch=-1, sequence=-1, broker=broker
        )
        await session.read(0, broker)
    for broker in session.brokers.running:
        producer.broker = broker
        await markers(producer, 0, 1, 2, 9, epoch=producer.epoch + 1, producer_id=900_500)
        await markers(producer, 0, 1, 2, 3, 4, epoch=5, producer_id=900_500, topic="__consumer_offsets")
        for version in (1, 3, 4, 6):
            keys: dict[str, Any] = {"coordinatorKeys": [play.transactional_id]}
            await producer.ask(
                "FindCoordinator", {"keyType": 1} | (keys if version > 3 else {"key": play.transactional_id}), version
            )
    await session.find()
    await session.end(commits=True)
    await session.look()


async def _coordinator_dies(session: Session) -> None:
    """While it is dead, leaders cannot ask it; the next one aborts what is left."""
    old = await session.find()
    await session.producer.init()
    led = await session.led_elsewhere(old)
    await session.begin(led[0])
    await session.brokers.kill(old)
    await session.play.wait(OUTAGE_MS)
    for version in (9, 11, 12, 13):
        await session.produce(led[1], version=version)
    await session.produce(led[0])
    await session.brokers.until_led()
    await session.find()
    await session.looks.transactions()
    await session.begin(led[1])
    await session.end(commits=True)
    await session.look()
    await session.brokers.start(old)
    await session.begin(*PARTITIONS)
    await session.end(commits=False)
    await session.look()


async def _leader_moves(session: Session) -> None:
    """The new leader knows the producer, its last five batches and its transaction."""
    await session.find()
    producer = session.producer
    await producer.init()
    await session.begin(0, 1)
    for _ in range(6):
        await session.produce(0)
    old = await session.brokers.leader(0)
    new = session.brokers.others(old)[0]
    await session.brokers.move(session.play.topic, 0, new)
    await producer.produce(0, broker=old)
    await session.read(0, old)
    for sequence in (1, 2, 6, 3, 9):
        await producer.produce(0, sequence=sequence, broker=new)
    producer.sequences[0] = 7
    await session.look()
    await session.end(commits=False)
    await session.look()
    await session.begin(0)
    await session.end(commits=True)
    await session.look()


async def _leader_dies(session: Session) -> None:
    """The end is asked for while a leader is dead: another replica gets its marker."""
    coordinator = await session.find()
    await session.producer.init()
    await session.begin(*PARTITIONS)
    dead = (await session.led_elsewhere(coordinator))[0]
    broker = await session.brokers.leader(dead)
    await session.brokers.kill(broker)
    await session.play.wait(OUTAGE_MS)
    await session.producer.end(True, waits=False)
    await session.brokers.until_led()
    await session.play.until_complete(broker=coordinator)
    await session.look()
    await session.begin(*PARTITIONS)
    await session.brokers.start(broker)
    await session.end(commits=False)
    await session.look()


async def _partition_offline(session: Session) -> None:
    """A transaction ends while one of its partitions is offline, which never gets its marker."""
    coordinator = await session.find()
    await session.producer.init()
    await session.begin(*PARTITIONS)
    dead = (await session.led_elsewhere(coordinator))[0]
    broker = await session.brokers.leader(dead)
    await session.brokers.kill(broker)
    await session.play.wait(FENCED_MS)
    await session.end(commits=True)
    await session.looks.transactions()
    alive = [partition for partition in PARTITIONS if partition != dead]
    for partition in alive:
        await session.read(partition)
    await session.produce(alive[0])
    await session.end(commits=False)
    await session.brokers.start(broker)
    await session.look()
    await session.begin(*PARTITIONS)
    await session.look()
    await session.end(commits=True)
    await session.look()


async def _offline_and_aborted(session: Session) -> None:
    """The transaction aborts, another producer follows, and an administrator ends the hanging transaction."""
    coordinator = await session.find()
    await session.producer.init()
    await session.begin(*PARTITIONS)
    dead = (await session.led_elsewhere(coordinator))[0]
    broker = await session.brokers.leader(dead)
    await session.brokers.kill(broker)
    await session.play.wait(FENCED_MS)
    await session.end(commits=False)
    await session.brokers.start(broker)
    other = Producer(session.play, "q", f"{session.play.transactional_id}-other", session.producer.version)
    other.broker = await session.play.leader(
        TRANSACTIONS, partition_for(str(other.transactional_id), INTERNAL_PARTITIONS)
    )
    await other.init()
    if other.version < 2:
        await other.add(dead)
    await other.produce(dead, broker=broker)
    await other.commit()
    await session.look()
    session.producer.broker = broker
    await markers(session.producer, dead, epoch=0, transaction_version=0)
    await session.find()
    await session.look()


async def _epochs_after_moves(session: Session) -> None:
    """A new coordinator knows only the fields in the record of a transactional id."""
    producer = session.producer
    for commits in (True, False):
        old = await session.find()
        await producer.init()
        await session.begin(0)
        await session.end(commits=commits)
        before = producer.before
        await session.brokers.move_coordinator(session.brokers.others(old)[0])
        await session.find()
        await session.looks.transactions()
        for again in (commits, not commits):
            ended = _end_of(session) | {"producerEpoch": before[1], "committed": again}
            await producer.ask("EndTxn", ended, producer.versions["EndTxn"])
        await producer.init(before)
        await producer.init(producer.known)
        await producer.init((producer.producer_id, producer.epoch - 1))
        await session.begin(0, 1)
        await session.brokers.move_coordinator(old)
        await session.find()
        await producer.init(producer.known)
        await session.play.settle(session.play.transactional_id, broker=producer.broker)
        await producer.init(producer.known)
        await session.looks.transactions()
    await session.look()


async def _zombie(session: Session) -> None:
    """Another one with the same id asks the new coordinator; the first goes on at the leaders."""
    old = await session.find()
    await session.producer.init()
    await session.begin(0, 1)
    await session.brokers.move_coordinator(session.brokers.others(old)[0])
    other = Session(session.play, "q", session.producer.version)
    await other.find()
    await other.producer.init()
    await session.play.settle(session.play.transactional_id, broker=other.producer.broker)
    await other.producer.init()
    await session.produce(0)
    await session.produce(2)
    await session.find()
    await session.end(commits=True)
    await session.offsets({0: 5})
    await other.begin(0, 2)
    await session.produce(2)
    await other.end(commits=True)
    await session.look()


async def _timed_out_elsewhere(session: Session) -> None:
    """A transaction times out at a coordinator that did not see its beginning."""
    old = await session.find()
    await session.producer.init(timeout=2_500)
    await session.begin(0, 1)
    await session.offsets({0: 5})
    await session.brokers.move_coordinator(session.brokers.others(old)[0])
    await session.find()
    await session.looks.transactions()
    await session.play.wait(3_500)
    await session.looks.transactions()
    await session.produce(0)
    await session.end(commits=False)
    await session.group_offsets(stable=True)
    await session.producer.init(session.producer.known)
    await session.begin(0)
    await session.end(commits=True)
    await session.look()


async def _group_moves(session: Session) -> None:
    """Pending offsets move with their group, and the markers find them."""
    await session.find()
    member = ClassicMember(session.play)
    producer = session.producer
    old = await session.brokers.group_coordinator()
    await producer.init()
    await session.offsets({0: 5})
    await session.group_offsets(stable=True)
    new = session.brokers.others(old)[0]
    await session.brokers.move_group(new)
    await session.group_offsets(stable=True, broker=old)
    await session.group_offsets(stable=True)
    await session.group_offsets(stable=False)
    known, producer.broker = producer.broker, old
    for version in (2, 4, 6):
        await producer.offsets({0: 6}, version)
    producer.broker = known
    await session.offsets({1: 6})
    await session.end(commits=True)
    await session.group_offsets(stable=True)
    await session.offsets({0: 7}, **(member.identity | {"generationIdOrMemberEpoch": 3}))
    await session.offsets({0: 8})
    await session.brokers.move_group(old)
    await session.end(commits=False)
    await session.group_offsets(stable=True)
    await session.looks.transactions()


async def _group_dies(session: Session) -> None:
    """The group's coordinator dies with pending offsets; the end is decided meanwhile."""
    coordinator = await session.find()
    producer = session.producer
    await producer.init()
    dead = await session.brokers.group_coordinator()
    if dead == coordinator:
        await session.brokers.move_group(session.brokers.others(coordinator)[0])
        dead = await session.brokers.group_coordinator()
    await session.offsets({0: 5})
    await session.brokers.kill(dead)
    await session.play.wait(OUTAGE_MS)
    await session.producer.end(True, waits=False)
    await session.brokers.until_led()
    await session.play.until_complete(broker=session.producer.broker)
    await session.looks.transactions()
    await session.group_offsets(stable=True)
    await session.offsets({0: 6, 1: 7})
    await session.brokers.start(dead)
    await session.end(commits=False)
    await session.group_offsets(stable=True)


async def _rolled(session: Session) -> None:
    """Each broker is stopped and started, one after the other, within one transaction."""
    await session.find()
    await session.producer.init()
    await session.begin(*PARTITIONS)
    await session.offsets({0: 5})
    for broker in (1, 2, 3):
        await session.brokers.stop(broker)
        await session.find()
        await session.looks.transactions()
        await session.begin(broker - 1)
        await session.brokers.start(broker)
    await session.find()
    await session.end(commits=True)
    await session.look()
    await session.group_offsets(stable=True)
    await session.begin(0)
    await session.end(commits=False)
    await session.look()


async def _followers(session: Session) -> None:
    """Each broker describes the producers of all partitions: it leads one, and follows the others."""
    await session.find()
    await session.producer.init()
    await session.begin(0, 1)
    for commits in (True, False):
        for broker in (1, 2, 3):
            await session.play.wait(FENCED_MS // 10)
            await Looks(session.play, broker).producers(*PARTITIONS)
        await session.end(commits=commits)


RUNS: Final[dict[str, Run]] = {
    "the-coordinator-moves": _coordinator_moves,
    "the-coordinator-dies": _coordinator_dies,
    "a-leader-moves": _leader_moves,
    "a-leader-dies": _leader_dies,
    "the-group-moves": _group_moves,
    "a-zombie-is-fenced-elsewhere": _zombie,
    "a-timeout-comes-elsewhere": _timed_out_elsewhere,
}
"""Played by clients of both kinds."""
RUNS_OF_ONE_CLIENT: Final[dict[str, Run]] = {
    "the-wrong-broker-is-asked": _wrong_broker,
    "epochs-after-moves": _epochs_after_moves,
    "the-group-dies": _group_dies,
    "brokers-are-restarted-in-turn": _rolled,
    "followers-describe-producers": _followers,
}
"""Played by the client of the cluster's own transaction version, as those below."""
RUNS_WITHOUT_REPLICAS: Final[dict[str, Run]] = {
    "a-partition-is-offline": _partition_offline,
    "a-partition-is-offline-and-an-administrator-aborts": _offline_and_aborted,
}


def three_brokers(level: int = 2) -> Iterator[Script]:
    """Scripts for a cluster whose transaction version is at this level. Below 2 clients are old ones."""
    own = max(1, level)
    for name, run in RUNS.items():
        for version in range(1, own + 1):
            yield _script(f"{name}-under-{CLIENTS[version]}", run, version)
    for name, run in RUNS_OF_ONE_CLIENT.items():
        yield _script(name, run, own)
    for name, run in RUNS_WITHOUT_REPLICAS.items():
        yield _script(name, run, own, ALONE)


def _script(name: str, run: Run, version: int, assignment: list[list[int]] = ASSIGNMENT) -> Script:
    async def play_it(play: Play) -> None:
        await run(Session(play, version=version))

    return Script(name, play_it, partitions=len(ASSIGNMENT), assignment=assignment)
