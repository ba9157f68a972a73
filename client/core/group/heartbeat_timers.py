"""The three clocks of a member: when to send a heartbeat, when the session is over, when the user polled too late.

Kafka runs them in a thread beside the user's; here they are three instants, looked at whenever anything happens.

Source: Kafka's Heartbeat.
"""

from __future__ import annotations

from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.step_context import StepContext


def enable(state: ConsumerState, ctx: StepContext) -> None:
    """Start sending heartbeats: all three clocks begin anew."""
    state.heartbeat.enabled = True
    sent(state, ctx)
    restart_session(state, ctx)
    polled(state, ctx)


def polled(state: ConsumerState, ctx: StepContext) -> None:
    state.heartbeat.poll_expires_at = ctx.now + ctx.config.max_poll_interval_ms


def restart_session(state: ConsumerState, ctx: StepContext) -> None:
    state.heartbeat.session_expires_at = ctx.now + ctx.config.session_timeout_ms


def sent(state: ConsumerState, ctx: StepContext) -> None:
    # Kafka: the interval counts from sending, and a heartbeat still in flight does not hold back the next:
    # Heartbeat.hasInflight is asked by Kafka's tests alone.
    state.heartbeat.due_at = ctx.now + ctx.config.heartbeat_interval_ms


def answered(state: ConsumerState, ctx: StepContext) -> None:
    state.heartbeat.attempts = 0
    restart_session(state, ctx)


def failed(state: ConsumerState, ctx: StepContext) -> None:
    heartbeat = state.heartbeat
    heartbeat.due_at = ctx.now + ctx.backoff(heartbeat.attempts)
    heartbeat.attempts += 1
