"""The oldest and the newest version of each API in Kafka's releases, so that a node can offer what such a broker does.

Source: the message definitions of each release, without versions that it marks as unstable.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_CHANGES: Final[dict[str, str]] = {
    "0.11.0": "0=3 1=5 2=2 3=4 8=3 9=3 10=1 11=2 12=1 13=1 14=1 15=1 16=1 17=0 18=1 19=2 20=1 21=0 22=0 23=0 24=0 25=0 "
    "26=0 27=0 28=0 29=0 30=0 31=0 32=0 33=0",
    "1.0": "0=5 1=6 3=5 17=1 34=0 35=0 36=0 37=0",
    "1.1": "1=7 32=1 38=0 39=0 40=0 41=0 42=0",
    "2.0": "0=6 1=8 2=3 3=6 8=4 9=4 10=2 11=3 12=2 13=2 14=2 15=2 16=2 18=2 19=3 20=2 21=1 22=1 23=1 24=1 25=1 26=1 "
    "28=1 29=1 30=1 31=1 32=2 33=1 34=1 35=1 37=1 38=1 39=1 40=1 41=1 42=1",
    "2.1": "0=7 1=10 2=4 3=7 8=6 9=5 20=3 23=2 28=2",
    "2.2": "2=5 11=4 36=1 43=0",
    "2.3": "1=11 3=8 8=7 11=5 12=3 14=3 15=3 23=3 44=0",
    "2.4": "0=8 3=9 8=8 9=6 10=3 11=6 12=4 13=4 14=4 15=5 16=3 18=3 19=5 20=4 22=2 38=2 42=2 43=2 44=1 45=0 46=0 47=0",
    "2.5": "9=7 11=7 14=5 22=3 28=3 29=2 30=2 31=2 36=2 37=2 39=2 40=2 41=2",
    "2.6": "16=4 21=2 32=3 35=2 48=0 49=0",
    "2.7": "1=12 19=6 20=5 22=4 24=2 25=2 26=2 37=3 50=0 51=0 57=0",
    "2.8": "0=9 2=6 3=11 19=7 20=6 23=4 24=3 25=3 26=3 27=1 32=4 33=2 34=2 48=1 49=1 60=0 61=0",
    "3.0": "2=7 9=8 10=4 65=0 66=0",
    "3.1": "1=13 3=12",
    "3.2": "11=9 13=5 35=3",
    "3.3": "29=3 30=3 31=3 35=4 38=3 41=3 55=1 57=1 64=0",
    "3.4": "",
    "3.5": "1=15 2=8",
    "3.6": "24=4",
    "3.7": "0=10 1=16 8=9 9=9 60=1 68=0 71=0 72=0 74=0",
    "3.8": "0=11 10=5 16=5 22=5 24=5 25=4 26=4 28=4 66=1 69=0 75=0",
    "3.9": "1=17 2=9 10=6 18=4 55=2 80=0 81=0",
    "4.0": "0=12 2=10 3=13 15=6 26=5 28=5 57=2 60=2 68=1 69=1",
    "4.1": "0=13 1=18 45=1 66=2 74=1 76=1 77=1 78=1 79=1 83=0 84=0 85=0 86=0 87=0 90=0 91=0 92=0",
    "4.2": "2=11 8=10 9=10 27=2 78=2 79=2 80=1 85=1 87=1 88=0 89=0 90=1",
    "4.3": "35=5",
    "4.4": "18=5 28=6 42=3 88=1 89=1 93=0 94=0",
}
"""By release: API key and newest version, where it is another one than in the release before."""

_GIVEN_UP: Final[dict[str, str]] = {
    "4.0": "0=3 1=4 2=1 8=2 9=1 19=2 20=1 23=2 27=1 29=1 30=1 31=1 32=1 34=1 35=1 38=1 39=1 40=1 41=1",
    "4.1": "76=1 77=1 78=1 79=1",
}
"""By release: API key and oldest version, where it is another one than in the release before (KIP-896).

4.0.0 alone had no JoinGroup 0 and 1; they are back since 4.0.1 (KAFKA-19444).
"""

RELEASES: Final = tuple(_CHANGES)
"""Every release that can be named, oldest first."""

RELEASES_TEXT: Final = "0.11.0, 1.0 or 1.1, 2.0 to 2.8, 3.0 to 3.9, or 4.0 to 4.4"
"""The known releases, in words."""


def has_reached(release: str, since: str) -> bool:
    """Whether a release is this one or a newer one; no release stands for the newest."""
    return not release or RELEASES.index(release) >= RELEASES.index(since)


def has_former_coordinator(release: str) -> bool:
    """Whether groups are those of the coordinator that was replaced in 4.0 (KIP-848). Its rules were seen on 3.9."""
    return not has_reached(release, "4.0")


@cache
def newest_versions(release: str) -> dict[int, int]:
    """The newest version of each API, by key, in a release such as ``2.8``.

    Raises ``ValueError`` for an unknown one.
    """
    return _versions(release, _CHANGES)


@cache
def oldest_versions(release: str) -> dict[int, int]:
    """The oldest version of each API, by key, in a release; an API that it does not name begins with version 0.

    Raises ``ValueError`` for an unknown one.
    """
    return _versions(release, _GIVEN_UP)


def _versions(release: str, changes: dict[str, str]) -> dict[int, int]:
    if release not in _CHANGES:
        raise ValueError(f"there is no release {release!r}: expected {RELEASES_TEXT}")
    found: dict[int, int] = {}
    for each in RELEASES[: RELEASES.index(release) + 1]:
        pairs = (pair.split("=") for pair in changes.get(each, "").split())
        found |= {int(key): int(version) for key, version in pairs}
    return found
