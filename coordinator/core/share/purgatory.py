"""ShareFetches that wait: for bytes, for share-partitions that are loaded, for records that others give back.

Kafka: DelayedShareFetch in its purgatory.
"""

from __future__ import annotations

from collections.abc import Callable

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share.fetch_under_way import Fetched, ShareFetchUnderWay
from rejoin.coordinator.core.share.led_partitions import LedSharePartition, LedSharePartitions
from rejoin.coordinator.core.share.reading import (
    Acquirable,
    acquirable,
    acquirable_of,
    is_enough,
    looked_at,
    read_all,
    remember,
)
from rejoin.coordinator.core.share.timers import NO_OWNER, ShareTimer
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.share_partitions import SharePartitionKey


class SharePurgatory:
    """All ShareFetches that wait. ``on_read`` is called when one has read."""

    def __init__(
        self,
        ctx: StepContext,
        logs: ReadableLogs,
        led: LedSharePartitions,
        on_read: Callable[[ShareFetchUnderWay], None],
    ) -> None:
        self._ctx = ctx
        self._logs = logs
        self._led = led
        self._on_read = on_read
        self._by_timer: dict[TimerKey, ShareFetchUnderWay] = {}
        self._by_key: dict[SharePartitionKey, dict[TimerKey, ShareFetchUnderWay]] = {}
        self._last_number = 0
        led.on_wake = self._wake
        led.on_failed = self._failed

    def parked_tokens(self) -> list[Token]:
        """The token of every ShareFetch that waits."""
        return [fetch.token for fetch in self._by_timer.values()]

    def read(self, fetch: ShareFetchUnderWay) -> None:
        """Read now if there is enough to read, or else later."""
        if self._is_complete(fetch) or fetch.request.max_wait_ms <= 0:
            self._end(fetch)
        else:
            self._park(fetch)

    def _is_complete(self, fetch: ShareFetchUnderWay) -> bool:
        """Look at the partitions; read them where that is enough."""
        if all(shared in fetch.fetched for shared in fetch.partitions):
            return True
        candidates = acquirable(fetch, self._logs)
        if not candidates:
            return False
        ordered = looked_at(candidates)
        if not is_enough(candidates, fetch.request, self._max_bytes(fetch)):
            return False
        self._read(fetch, ordered)
        return True

    def _max_bytes(self, fetch: ShareFetchUnderWay) -> int:
        return min(fetch.request.max_bytes, self._ctx.settings.fetch_max_bytes)

    def _read(self, fetch: ShareFetchUnderWay, candidates: list[Acquirable]) -> None:
        fetch.has_read = True
        read_all(fetch, candidates, self._max_bytes(fetch), self._ctx.now)
        for each in candidates:
            self._led.carry_out(each.led)

    # --- waiting

    def _park(self, fetch: ShareFetchUnderWay) -> None:
        self._last_number += 1
        fetch.timer = TimerKey(ShareTimer.FETCH, NO_OWNER, name=f"{self._last_number:012}")
        self._by_timer[fetch.timer] = fetch
        for led in fetch.led.values():
            self._by_key.setdefault(led.key, {})[fetch.timer] = fetch
        self._ctx.deadlines.set(fetch.timer, self._ctx.now + fetch.request.max_wait_ms)

    def _take_out(self, fetch: ShareFetchUnderWay) -> None:
        timer = fetch.timer
        if timer is None or self._by_timer.pop(timer, None) is None:
            return
        self._ctx.deadlines.cancel(timer)
        for key in [SharePartitionKey(fetch.group_id, *shared) for shared in fetch.partitions]:
            here = self._by_key.get(key)
            if here is not None:
                here.pop(timer, None)
                if not here:
                    del self._by_key[key]

    def timer_fired(self, timer: TimerKey) -> None:
        """A fetch has waited long enough."""
        fetch = self._by_timer.get(timer)
        if fetch is not None:
            self._end(fetch)

    def _end(self, fetch: ShareFetchUnderWay) -> None:
        """Read what there is, where that is not done, and answer; others may go on with the same partitions."""
        self._take_out(fetch)
        if not fetch.has_read and not all(shared in fetch.fetched for shared in fetch.partitions):
            candidates = acquirable(fetch, self._logs)
            remember(candidates)
            self._read(fetch, candidates)
        took_part = [fetch.led[shared] for shared in fetch.fetched if shared in fetch.led]
        self._on_read(fetch)
        for led in took_part:
            self._wake(led)

    def _wake(self, led: LedSharePartition) -> None:
        """Look again at the fetches that wait for a share-partition."""
        waiting = self._by_key.get(led.key)
        if not waiting:
            return
        # Many may wait for one share-partition that is read to its end: these are not looked at one by one.
        gives = self._gives_records(led)
        for timer, fetch in list(waiting.items()):
            if (gives or fetch.request.min_bytes <= 0) and timer in self._by_timer and self._is_complete(fetch):
                self._end(fetch)
                gives = self._gives_records(led)

    def _gives_records(self, led: LedSharePartition) -> bool:
        """Whether a share-partition has something to read; where it is read to its end, that is remembered."""
        found = acquirable_of(led, self._logs)
        if found is None:
            return False
        if found.is_out_of_range or found.offset < found.limit:
            return True
        remember([found])
        return False

    def _failed(self, led: LedSharePartition, error: ErrorCode) -> None:
        """A share-partition is out of memory: fetches that wait for it get the error."""
        for timer, fetch in list(self._by_key.get(led.key, {}).items()):
            if timer not in self._by_timer or fetch.led.get(led.shared) is not led:
                continue
            fetch.led.pop(led.shared, None)
            fetch.fetched[led.shared] = Fetched(error)
            if self._is_complete(fetch):
                self._end(fetch)
