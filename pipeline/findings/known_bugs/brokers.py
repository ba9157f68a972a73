"""Known bugs of Kafka's brokers. Versions are those of the tags that have the fix in Kafka's repository."""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.bug_signs import BROKER
from rejoin.pipeline.findings.known_bugs.bug import JIRA, KnownBug
from rejoin.pipeline.findings.known_bugs.happenings import (
    fences_the_newer_member,
    throws_out_all,
    waits_for_a_lost_member,
    waits_for_the_assignment,
)

BROKER_BUGS: Final[tuple[KnownBug, ...]] = (
    KnownBug(
        "KAFKA-8653",
        BROKER,
        "a join throws all other members out",
        since="2.3.0",
        fixed=("2.3.1", "2.4.0"),
        sign=throws_out_all,
        shows="a new member joined, and the join phase ended at once although other members had yet to join",
        does="JoinGroup of version 0 has no rebalance timeout, and these brokers take none for 0 ms: a member "
        "that has not joined in that instant is thrown out, joins as a new member, and throws out the others",
        cure="Clients that send JoinGroup 1 or later (Kafka 0.10.1) are not affected.",
        link=f"{JIRA}8653",
    ),
    KnownBug(
        "KAFKA-12890",
        BROKER,
        "the group stays in CompletingRebalance",
        since="",
        fixed=("2.8.1", "3.0.0"),
        sign=waits_for_the_assignment,
        shows="all members had joined, and no assignment had come when the longest rebalance timeout was over",
        does="a member that joined and never sends SyncGroup is not removed as long as it sends heartbeats, and the "
        "group waits for it",
        cure="Until then, restart the members, the leader first.",
        link=f"{JIRA}12890",
    ),
    KnownBug(
        "KAFKA-9752",
        BROKER,
        "the group stays in PreparingRebalance after a new member was lost",
        since="2.1.1",
        fixed=("2.5.0",),
        sign=waits_for_a_lost_member,
        shows="a member was removed while the group waited for joins, and the join phase did not end when every "
        "timeout was over",
        does="a new member that is lost before the rebalance ends leaves the join phase waiting",
        cure="Until then, restart the members.",
        link=f"{JIRA}9752",
    ),
    KnownBug(
        "KAFKA-10284",
        BROKER,
        "a static member that had restarted is fenced after a failover",
        since="2.3.0",
        fixed=("2.6.1", "2.7.0"),
        sign=fences_the_newer_member,
        shows="the coordinator fenced the newer member id of a static member, and named the older one as the current",
        does="the new id of a static member that restarts is not written to __consumer_offsets, so the next "
        "coordinator knows only the old one",
        cure="A fenced member has to be started again.",
        link=f"{JIRA}10284",
    ),
    KnownBug(
        "KAFKA-14422",
        BROKER,
        "a static member and a leader of an old client do not fit together",
        since="2.3.0",
        fixed=("3.3.2", "3.4.0"),
        sign="instance-id-not-written",
        shows="the answer to a JoinGroup could not be written, as it has a group.instance.id",
        does="a leader whose client sends JoinGroup below version 5 gets no answer once the group has a static member, "
        "and the group stays in a rebalance",
        cure="Until then, use group.instance.id only when all members have a client of Kafka 2.3 or later.",
        setting="group.instance.id",
        link=f"{JIRA}14422",
    ),
    KnownBug(
        "KAFKA-8896",
        BROKER,
        "heartbeats of a group that has moved end in an error",
        since="2.2.0",
        fixed=("2.2.2", "2.3.1", "2.4.0"),
        sign="heartbeat-of-unknown-member",
        shows="a request failed with NoSuchElementException, as its group does not have the member of a heartbeat",
        does="a delayed heartbeat is looked at after its group was unloaded; members get an unknown error and rejoin",
        link=f"{JIRA}8896",
    ),
    KnownBug(
        "KAFKA-15653",
        BROKER,
        "compressed batches of transactions fail",
        since="3.6.0",
        fixed=("3.6.1", "3.7.0"),
        sign="buffer-of-another-thread",
        shows="a batch could not be read, as its buffer was that of another thread",
        does="appends of transactions with compression fail with unknown errors, and with them applications that "
        "process exactly once, which then rebalance",
        cure="Until then, set transaction.partition.verification.enable to false on the brokers.",
        setting="transaction.partition.verification.enable",
        link=f"{JIRA}15653",
    ),
)
