"""Why a rebalance begins, as coordinators print it behind "Preparing to rebalance group", version by version.

Reasons came with Kafka 2.2; what the client says of itself (KIP-800) with 3.2, behind :data:`CLIENT_REASON`.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import JAVA_SINCE, Template, Version

CLIENT_REASON: Final = "; client reason: "
NOT_PROVIDED: Final = "not provided"
CLIENT_REASON_SINCE: Final[Version] = (3, 2)

_SINCE: Final[Version] = (2, 2)

REASONS: Final[tuple[Template, ...]] = (
    Template("join-new", "Adding new member {member?}<2.3-: with group instance<2.5-: >id {instance}>", _SINCE),
    Template("static-metadata", "Updating metadata for static member {member?} with instance id {instance}", (2, 5)),
    Template("rejoin-metadata", "Updating metadata for member {member?}<2.8-: during {state}>", _SINCE),
    Template("rejoin-leader", "<3.0-:Leader|leader> {member} re-joining group during {state}", (2, 8)),
    Template(
        "static-protocol",
        "Group's selectedProtocol will change because static member {member?} with instance id {instance} joined with "
        "change of protocol",
        (2, 6),
    ),
    Template("leave", "<3.0-:Removing|removing> member {member} on LeaveGroup", _SINCE, JAVA_SINCE),
    # Kafka: the coordinator in Java rebalances once for all members of a LeaveGroup, and names them together.
    Template("leave", r"explicit `LeaveGroup` request for ({several}) members~\.?~<4.0-:.>", JAVA_SINCE),
    Template("session-expiry", "removing member {member} on heartbeat expiration<4.0-:.>", _SINCE),
    Template("sync-expiry", "Removing {set} on pending sync request expiration", _SINCE),
    # Kafka: Java's message lacks the space before "during".
    Template(
        "store-failure",
        "<3.0-:Error|error><3.5-: {error}> when storing group assignment<-4.0: >during SyncGroup (member: {member})"
        "<4.0-:.>",
        _SINCE,
    ),
    # Kafka: "Rebalacing" is so spelt there up to 3.1, which prints all of GroupConfig instead of the capacity.
    Template(
        "over-capacity",
        "Freshly-loaded group<4.0-: {group} (size {members})> is over capacity<3.2-: <-4.0:(>{capacity}<-4.0:)>>. "
        "<3.2-:Rebalancing|Rebalacing> in order to give a chance for consumers to commit offsets",
        _SINCE,
    ),
    Template(
        "downgrade",
        "Downgrade group {group?} from consumer to classic<4.2-: for member leaving>"
        "~(?: for static member replacement with different subscription| with stale assignment)?~.",
        JAVA_SINCE,
    ),
)
"""By cause class."""

WITH_CLIENT_REASON: Final = (
    "join-new",
    "rejoin-metadata",
    "rejoin-leader",
    "static-metadata",
    "static-protocol",
    "leave",
)
"""Classes behind which the client's reason stands; not in Java's line for LeaveGroup, which is about several."""

_BEFORE: Final = {
    "static-protocol": "static-metadata",
    "static-metadata": "rejoin-metadata",
    "rejoin-leader": "rejoin-metadata",
}
"""The text of older versions for a class that they do not know."""


def reason_line(cause: str, version: Version) -> Template:
    """The text by which a version reports a cause."""
    for each in REASONS:
        if each.kind == cause and each.is_in(version):
            return each
    return reason_line(_BEFORE[cause], version)
