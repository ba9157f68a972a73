"""Poll: settle the records of the last poll, then hand out records or ask for some.

Source: Kafka's ShareConsumerImpl.poll.
"""

from __future__ import annotations

from rejoin.client.core import metadata
from rejoin.client.core.effects import PollFailed, PollReturned
from rejoin.client.core.errors import IllegalStateError, KafkaError, WakeupError
from rejoin.client.core.group.consumer import rounds, transitions
from rejoin.client.core.inputs import Polled
from rejoin.client.core.share import acknowledging, fetching, records
from rejoin.client.core.share.state import share_of
from rejoin.client.core.state.consumer import ConsumerState, Poll
from rejoin.client.core.step_context import StepContext

UNACKNOWLEDGED = "not all records of the last poll are acknowledged, which share.acknowledgement.mode=explicit demands"


def begin(state: ConsumerState, ctx: StepContext, what: Polled) -> None:
    """In implicit mode, accept the records of the last poll; in explicit mode, refuse while any is undecided."""
    share = share_of(state)
    if state.poll is not None:
        ctx.emit(PollFailed(IllegalStateError("a poll is running already")))
    elif not state.subscription.automatic:
        ctx.emit(PollFailed(IllegalStateError("not subscribed to any topics")))
    elif share.is_explicit and any(each.unacknowledged for each in share.deliveries.values()):
        ctx.emit(PollFailed(IllegalStateError(UNACKNOWLEDGED)))
    else:
        acknowledging.accept_delivered(share)
        acknowledging.collect(share)
        most = ctx.config.max_poll_records if what.max_records is None else what.max_records
        state.poll = Poll(ctx.now + max(0, what.timeout_ms), most, what.partitions)


def end(state: ConsumerState, ctx: StepContext, outcome: PollReturned | PollFailed) -> None:
    """The poll is over."""
    state.poll = None
    ctx.wake(transitions.member_of(state).poll_expires_at)
    ctx.emit(outcome)


def advance(state: ConsumerState, ctx: StepContext, poll: Poll) -> None:
    """Go on with the poll that runs as far as possible."""
    share = share_of(state)
    acknowledging.run_callbacks(share, ctx)
    try:
        if state.woken:
            state.woken = False
            raise WakeupError("woken")
        metadata.raise_error(state)
        rounds.raise_failure(state, ctx)
        waiting = list(share.pending)
        returned = records.take(state, ctx, poll.max_records)
        if returned.ranges:
            # No ShareFetch is due, so what was acknowledged does not wait for one.
            sent = acknowledging.take_pending(share, waiting)
            if sent:
                acknowledging.begin(share, sent, ctx.now + ctx.config.default_api_timeout_ms)
                acknowledging.advance(state, ctx)
            end(state, ctx, returned)
            return
        fetching.send_fetches(state, ctx)
    except KafkaError as error:
        end(state, ctx, PollFailed(error))
        return
    if ctx.now >= poll.until:
        end(state, ctx, PollReturned())
    else:
        ctx.wake(poll.until)
