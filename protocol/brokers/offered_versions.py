"""Which versions of which APIs a node offers: those that are served, and of them those that a release of Kafka had."""

from __future__ import annotations

from typing import Final

from rejoin.protocol.brokers.releases import RELEASES, newest_versions, oldest_versions
from rejoin.protocol.registry import APIS, TELEMETRY

ADVERTISED_FROM: Final = {0: 0}
"""Produce is advertised from version 0 on, though older ones than 3 end the connection: librdkafka of before 2025 stops
compressing where it is not. Kafka does the same (KAFKA-18659)."""


def offered(release: str = "", *, with_telemetry: bool = False) -> dict[int, tuple[int, int]]:
    """The first and the last version of each API that is listed, by key; with a release, those of them that it has.

    Without one, the first versions are those of the newest release. Metrics of clients are taken ``with_telemetry``.
    """
    oldest = oldest_versions(release or RELEASES[-1])
    newest = newest_versions(release) if release else None
    found: dict[int, tuple[int, int]] = {}
    for api in sorted((*APIS, *TELEMETRY), key=lambda each: each.key) if with_telemetry else APIS:
        first = max(api.min_version, oldest.get(api.key, 0))
        last = api.max_version if newest is None else min(api.max_version, newest.get(api.key, -1))
        if last >= first:
            found[api.key] = (first, last)
    return found


def served(release: str = "") -> dict[int, tuple[int, int]]:
    """As :func:`offered`, of each API that is answered: a broker without a receiver of clients' metrics answers those
    about telemetry, too, and does not list them.
    """
    return offered(release, with_telemetry=True)
