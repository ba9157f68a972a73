"""Causes of rebalances in words."""

from __future__ import annotations

from typing import Final

CAUSES: Final = {
    "join-new": "a member joined",
    "rejoin-metadata": "a member rejoined with changed metadata",
    "rejoin-leader": "the leader rejoined",
    "static-metadata": "a static member restarted during a rebalance",
    "static-protocol": "a static member restarted with other assignors",
    "leave": "a member left",
    "session-expiry": "a member's session expired",
    "sync-expiry": "a member sent no SyncGroup in time",
    "store-failure": "the assignment could not be stored",
    "over-capacity": "the group was too large",
    "downgrade": "the last member of the consumer protocol left",
    "upgrade": "the first member of the consumer protocol joined",
    "rebalance-expiry": "a member did not give up its partitions in time",
    "did-not-rejoin": "a member did not rejoin in time",
    "topic-metadata": "the subscribed topics changed",
    "regex-resolved": "a regular expression matches other topics",
    "assignor-changed": "most members ask for another assignor",
    "settings-changed": "settings of the assignment changed",
    "partitions-initialized": "share-partitions were initialised",
    "failover": "another coordinator went on with it",
    "unknown": "cause unknown",
}
"""The text of each cause; ``a member`` or ``a static member`` is replaced by its name where known."""

SHORT_CAUSES: Final = {
    "join-new": "joined",
    "rejoin-metadata": "changed metadata",
    "rejoin-leader": "leader rejoined",
    "static-metadata": "static restart",
    "static-protocol": "other assignors",
    "leave": "left",
    "session-expiry": "session expired",
    "sync-expiry": "no SyncGroup",
    "store-failure": "not stored",
    "over-capacity": "over capacity",
    "downgrade": "downgrade",
    "upgrade": "upgrade",
    "rebalance-expiry": "not given up",
    "did-not-rejoin": "did not rejoin",
    "topic-metadata": "topics changed",
    "regex-resolved": "expression",
    "assignor-changed": "assignor",
    "settings-changed": "settings",
    "partitions-initialized": "initialised",
    "failover": "failover",
    "unknown": "unknown",
}
"""Causes in words short enough for a legend."""

DEFAULT_REASONS: Final = ("need to re-join with the given member-id", "not provided")
"""Prefixes of clients' reasons that carry no information."""


def caused_by(cause: str, who: str | None) -> str:
    """The text of a cause, with the name of the member where it is known."""
    text = CAUSES.get(cause, CAUSES["unknown"])
    if not who:
        return text
    for nameless in ("a static member", "a member"):
        if nameless in text:
            return text.replace(nameless, who, 1)
    return f"{text} ({who})"
