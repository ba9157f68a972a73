"""The recorded release of Kafka that a broker resembles most, by the newest version of each API that it speaks."""

from __future__ import annotations

from collections.abc import Mapping

from rejoin.conform.recordings.by_release import RELEASES, branch_of
from rejoin.protocol.brokers.releases import newest_versions


def nearest_release(spoken: Mapping[int, tuple[int, int]]) -> str:
    """The release with the fewest APIs whose newest version is another one; of several, the newest.

    Only APIs that the broker speaks count: an emulator may have but a few.
    """

    def unlike(release: str) -> int:
        known = newest_versions(branch_of(release))
        return sum(known.get(key, -1) != newest for key, (_, newest) in spoken.items())

    return min(reversed(RELEASES), key=unlike)
