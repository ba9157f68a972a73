"""A consumer of a share group: a handler that takes its time with each record, and decides what becomes of it.

Records are handled one after the other. Locks are renewed from a second thread while the handler works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal, NamedTuple, TypeAlias

from rejoin.client.core.effects import (
    AcknowledgementCallback,
    AcknowledgementsCommitted,
    CallDone,
    CallListener,
    Effect,
    PollReturned,
)
from rejoin.client.core.inputs import CallbackDone, Polled
from rejoin.client.core.share.core import ShareConsumerCore
from rejoin.client.core.share.inputs import RecordAcknowledged, ShareCommitAsked, ShareInput
from rejoin.client.share_config import ShareConsumerConfig
from rejoin.coordinator.core.share.requests import LONGEST_MEMBER_ID
from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.consumer_process import ConsumerProcess, UserCode
from rejoin.simulation.actors.share.poison import IsPoison
from rejoin.simulation.kernel import Millis, World
from rejoin.simulation.network import Network

_RANDOM_DIGITS: Final = 12
_NAME_LENGTH: Final = LONGEST_MEMBER_ID - _RANDOM_DIGITS - 1

OnPoison: TypeAlias = Literal["release", "reject", "crash"]
"""Fate of a record whose handler fails: it is given back, it is refused for good, or the process ends."""


class HandlerFailed(Exception):
    """The user's code cannot handle a record, and does not catch its own error."""


@dataclass(frozen=True, slots=True)
class ShareCode:
    """The parts of the user's code that only share consumers have."""

    commits: bool = False
    """True when it commits after the records of each poll; else acknowledgements travel with the next poll."""
    releases: float = 0.0
    """The chance that the handler gives a record back, for another try."""
    rejects: float = 0.0
    """The chance that it refuses a record for good."""
    renew_ms: Millis = 0
    """How often it renews the locks of what it has in hand; 0: never."""
    on_poison: OnPoison = "release"


class RecordKey(NamedTuple):
    """A record by its place."""

    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class Job:
    """A record in hand."""

    is_renewing: bool = False
    """True from the request for a new lock until the record is back."""
    verdict: AcknowledgeType | None = None
    """Set while it is renewing and its handler has ended."""


