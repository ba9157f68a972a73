"""What is offered as each of Kafka's releases."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.brokers.releases import RELEASES, RELEASES_TEXT, newest_versions
from rejoin.protocol.registry import SASL_AUTHENTICATE, SASL_HANDSHAKE


def test_the_newest_release_is_offered_whole() -> None:
    assert offered(RELEASES[-1]) == offered()


@pytest.mark.parametrize(("release", "handshake", "authenticate"), [("1.0", 1, 0), ("2.2", 1, 1), ("2.8", 1, 2)])
def test_clients_of_every_release_can_log_in(release: str, handshake: int, authenticate: int) -> None:
    newest = {key: last for key, (_, last) in offered(release).items()}
    assert (newest[SASL_HANDSHAKE.key], newest[SASL_AUTHENTICATE.key]) == (handshake, authenticate)


def test_nothing_is_taken_back_by_a_later_release() -> None:
    for before, after in pairwise(RELEASES):
        older, newer = newest_versions(before), newest_versions(after)
        assert all(newer[key] >= version for key, version in older.items()), after


def test_a_release_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=re.escape(f"there is no release '5.0': expected {RELEASES_TEXT}")):
        newest_versions("5.0")
    spans = re.findall(r"([\d.]+)(?: (?:to|or) ([\d.]+))?", RELEASES_TEXT.replace("or 4.0", "4.0"))
    assert [end for span in spans for end in span if end] == [
        "0.11.0",
        "1.0",
        "1.1",
        "2.0",
        "2.8",
        "3.0",
        "3.9",
        "4.0",
        "4.4",
    ]
    assert RELEASES[0] == "0.11.0"
    assert RELEASES[-1] == "4.4"
