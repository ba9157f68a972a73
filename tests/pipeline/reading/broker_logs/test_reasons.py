"""The reasons of rebalances that a coordinator is known to log, in the form of each version."""

from __future__ import annotations

import pytest

from rejoin.pipeline.reading.broker_logs.reasons import Reason, instance, read_reason, several

REASONS = [
    ("Adding new member m", Reason("join-new", "m", members=("m",))),
    ("Adding new member m with group instanceid None", Reason("join-new", "m", members=("m",))),
    ("Adding new member m with group instanceid Some(i)", Reason("join-new", "m", "i", members=("m",))),
    ("Adding new member m with group instance id Some(i)", Reason("join-new", "m", "i", members=("m",))),
    (
        "Adding new member m with group instance id null; client reason: need to re-join with the given member-id: m",
        Reason("join-new", "m", None, "need to re-join with the given member-id: m", ("m",)),
    ),
    (
        "Adding new member m with group instance id None; client reason: rebalance failed due to 'The group member "
        "needs to "
        "have a valid member id' (MemberIdRequiredException)",
        Reason(
            "join-new",
            "m",
            None,
            "rebalance failed due to 'The group member needs to have a valid member id' (MemberIdRequiredException)",
            ("m",),
        ),
    ),
    ("Updating metadata for member m", Reason("rejoin-metadata", "m", members=("m",))),
    (
        "Updating metadata for member m during Stable; client reason: not provided",
        Reason("rejoin-metadata", "m", members=("m",), state="Stable"),
    ),
    ("leader m re-joining group during Stable", Reason("rejoin-leader", "m", members=("m",), state="Stable")),
    (
        "Leader m re-joining group during Stable; client reason: cached metadata has changed",
        Reason("rejoin-leader", "m", None, "cached metadata has changed", ("m",), "Stable"),
    ),
    (
        "Updating metadata for static member m with instance id Some(i); client reason: x",
        Reason("static-metadata", "m", "i", "x", ("m",)),
    ),
    (
        "Group's selectedProtocol will change because static member m with instance id i joined with change of "
        "protocol; "
        "client reason: not provided",
        Reason("static-protocol", "m", "i", members=("m",)),
    ),
    ("removing member m on LeaveGroup", Reason("leave", "m", members=("m",))),
    (
        "Removing member m on LeaveGroup; client reason: the consumer is being closed",
        Reason("leave", "m", None, "the consumer is being closed", ("m",)),
    ),
    ("explicit `LeaveGroup` request for (m, n) members.", Reason("leave", "m", members=("m", "n"))),
    ("explicit `LeaveGroup` request for () members.", Reason("leave")),
    ("removing member m on heartbeat expiration", Reason("session-expiry", "m", members=("m",))),
    ("removing member m on heartbeat expiration.", Reason("session-expiry", "m", members=("m",))),
    ("Removing Set(m, n) on pending sync request expiration", Reason("sync-expiry", "m", members=("m", "n"))),
    ("Removing [m] on pending sync request expiration", Reason("sync-expiry", "m", members=("m",))),
    (
        "error when storing group assignment during SyncGroup (member: m)",
        Reason("store-failure", "m", members=("m",)),
    ),
    (
        "Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: m)",
        Reason("store-failure", "m", members=("m",), error="NOT_COORDINATOR"),
    ),
    (
        "Error UNKNOWN_SERVER_ERROR when storing group assignmentduring SyncGroup (member: m).",
        Reason("store-failure", "m", members=("m",), error="UNKNOWN_SERVER_ERROR"),
    ),
    (
        "Freshly-loaded group is over capacity (GroupConfig(6000,1800000,5).groupMaxSize). Rebalacing in order to "
        "give a "
        "chance for consumers to commit offsets",
        Reason("over-capacity"),
    ),
    (
        "Freshly-loaded group g (size 3) is over capacity 2. Rebalancing in order to give a chance for consumers to "
        "commit "
        "offsets",
        Reason("over-capacity"),
    ),
    ("Downgrade group g from consumer to classic.", Reason("downgrade")),
    ("something that a later version may say; client reason: x", Reason("unknown", client_reason="x")),
]


@pytest.mark.parametrize(("text", "reason"), REASONS, ids=[text[:50] for text, _ in REASONS])
def test_each_reason_of_each_version_is_read(text: str, reason: Reason) -> None:
    assert read_reason(text) == reason


def test_what_either_language_prints_is_the_same() -> None:
    assert [instance(text) for text in ("None", "null", "Some(i)", "i", "Optional[i]", "Optional.empty")] == [
        None,
        None,
        "i",
        "i",
        "i",
        None,
    ]
    assert several("Set(a, b)") == several("HashSet(a, b)") == several("[a, b]") == ("a", "b")
    assert several("Set()") == several("[]") == ()
