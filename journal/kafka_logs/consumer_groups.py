"""Log lines of Kafka's Java coordinator about groups of the consumer protocol, both written and read here.

Texts and levels were compared with the classes of 4.0.0, 4.1.0, 4.2.0, 4.3.1 and 4.4.0. What is printed at DEBUG only
is left out: subscriptions, hashes of metadata and assignments of members. A fenced epoch is not logged at all.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import JAVA_SINCE, Template, Version

_GROUP: Final = "GroupId "
_MEMBER: Final = "Member {member?}"
_STATIC: Final = "Static member {member?} with instance id {instance?}"
_JOINS: Final = "joins the {protocol} group using the {member_protocol} protocol."
_LEFT: Final = "has left group through explicit `LeaveGroup` request; client reason: {client_reason}"
_UPGRADE: Final = "Cannot upgrade classic group {group} to consumer group"
_DOWNGRADE: Final = "Cannot downgrade consumer group {group} to classic group because"

EXPIRED: Final = "the member session expired"
NOT_JOINED: Final = "the classic member failed to join within the rebalance timeout"
NOT_SYNCED: Final = "the member failed to sync within timeout"


def _line(kind: str, text: str, variant: str = "", *, bracket: str = _GROUP, since: Version = JAVA_SINCE) -> Template:
    return Template(kind, text, since, bracket=bracket, variant=variant)


CONSUMER_GROUP_LINES: Final[tuple[Template, ...]] = (
    # --- members
    _line("modern_joined", f"{_STATIC} {_JOINS}", "static"),
    _line("modern_joined", f"{_MEMBER} {_JOINS}", "dynamic"),
    _line(
        "modern_replaced",
        "Static member with instance id {instance} re-joins the {protocol} group using the {member_protocol} protocol. "
        "Created a new member {member} to replace the existing member {old}.",
    ),
    _line(
        "modern_id",
        "Dynamic member with unknown member id joins the {protocol} group. Created a new member id {member} and "
        "requesting the member to rejoin with this id.",
    ),
    _line("modern_away", f"{_STATIC} temporarily left the {{protocol}} group."),
    _line("modern_left", f"{_STATIC} left the {{protocol}} group.", "static"),
    _line("modern_left", f"{_MEMBER} left the {{protocol}} group.", "dynamic"),
    _line("left", f"Dynamic member {{member?}} {_LEFT}", "modern-dynamic"),
    _line("left", f"{_STATIC} {_LEFT}", "modern-static"),
    _line(
        "modern_stuck",
        f"{_MEMBER} fenced from the group because it failed to transition from epoch {{epoch}} within {{took_ms}}ms.",
    ),
    # Some builds of 4.0 print a second full stop.
    _line("modern_fenced", f"{_MEMBER} fenced from the group because {{why?}}" r"~\.?~."),
    _line("fenced", f"{_STATIC} is fenced by existing member {{current}}.", "modern"),
    # --- epochs and targets
    _line("modern_bumped", "Bumped group epoch to {epoch}<4.1-: with metadata hash {metadata_hash}>."),
    _line(
        "modern_assigned",
        "Computed a new target assignment for epoch {epoch} with '{assignor?}' assignor in {took_ms}ms.",
    ),
    # --- groups that change their protocol
    _line("converted", "Converted the classic group to a {protocol} group.", "upgrade"),
    _line("converted", "Converted the consumer group to a {protocol} group.", "downgrade"),
    # An empty group may always change its protocol.
    _line("converted_empty", "Converted the empty classic group to a {protocol} group.", "upgrade"),
    _line("converted_empty", "Converted the empty consumer group to a {protocol} group.", "downgrade"),
    _line("converted_empty", "Converted the empty streams group to a {protocol} group.", "streams", since=(4, 2)),
    _line("not_converted", f"{_UPGRADE} because online upgrade is disabled.", "policy", bracket=""),
    _line(
        "not_converted",
        f"{_UPGRADE} because the group does not use the consumer embedded protocol.",
        "protocol-type",
        bracket="",
    ),
    _line(
        "not_converted",
        f"{_UPGRADE} because the group size exceeds the consumer group maximum size.",
        "size",
        bracket="",
    ),
    _line("not_converted", f"{_DOWNGRADE} the online downgrade is disabled.", "downgrade-policy", bracket=""),
    _line(
        "not_converted",
        f"{_DOWNGRADE} its group size is greater than classic group max size.",
        "downgrade-size",
        bracket="",
    ),
    _line(
        "not_converted",
        "Cannot join the consumer group {group} with the classic protocol because the group migration is disabled.",
        "classic-member",
        bracket="",
        since=(4, 3),
    ),
    # --- groups come and go with partitions
    _line("loaded_modern", "Loaded {protocol} group {group} with {members} members.", bracket=""),
    _line("unloading_modern", "Unloaded group metadata for group epoch {epoch}.", bracket="GroupId="),
)
"""In the order in which a reader tries them."""
