"""What a driver must know to skip the time in which a consumer does nothing new.

A member is quiet while it polls without a result, heartbeats and refreshes its metadata, and all of that goes well. A
driver that knows the answers need not play these exchanges: it remembers the :class:`Quiescence`, skips them, and hands
the new instants back with ``ConsumerCore.resume_after_idle``.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.inputs import Millis


@dataclass(frozen=True, slots=True)
class Quiescence:
    """A quiet member: stable, with a position in every partition, in a poll, and with no request in flight.

    Every other input than ``Elapsed`` ends it. Until then the consumer's instants are these: the session and the poll
    interval restart with each heartbeat answer and each poll.
    """

    coordinator: Endpoint
    heartbeat_at: Millis
    """When the next heartbeat is sent; each follows the last by ``heartbeat.interval.ms``."""
    poll_returns_at: Millis
    metadata_refreshed_at: Millis
    """When the last Metadata answer came; the next request follows after ``metadata.max.age.ms``."""
    session_expires_at: Millis
    poll_expires_at: Millis
