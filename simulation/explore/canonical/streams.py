"""Parts of applications of Kafka Streams whose times would keep equal states apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.simulation.actors.streams.state_directory import CLEANUP_DELAY_MS, StateDirectory

if TYPE_CHECKING:
    from rejoin.simulation.explore.canonical.form import Writing


def write_directory(value: StateDirectory, writing: Writing) -> None:
    """The state on disk. When a task was closed matters where it has some, and until it is deleted."""
    writing.out.append("StateDirectory")
    longest_ago = writing.now - CLEANUP_DELAY_MS
    closed = {
        task: max(at, longest_ago)
        for task, at in sorted(value.closed_at.items())
        if task in value.positions or task in value.checkpoints
    }
    writing.kept.append(closed)
    writing.write((value.positions, value.checkpoints, closed))
