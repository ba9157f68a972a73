"""Applications of Kafka Streams that leave their tasks to the broker (KIP-1071), on Rejoin and on a real Kafka."""

from __future__ import annotations

from typing import Final

from conformance.clients.programs import HERE
from conformance.clients.step_table import StepTable
from conformance.clients.streams_groups.lives import STEPS

TABLE: Final = StepTable("client-streams-groups", "step", STEPS, HERE / "streams_groups.jsonl")
