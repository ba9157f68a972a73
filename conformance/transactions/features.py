"""UpdateFeatures: levels of ``transaction.version`` and ``group.version``, and what producers see of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.participants.looks import Looks
from conformance.participants.producer import Producer
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script

TRANSACTIONS: Final = "transaction.version"
GROUPS: Final = "group.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


class Features:
    """Asks for other levels, and looks at those that there are."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._looks = Looks(play)

    async def update(self, *updates: tuple[str, int, int], version: int = 2, **over: Any) -> Any:
        """Each update is a feature, its level and the kind of update; version 0 has only a flag for downgrades."""
        named = [
            {"feature": feature, "maxVersionLevel": level}
            | ({"upgradeType": kind} if version else {"allowDowngrade": kind != UPGRADE})
            for feature, level, kind in updates
        ]
        body = {"timeoutMs": 10_000, "featureUpdates": named} | over
        return await self._looks.ask("UpdateFeatures", body, version)

    async def look(self) -> None:
        """ApiVersions, which names the levels; in the next moment the broker knows of a change."""
        await self._play.wait(300)
        software = {"clientSoftwareName": "script", "clientSoftwareVersion": "1"}
        for version in (3, 4):
            await self._looks.ask("ApiVersions", software, version)

    async def restore(self) -> None:
        """Levels as they were at the beginning."""
        await self.update((TRANSACTIONS, 2, UPGRADE))
        await self.update((GROUPS, 1, UPGRADE))
        await self._play.wait(300)


async def _levels(play: Play) -> None:
    """Down and up, in each version of the request."""
    features = Features(play)
    await features.look()
    steps = ((1, UPGRADE), (1, SAFE), (1, UPGRADE), (0, SAFE), (2, SAFE), (2, UPGRADE), (1, UNSAFE), (2, UPGRADE))
    for version in range(3):
        for level, kind in steps:
            await features.update((TRANSACTIONS, level, kind), version=version)
            await features.look()
    await features.restore()


async def _refused(play: Play) -> None:
    """Levels, features and kinds of update that there are not, and lists of several."""
    features = Features(play)
    for version in range(3):
        for level in (3, 9, -1, -9, 32_767):
            for kind in (UPGRADE, SAFE):
                await features.update((TRANSACTIONS, level, kind), version=version)
        for feature in ("nothing.version", "", "Transaction.Version"):
            for level in (1, 0):
                await features.update((feature, level, UPGRADE), version=version)
                await features.update((feature, level, SAFE), version=version)
        await features.update(version=version)
        await features.update((TRANSACTIONS, 1, SAFE), (TRANSACTIONS, 1, SAFE), version=version)
        await features.update((TRANSACTIONS, 1, SAFE), ("nothing.version", 1, UPGRADE), version=version)
        await features.update((TRANSACTIONS, 1, SAFE), (GROUPS, 7, UPGRADE), version=version)
        await features.look()
    for kind in (0, 4, 9, -1):
        await features.update((TRANSACTIONS, 1, kind), version=2)
        await features.update((TRANSACTIONS, 2, kind), version=1)
    await features.look()
    await features.restore()


async def _only_validated(play: Play) -> None:
    features = Features(play)
    for version in (1, 2):
        for level, kind in ((1, SAFE), (1, UPGRADE), (2, UPGRADE), (7, UPGRADE)):
            await features.update((TRANSACTIONS, level, kind), version=version, validateOnly=True)
        await features.look()
    await features.restore()


async def _both(play: Play) -> None:
    """The consumer protocol is off at level 0 of group.version."""
    features, looks = Features(play), Looks(play)
    heartbeat = {
        "groupId": play.group,
        "memberId": "AAAAAAAAAAAAAAAAAAAAAA",
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 30_000,
        "subscribedTopicNames": [play.topic],
        "topicPartitions": [],
    }
    for level, kind in ((0, SAFE), (1, UPGRADE)):
        await features.update((GROUPS, level, kind), (TRANSACTIONS, level, kind))
        await features.look()
        await looks.ask("ConsumerGroupHeartbeat", heartbeat | {"memberId": f"{'A' * 21}{level}"}, 1)
        await looks.ask("ConsumerGroupDescribe", {"groupIds": [play.group, "other"]}, 1)
    await features.restore()


async def _producers(play: Play) -> None:
    """Producers whose transactions are open while the level changes."""
    features, looks = Features(play), Looks(play)
    p, q = Producer(play, "p"), Producer(play, "q", f"{play.transactional_id}-old", version=1)
    for level, kind in ((1, SAFE), (0, SAFE), (1, UPGRADE), (2, UPGRADE)):
        await p.init()
        await q.init()
        if level in (1, 2) and kind == SAFE:
            await p.begin(0)
        await q.begin(1)
        await features.update((TRANSACTIONS, level, kind))
        await features.look()
        await p.produce(0, version=11)
        await p.end(True, 4, waits=False)
        await play.settle(str(p.transactional_id))
        await q.end(level != 1)
        await looks.transactions(str(p.transactional_id), str(q.transactional_id))
        await looks.producers()
        await q.begin(1)
        await q.init()
        await play.until_complete(str(q.transactional_id))
        await looks.transactions(str(q.transactional_id))
    await looks.fetch()
    await looks.fetch(isolation=1)
    await features.restore()


def features() -> Iterator[Script]:
    """Scripts that begin and end with the newest levels."""
    yield Script("levels-of-transaction-version", _levels)
    yield Script("feature-updates-that-are-refused", _refused)
    yield Script("feature-updates-only-validated", _only_validated)
    yield Script("levels-of-both-features", _both)
    yield Script("producers-while-levels-change", _producers)
