"""Topics that clients are refused, and assignments without partitions: each client in the words of its own log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from rejoin.pipeline.reading.client_logs.families import FAMILIES
from rejoin.pipeline.reading.client_logs.statements import NO_GROUP
from rejoin.pipeline.why.sources import open_source
from rejoin.pipeline.why.story import SourceProblem

T: Final = "2025-05-06 07:08:09,"
JAVA: Final = "[Consumer clientId=c-1, groupId=bills]"
SYNCED: Final = f"{T}020 INFO {JAVA} Successfully joined group with generation 3"
PYTHON: Final = f"{T}100 INFO kafka.coordinator - Successfully joined group bills with generation 3"
AIO: Final = f"{T}100 INFO aiokafka.consumer.group_coordinator - Joined group 'bills' (generation 3) with member_id a-1"
KAFKAJS: Final = (
    '{"level":"INFO","timestamp":"2025-05-06T07:08:08.000Z","logger":"kafkajs","message":"[Consumer] Starting",'
    '"groupId":"bills"}'
)
SARAMA: Final = "[sarama] 2025/05/06 07:08:08 client/coordinator requesting coordinator for bills from b:9092"


def response(api: str, error: str) -> str:
    return (
        '{"level":"ERROR","timestamp":"2025-05-06T07:08:09.000Z","logger":"kafkajs","message":"[Connection] Response '
        f'{api}","broker":"b:9092","clientId":"c-1","error":"{error}","correlationId":4,"size":40}}'
    )


UNKNOWN: Final = {
    "java": [SYNCED, f"{T}100 WARN {JAVA} Error while fetching metadata with correlation id 4 : "
             "{bils=UNKNOWN_TOPIC_OR_PARTITION}"],
    "librdkafka": [f"{T}100 ERROR consumer: Subscribed topic not available: bils: Broker: Unknown topic or partition"],
    "kafka-python": [PYTHON, f"{T}200 ERROR kafka.cluster - Topic bils not found in cluster metadata"],
    "aiokafka": [AIO, f"{T}200 ERROR aiokafka.cluster - Topic bils not found in cluster metadata"],
    "kafkajs": [KAFKAJS, response("Metadata(key: 3, version: 6)", "This server does not host this topic-partition")],
    "sarama": [SARAMA, "2025/05/06 07:08:09 Error: kafka: error while consuming bils/0: kafka server: Request was for "
               "a topic or partition that does not exist on this broker"],
    "spring": [f"{T}100 ERROR o.s.boot.SpringApplication - Application run failed",
               "java.lang.IllegalStateException: Topic(s) [bils] is/are not present and missingTopicsFatal is true"],
    "ruby-kafka": [f"{T}100 ERROR -- : (try 3/10): Error for topic subscription #<struct topic=\"bils\">: Subscribed "
                   "topic not available: bils: Broker: Unknown topic or partition (unknown_topic_or_part)"],
    "franz-go": [f"{T}090 [INFO] joining group; group: bills",
                 f"{T}100 [DEBUG] immediate metadata update had inner errors, re-updating; errors: "
                 "UNKNOWN_TOPIC_OR_PARTITION{bils}, update_after: 250ms"],
}  # fmt: skip
SAYS_NONE: Final = ("brod", "smallrye", "streams")
"""Streams speaks of its source topics where it cannot join; the others leave topics to their applications."""
FORBIDDEN: Final = {
    "java": [SYNCED, f"{T}100 ERROR {JAVA} Topic authorization failed for topics [bills-in]"],
    "java-exception": ["07:08:09.100 ERROR [main] app - stopped", "org.apache.kafka.common.errors."
                       "TopicAuthorizationException: Not authorized to access topics: [bills-in]"],
    "librdkafka": [f"{T}100 error: Subscribed topic not available: bills-in: Broker: Topic authorization failed"],
    "kafka-python": [f"{T}100 ERROR Topic bills-in is not authorized for this client"],
    "aiokafka": [AIO, f"{T}200 WARNING aiokafka.consumer.fetcher - Not authorized to read from topic bills-in."],
    "sarama": ["2025/05/06 07:08:09 client is not authorized to access this topic. The topics were:  [bills-in]"],
}  # fmt: skip
NOTHING: Final = {
    "java": [SYNCED, f"{T}100 INFO {JAVA} Notifying assignor about the new Assignment(partitions=[])"],
    "java-2.3": [SYNCED, f"{T}100 INFO {JAVA} Setting newly assigned partitions []"],
    "librdkafka": [f'{T}100 %7|1746515289.100|ASSIGN|c-1#consumer-1| [thrd:main]: Group "bills": new assignment of 0 '
                   "partition(s) in join-state wait-assign-call"],
    "kafka-python": [PYTHON, f"{T}200 INFO kafka.consumer.subscription_state - Updated partition assignment: []"],
    "aiokafka": [AIO, f"{T}200 INFO aiokafka.consumer.group_coordinator - Setting newly assigned partitions set() for "
                 "group bills"],
    "kafkajs": [KAFKAJS, '{"level":"INFO","timestamp":"2025-05-06T07:08:09.000Z","logger":"kafkajs","message":'
                '"[ConsumerGroup] Consumer has joined the group","groupId":"bills","memberId":"c-1-5",'
                '"memberAssignment":{}}'],
    "franz-go": [f"{T}090 [INFO] joined; group: bills, member_id: k, instance_id: <nil>, generation: 3, leader: false",
                 f"{T}100 [INFO] synced; group: bills, assigned: "],
    "brod": ["07:08:09.100 [info] Group member (bills,coor=#PID<0.5.0>,cb=#PID<0.4.0>,generation=3):",
             "assignments received:[]"],
    "ruby-kafka": [f"{T}100 INFO -- : Joined group `bills` with member id `c-1-77`",
                   f"{T}200 INFO -- : There are no partitions to fetch from, sleeping for 1s"],
}  # fmt: skip


MAY_NOT_JOIN: Final = {
    "java": [f"{T}100 ERROR {JAVA} JoinGroup failed due to fatal error: Group authorization failed."],
    "java-heartbeat": [SYNCED, f"{T}100 ERROR {JAVA} A group authorization error occurred in the heartbeat thread"],
    "java-exception": ["07:08:09.100 ERROR [main] app - stopped", "org.apache.kafka.common.errors."
                       "GroupAuthorizationException: Not authorized to access group: bills"],
    "librdkafka": [f"{T}100 error: FindCoordinator response error: Broker: Group authorization failed"],
    "librdkafka-name": [f"{T}100 librdkafka internal error occurred: Broker: Group authorization failed "
                        "(group_authorization_failed)"],
    "kafka-python": [f"{T}100 ERROR kafka.coordinator - Attempt to join group bills failed due to: [Error 30] "
                     "GroupAuthorizationFailedError: bills"],
    "aiokafka": [f"{T}100 ERROR aiokafka.consumer.group_coordinator - Attempt to join group failed due to "
                 "GroupAuthorizationFailedError: [Error 30] GroupAuthorizationFailedError: bills"],
    "kafkajs": [KAFKAJS, response("GroupCoordinator(key: 10, version: 2)",
                                  "Not authorized to access group: Group authorization failed")],
    "franz-go": [f"{T}090 [INFO] joining group; group: bills",
                 f"{T}100 [ERROR] group manage loop errored; group: bills, err: GROUP_AUTHORIZATION_FAILED: Not "
                 "authorized to access group: Group authorization failed., consecutive_errors: 1, backoff: 250ms"],
    "franz-go-poll": [f"{T}100 poll: unable to join group session: GROUP_AUTHORIZATION_FAILED: Not authorized"],
    "sarama": ["[sarama] 2025/05/06 07:08:09 client was not authorized to access group bills while attempting to find "
               "coordinator"],
    "sarama-error": ["2025/05/06 07:08:09 group: kafka server: The client is not authorized to access this group"],
    "brod": ["07:08:09.100 [info] Group member (bills,coor=#PID<0.5.0>,cb=#PID<0.4.0>,generation=0):",
             "failed to join group", "reason: :group_authorization_failed"],
}  # fmt: skip
PROTOCOLS: Final = {
    "java": [f"{T}100 ERROR {JAVA} JoinGroup failed due to fatal error: The group member's supported protocols are "
             "incompatible with those of existing members or first group member tried to join with empty protocol."],
    "librdkafka": [f"{T}100 error: JoinGroup failed: Broker: Inconsistent group protocol"],
    "kafkajs": [KAFKAJS, response("JoinGroup(key: 11, version: 5)", "The group member's supported protocols are "
                                  "incompatible with those of existing members")],
    "sarama": ["2025/05/06 07:08:09 group: kafka server: The provider group protocol type is incompatible with the "
               "other members"],
    "franz-go": [f"{T}090 [INFO] joining group; group: bills", f"{T}100 [WARN] join group failed; group: bills, err: "
                 "INCONSISTENT_GROUP_PROTOCOL: The group member's supported protocols are incompatible"],
    "brod": ["07:08:09.100 [info] Group member (bills,coor=#PID<0.5.0>,cb=#PID<0.4.0>,generation=0):",
             "failed to join group", "reason: :inconsistent_group_protocol"],
}  # fmt: skip


def findings(lines: list[str], tmp_path: Path, group: str = "bills") -> Sequence[dict[str, Any]]:
    log = tmp_path / "consumer.log"
    log.write_text("\n".join(lines) + "\n")
    source = open_source(log)
    try:
        return source.story(group).findings
    except SourceProblem:
        return source.story(NO_GROUP).findings


def test_every_client_is_asked() -> None:
    assert sorted({*UNKNOWN, *SAYS_NONE}) == sorted(FAMILIES)


@pytest.mark.parametrize("client", UNKNOWN)
def test_a_topic_that_is_not_there(client: str, tmp_path: Path) -> None:
    found = findings(UNKNOWN[client], tmp_path)
    assert [each["finding"] for each in found][:1] == ["topic-unavailable"]
    assert "UNKNOWN_TOPIC_OR_PARTITION" in found[0]["text"]
    assert client == "kafkajs" or "bils" in found[0]["title"]


@pytest.mark.parametrize("client", FORBIDDEN)
def test_a_topic_that_may_not_be_read(client: str, tmp_path: Path) -> None:
    (found,) = findings(FORBIDDEN[client], tmp_path)
    assert (found["finding"], found["severity"]) == ("topic-unavailable", "medium")
    assert "bills-in may not be read" in found["title"]


@pytest.mark.parametrize("client", NOTHING)
def test_an_assignment_without_partitions(client: str, tmp_path: Path) -> None:
    found = findings(NOTHING[client], tmp_path)
    assert [each["finding"] for each in found] == ["assigned-nothing"]


@pytest.mark.parametrize("client", MAY_NOT_JOIN)
def test_a_group_that_may_not_be_read(client: str, tmp_path: Path) -> None:
    (found,) = findings(MAY_NOT_JOIN[client], tmp_path)
    assert "could not join" in found["title"]
    assert "READ on the group" in found["advice"]


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_join_with_another_protocol(client: str, tmp_path: Path) -> None:
    (found,) = findings(PROTOCOLS[client], tmp_path)
    assert "could not join" in found["title"]
    assert "assignor in common" in found["advice"]


def test_karafka_logs_its_partitions(tmp_path: Path) -> None:
    log = "INFO -- : [till_1] Group bills rebalance:"
    lines = [f"{T}100 {log} in-[0,1] revoked", f"{T}900 {log} in-[1] assigned", f"{T}901 {log} out-[4] assigned"]
    (found,) = findings(lines, tmp_path)
    assert found["title"] == "The group rebalanced, and till_1 had to join again, once"


def test_a_consumer_that_gets_partitions_later_has_some(tmp_path: Path) -> None:
    later = f"{T}900 INFO {JAVA} Notifying assignor about the new Assignment(partitions=[bils-0])"
    assert findings([*NOTHING["java"], later], tmp_path) == []
    read = f"{T}900 INFO {JAVA} Adding newly assigned partitions: bils-0"
    assert findings([*UNKNOWN["java"], read], tmp_path) == []


def test_a_topic_that_was_just_created_has_no_leader_for_a_moment(tmp_path: Path) -> None:
    line = f"WARN {JAVA} Error while fetching metadata with correlation id 4 : {{bils=LEADER_NOT_AVAILABLE}}"
    assert findings([SYNCED, f"{T}100 {line}"], tmp_path) == []
    often = [f"2025-05-06 07:0{minute}:09,100 {line}" for minute in range(3)]
    assert "bils has no leader" in findings([SYNCED, *often], tmp_path)[0]["title"]
