"""Which run events belong to, where a service and its consumers each named one of their own."""

from __future__ import annotations

from collections.abc import Iterable


def run_of_service(runs: Iterable[tuple[str, str]]) -> str | None:
    """The run that consumers belong to, by sources with their runs; none where each keeps its own."""
    runs = [(source, run_id) for source, run_id in runs if source in {"coordinator", "client"}]
    services = {run_id for source, run_id in runs if source == "coordinator"}
    return services.pop() if len(services) == 1 and len({run_id for _, run_id in runs}) > 1 else None
