"""Reasons for changes between releases, as far as they are known: by the releases between which they came."""

from __future__ import annotations

from typing import Final

NOTES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("3.9", "4.0"): (
        "Groups have another coordinator, which came with KIP-848. Groups of the consumer protocol are a preview in "
        "3.9 and have other assignments there.",
    ),
    ("4.0", "4.1"): (
        "A new cluster has its own `min.insync.replicas` (KIP-966).",
        "The first batch of a producer in a transaction must begin with sequence 0 where the partition has no state of "
        "this producer (OUT_OF_ORDER_SEQUENCE_NUMBER otherwise). Before, any sequence was taken.",
        "A partition's leader refuses a fenced producer with INVALID_PRODUCER_EPOCH before it asks the transaction's "
        "coordinator. Before, the coordinator's error came: INVALID_PRODUCER_ID_MAPPING for another producer id.",
    ),
    ("4.1", "4.2"): (
        "A member that is known and sends epoch 0 joins again. Before, it was fenced until its session ended "
        "(KAFKA-19233).",
        "A member that unsubscribes from a topic gives its partitions up at once, and not with its next target "
        "(KAFKA-19431). A member that has revoked partitions and is asked for more keeps its epoch meanwhile; it moved "
        "to the next one before.",
    ),
    ("4.2", "4.3"): (
        "The first epoch of a consumer group is 2, as 1 stands for the empty assignment that members have until the "
        "first one is computed (KAFKA-20268). The table has this first epoch only; further ones are counted from it.",
        "ConsumerGroupDescribe shows partitions that a member still has to revoke as assigned (KAFKA-20431).",
        "A member may commit with an older epoch for partitions that it has owned since then (KIP-1251).",
        "Share groups have the same first epoch, 2. A group may have its own `share.delivery.count.limit`, "
        "`share.partition.max.record.locks` and `share.renew.acknowledge.enable` (KIP-1240); before, "
        "IncrementalAlterConfigs refused them, and what it asked for beside them, so later fetches differ.",
    ),
    ("4.3", "4.4"): (
        "The assignment epoch of a consumer group follows its group epoch when the last member goes (KAFKA-20442). "
        "Before, the empty group was left with two different epochs.",
        "The share coordinator refuses a state epoch or leader epoch below 0. Before, InitializeShareGroupState with "
        "state epoch -1 replaced the state.",
        "Topics and groups have settings of dead letters (KIP-1191): before, a topic with one could not be created.",
    ),
}
