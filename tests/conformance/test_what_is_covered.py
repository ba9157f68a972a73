"""Every version that both sides speak has been sent to a real broker, and every error has been brought about."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import Final

from conformance.cluster.replica_probes import replica_steps
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import sequences
from conformance.security.quota_script import quota_script
from conformance.security.scram_steps import steps as scram_steps
from conformance.security.token_steps import probes as token_probes
from rejoin.conform.player.messages import TABLE
from rejoin.protocol.brokers.offered_versions import ADVERTISED_FROM, offered
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import APIS, BY_KEY, BY_NAME, DEFINED
from tests.conformance.golden import broker_versions, named, recordings
from tests.conformance.transactions.recorded_scripts import read_script, scripts
from tests.paths import ROOT

SHARE_GROUP_KEYS: Final = (*range(76, 80), *range(83, 88), *range(90, 93))
STREAMS_GROUP_KEYS: Final = (88, 89, 93)
NOT_RECORDED: Final = {
    ("ApiVersions", 5): "like version 4 but for what it says of the broker; read in the broker's code",
    **{("SaslHandshake", version): "in tests/golden/security" for version in range(2)},
    **{("SaslAuthenticate", version): "in tests/golden/security" for version in range(3)},
    **{("ListConfigResources", version): "in tests/golden/telemetry" for version in range(2)},
    ("OffsetCommit", 10): "in tests/golden/consumer-groups",
    ("OffsetFetch", 10): "the same",
    ("ConsumerGroupHeartbeat", 0): "the same",
    ("ConsumerGroupDescribe", 0): "the same",
    **{
        (BY_KEY[key].name, version): "in tests/golden/share-groups"
        for key in SHARE_GROUP_KEYS
        for version in range(BY_KEY[key].min_version, BY_KEY[key].max_version + 1)
    },
    **{
        (BY_KEY[key].name, version): "in tests/golden/streams-groups"
        for key in STREAMS_GROUP_KEYS
        for version in range(BY_KEY[key].max_version + 1)
    },
}
"""Versions that both speak and no recording has, and why they may be like what is known."""

NOT_TRIED: Final = {
    ("OffsetForLeaderEpoch", 0),
    ("OffsetForLeaderEpoch", 1),
    ("AlterReplicaLogDirs", 0),
    ("DescribeLogDirs", 0),
    ("DescribeAcls", 0),
    ("CreateAcls", 0),
    ("DeleteAcls", 0),
    ("CreateDelegationToken", 0),
    ("RenewDelegationToken", 0),
    ("ExpireDelegationToken", 0),
    ("DescribeDelegationToken", 0),
}
"""Versions that Kafka 4 has given up as well, by its ApiVersions."""

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


def test_every_version_that_both_speak_was_sent_and_answered() -> None:
    sent = {
        (asked.api, asked.version)
        for played in recordings()
        for asked in played.exchanges
        if asked.answer is not None and isinstance(asked.answer.body, dict)
    }
    sent |= {(step.api, step.version) for _, lines in scripts() for step in read_script(lines).steps}
    sent |= {(probe.api, probe.version) for steps in sequences().values() for _, probe in steps if "Acls" in probe.api}
    sent |= {(each.what.api, each.what.version) for each in scram_steps() if isinstance(each.what, Probe)}
    sent |= {(probe.api, probe.version) for _, probe in (*quota_script(), *replica_steps())}
    sent |= {(probe.api, probe.version) for probe in token_probes()}
    wanted = {
        (BY_KEY[key].name, version) for key, (first, last) in offered().items() for version in range(first, last + 1)
    }
    assert wanted - sent == NOT_RECORDED.keys()


def test_every_api_is_offered_in_the_versions_of_the_recorded_broker() -> None:
    spoken = broker_versions()
    assert {
        BY_KEY[key].name: range(ADVERTISED_FROM.get(key, first), last + 1) for key, (first, last) in offered().items()
    } == {api.name: spoken[api.name] for api in APIS}


def test_versions_that_kafka_4_has_given_up_were_tried() -> None:
    tried = {(asked.api, asked.version) for asked in named("plain/bad-requests/versions-that-were-given-up").exchanges}
    older, newer = offered("3.9"), offered("4.0")
    assert tried | NOT_TRIED == {
        (BY_KEY[key].name, version) for key, (first, _) in older.items() for version in range(first, newer[key][0])
    }


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


_ROW: Final = re.compile(r"^\| (.+?) \|", re.MULTILINE)
_NAMED: Final = re.compile(r"([A-Z]\w+) (\d+)")


def test_coverage_names_every_api_that_is_offered_and_every_other_one_of_kafka() -> None:
    with gzip.open(TABLE, "rt", encoding="utf-8") as lines:
        defined = [json.loads(line) for line in lines]
    kafka = {
        each["apiKey"]: each["name"].removesuffix("Request") for each in defined if each["name"].endswith("Request")
    }
    requests, _, rest = (ROOT / "COVERAGE.md").read_text(encoding="utf-8").partition("\nNot offered, ")
    intro, _, _ = rest.partition("\nThese are the versions of Kafka 4.4")
    done = Counter((int(key), name) for name, key in re.findall(r"^\| (\w+) \| (\d+) \|", requests, re.MULTILINE))
    missing = Counter((int(key), name) for row in _ROW.findall(intro) for name, key in _NAMED.findall(row))
    assert done == Counter((key, DEFINED[key].name) for key in offered(with_telemetry=True))
    assert done + missing == Counter(kafka.items())
    assert not missing or f"the other {len(missing)} of the {len(kafka)} APIs" in intro
