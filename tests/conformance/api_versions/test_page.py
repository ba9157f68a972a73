"""APIs of a recorded Kafka broker beside those of this one."""

from __future__ import annotations

from conformance.api_versions.page import (
    ONLY_WITH,
    PAGE,
    own_versions,
    page,
    reasons,
    recorded,
    served_unlisted,
    versions_of,
)
from conformance.api_versions.record import ANSWERED, API_VERSIONS, LAST_KEY, STOCK, not_offered
from rejoin.coordinator.service.kafka.other_apis import OTHER_APIS
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import DEFINED


def test_the_page_is_made_from_the_recording() -> None:
    """Otherwise: ``make api-versions``."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_nothing_is_offered_that_kafka_does_not() -> None:
    listed = {pair for kind in (STOCK, *ONLY_WITH) for pair in versions_of(kind).items()}
    assert set(own_versions().items()) <= listed


def test_every_api_of_a_stock_broker_is_offered_or_missing_for_a_reason() -> None:
    assert versions_of(STOCK).keys() - own_versions().keys() <= reasons().keys()


def test_kafka_ends_the_connection_for_every_key_and_version_that_it_does_not_list() -> None:
    """Exceptions: ApiVersions, and requests that need a receiver, which a stock broker serves and does not list."""
    asked = list(not_offered(versions_of(STOCK)))
    answered = dict(recorded()["refused"])
    assert len(asked) == recorded()["closed"] + len(answered)
    assert answered.pop(f"{API_VERSIONS} 6")["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert answered == {f"{key} 0": ANSWERED for key in served_unlisted()}


def test_apis_that_are_not_offered_have_their_names_in_the_log() -> None:
    names = {int(key): name for key, name in recorded()["names"].items() if int(key) not in own_versions()}
    known = OTHER_APIS | {key: api.name for key, api in DEFINED.items()}
    assert {key: known.get(key) for key in names} == names
    assert max(OTHER_APIS) < LAST_KEY
