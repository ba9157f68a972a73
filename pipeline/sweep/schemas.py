"""The table of a sweep: one row for each simulation."""

from __future__ import annotations

from typing import Final

from rejoin.pipeline.columns import DOUBLE, INT, LONG, STRING, column, map_of, table

SWEEP_RUNS: Final = table(
    column("run_id", STRING, "The run; the events of it, if kept, have the same."),
    column("scenario", STRING, "Name of the scenario."),
    column("variant", INT, "Number of the point in the grid, from 0."),
    column("parameters", map_of(STRING), "What was varied, by name as the grid has it."),
    column("seed", LONG, "The seed."),
    column("status", STRING, "done | failed."),
    column("error", STRING, "What a failed run said."),
    column("code", STRING, "Version of the program."),
    column("horizon_ms", LONG, "Simulated time."),
    column("rebalances", LONG, "How often a join phase began, all groups."),
    column("causes", map_of(LONG), "The same by cause."),
    column("completed", LONG, "Rebalances that led to Stable."),
    column("rebalancing_ms", LONG, "Sum of their lengths."),
    column("longest_rebalance_ms", LONG, "The longest."),
    column("removed", LONG, "Members that were removed."),
    column("moved", LONG, "Partitions moved."),
    column("stopped_ms", LONG, "Consumers that stood still, summed up."),
    column("unowned_ms", LONG, "Partitions without an owner, summed up."),
    column("worst_unowned_ms", LONG, "The longest that one had none."),
    column("processed", LONG, "Records processed."),
    column("late", LONG, "Of them, late."),
    column("twice", LONG, "Records processed again."),
    column("lost", LONG, "Records that were never processed."),
    column("behind", LONG, "Records still to come at the end."),
    column("took_ms", DOUBLE, "Real time of the run."),
    column("executor", STRING, "Where it ran: executor id and process id."),
)
"""One row for each simulation of a sweep."""
