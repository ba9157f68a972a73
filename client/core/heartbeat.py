"""The three clocks of a member: when to send a heartbeat, when the session is over, when the user polled too late.

Kafka runs them in a thread beside the user's; here they are three instants, looked at whenever anything happens.

Source: Kafka's Heartbeat and AbstractCoordinator.HeartbeatThread.
"""

from __future__ import annotations

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import Millis


class Heartbeat:
    """Instants, and whether they count: ``enabled`` from JoinGroup's answer until the membership ends."""

    __slots__ = ("_config", "attempts", "due_at", "enabled", "failure", "poll_expires_at", "session_expires_at")

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self.enabled = False
        self.failure: KafkaError | None = None
        """Why heartbeats stopped for good; the next poll raises it."""
        self.attempts = 0
        self.due_at: Millis = 0
        self.session_expires_at: Millis = 0
        self.poll_expires_at: Millis = 0

    def enable(self, now: Millis) -> None:
        """Start beating: all three clocks begin anew."""
        self.enabled = True
        self.due_at = now + self._config.heartbeat_interval_ms
        self.restart_session(now)
        self.polled(now)

    def polled(self, now: Millis) -> None:
        self.poll_expires_at = now + self._config.max_poll_interval_ms

    def restart_session(self, now: Millis) -> None:
        self.session_expires_at = now + self._config.session_timeout_ms

    def sent(self, now: Millis) -> None:
        # Kafka: the interval counts from sending, and a heartbeat still in flight does not hold back the next:
        # Heartbeat.hasInflight is asked by Kafka's tests alone.
        self.due_at = now + self._config.heartbeat_interval_ms

    def answered(self, now: Millis) -> None:
        self.attempts = 0
        self.restart_session(now)

    def failed(self, now: Millis, backoff: int) -> None:
        self.attempts += 1
        self.due_at = now + backoff