class ShareConsumerActor(ConsumerProcess):
    """One consumer of a share group."""

    config: ShareConsumerConfig
    core: ShareConsumerCore | None
    names_connections = True

    def __init__(
        self,
        world: World,
        network: Network,
        cluster: Cluster,
        config: ShareConsumerConfig,
        user_code: UserCode,
        share_code: ShareCode,
        is_poison: IsPoison,
        name: str,
    ) -> None:
        super().__init__(world, network, cluster, config, user_code, name)
        self.share_code = share_code
        self._is_poison = is_poison
        self.jobs: dict[RecordKey, Job] = {}
        """Records in hand, in the order in which they are handled."""
        self._free_at: Millis = 0
        self._renewal = 0

    @property
    def is_explicit(self) -> bool:
        return self.config.share_acknowledgement_mode == "explicit"

    # -- the process

    def _new_core(self) -> ShareConsumerCore:
        self.jobs = {}
        self._free_at = self.world.now
        return ShareConsumerCore(
            self.config,
            self.random.random,
            member_id=self._short_member_id(),
            explicit=self.is_explicit,
            limit_records=self.config.share_acquire_mode == "record_limit",
        )

    def _short_member_id(self) -> str:
        """A member id that the client makes, anew with each start; nodes refuse longer ones."""
        return f"{self.name[:_NAME_LENGTH]}-{self.random.getrandbits(4 * _RANDOM_DIGITS):0{_RANDOM_DIGITS}x}"

    def _core_step(self, what: ShareInput, now: Millis) -> list[Effect]:
        assert self.core is not None, "a consumer that is down takes nothing in"
        return self.core.step(what, now)

    def _end(self) -> None:
        super()._end()
        self.jobs = {}

    def _apply(self, effect: Effect) -> None:
        match effect:
            case CallDone(token=RecordKey()):
                pass  # A record that is not delivered any more has no acknowledgement.
            case AcknowledgementCallback(error=None):
                pass
            case AcknowledgementCallback(partition=partition, offsets=offsets):
                self._not_renewed(partition, offsets)
            case AcknowledgementsCommitted(token=token):
                if callable(token):
                    token()
            case _:
                super()._apply(effect)

    def _call_listener(self, effect: CallListener) -> None:
        self.step(CallbackDone())

    # -- polls

    def _on_poll(self, returned: PollReturned) -> None:
        if self.closing:
            return  # close ended the poll
        fresh: list[RecordKey] = []
        for record in [each for some in returned.records or () for each in some]:
            key = RecordKey(record.topic, record.partition, record.offset)
            job = self.jobs.get(key)
            if job is None:
                self.jobs[key] = Job()
                fresh.append(key)
            else:
                self._renewed(key, job)
        self._handle(fresh)
        if any(not job.is_renewing for job in self.jobs.values()):
            self.busy = True
            self._renew_later()
        else:
            self._poll()

    def _handle(self, keys: list[RecordKey]) -> None:
        """Handle records one after the other, each in its time."""
        if not keys:
            return
        start = max(self._free_at, self.world.now)
        total = self.user_code.processing.of(len(keys), self.random)
        for number, key in enumerate(keys, 1):
            self._free_at = start + ceil(total * number / len(keys))
            self._user(self._free_at, self._handled, key)

    def _handled(self, key: RecordKey) -> None:
        """The handler has ended for a record."""
        job = self.jobs.get(key)
        if job is None or self.core is None:
            return
        verdict = self._verdict(key)
        if verdict is None:
            self._die(HandlerFailed(f"the handler fails for {key.topic}-{key.partition} at offset {key.offset}"))
            return
        if job.is_renewing:
            job.verdict = verdict
            return
        self._decide(key, verdict)
        if self.core is None:
            return
        if self.stopping:
            self._give_back()
        elif not self.jobs:
            self._all_handled()

    def _verdict(self, key: RecordKey) -> AcknowledgeType | None:
        """Acknowledgement type of a record; none: the process dies of it."""
        code = self.share_code
        if self._is_poison(*key):
            if code.on_poison == "crash":
                return None
            return AcknowledgeType.REJECT if code.on_poison == "reject" else AcknowledgeType.RELEASE
        if not code.releases and not code.rejects:
            return AcknowledgeType.ACCEPT
        drawn = self.random.random()
        if drawn < code.releases:
            return AcknowledgeType.RELEASE
        return AcknowledgeType.REJECT if drawn < code.releases + code.rejects else AcknowledgeType.ACCEPT

    def _decide(self, key: RecordKey, verdict: AcknowledgeType) -> None:
        del self.jobs[key]
        if self.is_explicit:
            self.step(RecordAcknowledged(key, *key, int(verdict)))

    def release(self, key: RecordKey) -> bool:
        """Give a record back that the handler has in hand; False where it has not, or acknowledges implicitly."""
        job = self.jobs.get(key)
        if job is None or job.is_renewing or self.core is None or not self.is_explicit or self.stopping:
            return False
        self._decide(key, AcknowledgeType.RELEASE)
        if not self.jobs:
            self._all_handled()
        else:
            self.step(ShareCommitAsked(None))
        return True

    def _all_handled(self) -> None:
        if self.share_code.commits:
            self.step(ShareCommitAsked(self._guarded(self._poll)))
        else:
            self._poll()

    def _give_back(self) -> None:
        """The process stops: what it has not handled it releases, and closes."""
        left = list(self.jobs)
        if self.is_explicit:
            for key in left:
                if not self.jobs[key].is_renewing:
                    self._decide(key, AcknowledgeType.RELEASE)
        self.jobs = {}
        if self.share_code.commits and not self.is_explicit:
            self.step(ShareCommitAsked(self._guarded(self._close), unread=frozenset(left)))
        else:
            self._close()

    def _guarded(self, act: Callable[[], None]) -> Callable[[], None]:
        """A token of a call that counts in this incarnation only."""
        incarnation = self.incarnation

        def ended() -> None:
            if incarnation == self.incarnation and self.core is not None:
                act()

        return ended

    # -- renewing

    def _renew_later(self) -> None:
        self._renewal += 1
        if self.share_code.renew_ms:
            at = self.world.now + self.share_code.renew_ms
            self.world.at(at, self.user_lane, self._renew, (self.incarnation, self._renewal))

    def _renew(self, what: tuple[int, int]) -> None:
        """Renew the locks of everything in hand: a poll sends that, and returns the records again."""
        if what != (self.incarnation, self._renewal) or self.core is None:
            return
        if self.later(self._renew, what, self.user_lane):
            return
        held = [key for key, job in self.jobs.items() if not job.is_renewing]
        if self.stopping or self.core.polling or not held:
            return
        for key in held:
            self.jobs[key].is_renewing = True
            self.step(RecordAcknowledged(key, *key, int(AcknowledgeType.RENEW)))
        self.step(Polled(self.user_code.poll_ms))

    def _renewed(self, key: RecordKey, job: Job) -> None:
        """A record has a new lock."""
        job.is_renewing = False
        if job.verdict is not None:
            self._decide(key, job.verdict)

    def _not_renewed(self, partition: TopicPartition, offsets: tuple[int, ...]) -> None:
        """Acknowledgements have failed. Records that were to be renewed are lost to this consumer."""
        for offset in offsets:
            key = RecordKey(partition.topic, partition.partition, offset)
            job = self.jobs.get(key)
            if job is not None and job.is_renewing:
                del self.jobs[key]
