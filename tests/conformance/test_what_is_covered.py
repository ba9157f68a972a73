"""Every version that both sides speak has been sent to a real broker, and every error has been brought about."""

from __future__ import annotations

from typing import Final

from conformance.replay.known_differences import GIVEN_UP
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import APIS, BY_NAME, Api
from tests.conformance.golden import broker_versions, named, recordings
from tests.conformance.transactions.recorded_scripts import read_script, scripts

NOT_RECORDED: Final = {
    **{("DescribeLogDirs", version): "directories have their own names and sizes" for version in range(1, 6)},
    ("ApiVersions", 5): "like version 4 but for what it says of the broker; read in the broker's code",
    **{("SaslHandshake", version): "in tests/golden/security" for version in range(2)},
    **{("SaslAuthenticate", version): "in tests/golden/security" for version in range(3)},
    ("OffsetCommit", 10): "in tests/golden/consumer-groups",
    ("OffsetFetch", 10): "the same",
    ("ConsumerGroupHeartbeat", 0): "the same",
    ("ConsumerGroupDescribe", 0): "the same",
}
"""Versions that both speak and no recording has, and why they may be like what is known."""

CANNOT_BE_BROUGHT: Final = {
    ErrorCode.REQUEST_TIMED_OUT: "internal; seen as COORDINATOR_NOT_AVAILABLE",
    ErrorCode.NETWORK_EXCEPTION: "a client's own",
    ErrorCode.NOT_ENOUGH_REPLICAS: "internal; seen as COORDINATOR_NOT_AVAILABLE",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "of the old coordinator",
    ErrorCode.KAFKA_STORAGE_ERROR: "internal; seen as NOT_COORDINATOR",
}
"""Errors of the specification that no recording has, and why."""

GROUP_CODES: Final = {
    -1,
    0,
    3,
    7,
    12,
    13,
    14,
    15,
    16,
    19,
    22,
    23,
    24,
    25,
    26,
    27,
    28,
    29,
    30,
    35,
    42,
    53,
    56,
    68,
    69,
    79,
}
MORE_GROUP_CODES: Final = {81, 82, 86, 88}
TOPIC_CODES: Final = {17, 36, 37, 38, 39, 100}
SPECIFIED: Final = {ErrorCode(code) for code in GROUP_CODES | MORE_GROUP_CODES | TOPIC_CODES}


def offered(api: Api) -> list[int]:
    return list(range(api.min_version, api.max_version + 1))


def test_every_version_that_both_speak_was_sent_and_answered() -> None:
    sent = {
        (asked.api, asked.version)
        for played in recordings()
        for asked in played.exchanges
        if asked.answer is not None and isinstance(asked.answer.body, dict)
    }
    sent |= {(step.api, step.version) for _, lines in scripts() for step in read_script(lines).steps}
    wanted = {(api.name, version) for api in APIS for version in offered(api) if version in broker_versions()[api.name]}
    assert wanted - sent == NOT_RECORDED.keys()


def test_versions_that_only_one_side_speaks_are_known() -> None:
    spoken = broker_versions()
    given_up = {api.name: tuple(each for each in offered(api) if each not in spoken[api.name]) for api in APIS}
    assert {name: versions for name, versions in given_up.items() if versions} == GIVEN_UP
    assert all(version <= api.max_version for api in APIS for version in spoken[api.name]), "none is newer than ours"


def test_versions_that_were_given_up_were_tried() -> None:
    tried = {(asked.api, asked.version) for asked in named("plain/bad-requests/versions-that-were-given-up").exchanges}
    assert tried == {(name, version) for name, versions in GIVEN_UP.items() for version in versions}


def test_every_error_that_a_broker_can_be_brought_to_return_was_returned() -> None:
    seen = {
        ErrorCode(code)
        for played in recordings()
        for asked in played.exchanges
        if asked.answer is not None and asked.api in BY_NAME
        for code in codes_in(asked.answer.body)
        if code in set(ErrorCode)
    }
    assert seen & set(CANNOT_BE_BROUGHT) == set()
    assert seen | set(CANNOT_BE_BROUGHT) >= SPECIFIED


def codes_in(body: object) -> list[int]:
    """Every error code of an answer."""
    if isinstance(body, dict):
        own = [body["errorCode"]] if "errorCode" in body else []
        return own + [code for item in body.values() for code in codes_in(item)]
    return [code for item in body for code in codes_in(item)] if isinstance(body, list) else []
