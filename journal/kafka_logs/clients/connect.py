"""Workers of Kafka Connect: what they log of their group beside the lines of :mod:`.java`'s coordinator.

A worker is a member whose partitions are connectors and tasks. Texts are those of DistributedHerder and
WorkerCoordinator from 2.3 (KIP-415) on.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import Template


def _line(kind: str, text: str, variant: str = "") -> Template:
    return Template(kind, text, variant=variant)


CONNECT_LINES: Final[tuple[Template, ...]] = (
    _line(
        "rejoin_requested",
        "{reason?}~ ?~Forcing rebalance.",
        "config-offset",
    ),
    _line("remark", "Rebalance started", "started"),
    _line("remark", "Joined group ~(?:at generation .*|and got assignment: .*)~", "joined"),
    _line("remark", "Catching up to assignment's config offset.", "behind"),
    _line("remark", "Current config state offset {was?} is behind group assignment {now?}, {rest}", "behind-by"),
    _line("remark", "Finished reading to end of log and updated config snapshot, {rest}", "read"),
    _line("join_failed", "{problem?}~(?<=quickly enough)~", "config-log"),
    _line(
        "coordinator_lost",
        "Broker coordinator was unreachable for {waited_ms}ms. Revoking previous assignment {rest}",
        "unreachable",
    ),
    _line("remark", "~(?:Starting connectors and tasks|Finished starting connectors and tasks).*~", "tasks"),
    _line("remark", "~(?:Stopping|Finished stopping) (?:connectors|tasks).*~", "stopping"),
)
"""In the order in which a reader tries them, before the lines of Java's coordinator."""

SMALLRYE_LINES: Final[tuple[Template, ...]] = (
    _line("rejoin_requested", "SRMSG~\\d+~: Executing consumer ~\\w+~ re-balance listener for group '{group_id}'"),
    _line(
        "remark",
        "SRMSG~\\d+~: Unable to execute consumer ~\\w+~ re-balance listener for group '{group_id?}'~.*~",
        "listener",
    ),
)
"""SmallRye's reactive messaging, whose line is all of a rebalance that many Quarkus applications log."""
