"""Poll: join the group where that is needed, find positions, hand out records.

Source: Kafka's ClassicKafkaConsumer.poll and ConsumerCoordinator.poll.
"""

from __future__ import annotations

from rejoin.client.core import metadata
from rejoin.client.core.effects import PollFailed, PollReturned
from rejoin.client.core.errors import IllegalStateError, KafkaError, WakeupError
from rejoin.client.core.fetch import buffer, fetcher, validation
from rejoin.client.core.group import heartbeats, join_attempt, join_loop, lookup
from rejoin.client.core.group.consumer import rounds
from rejoin.client.core.inputs import Polled
from rejoin.client.core.offsets import commits, fetching, positions
from rejoin.client.core.state.consumer import ConsumerState, Poll
from rejoin.client.core.step_context import StepContext
from rejoin.client.core.subscription import SubscriptionType


def begin(state: ConsumerState, ctx: StepContext, what: Polled) -> None:
    if state.poll is not None:
        ctx.emit(PollFailed(IllegalStateError("a poll is running already")))
    elif state.subscription.type is SubscriptionType.NONE:
        ctx.emit(PollFailed(IllegalStateError("not subscribed to any topics or partitions")))
    else:
        most = ctx.config.max_poll_records if what.max_records is None else what.max_records
        state.poll = Poll(ctx.now + max(0, what.timeout_ms), most, what.partitions)


def end(state: ConsumerState, ctx: StepContext, outcome: PollReturned | PollFailed) -> None:
    state.poll = None
    if state.heartbeat.enabled:
        ctx.wake(state.heartbeat.poll_expires_at)
    ctx.emit(outcome)


def advance(state: ConsumerState, ctx: StepContext, poll: Poll) -> None:
    """Go on with the poll that runs as far as possible."""
    now = ctx.now
    try:
        if state.woken:
            state.woken = False
            raise WakeupError("woken")
        blocked = not _update_assignment(state, ctx, poll)
        if state.in_listener:
            return
        if state.closing.begun:
            end(state, ctx, PollReturned())
            return
        if not blocked or now >= poll.until:
            returned = _look_for_records(state, ctx, poll)
            if returned.ranges:
                end(state, ctx, returned)
                return
    except KafkaError as error:
        end(state, ctx, PollFailed(error))
        return
    if now >= poll.until:
        end(state, ctx, PollReturned())
    else:
        ctx.wake(poll.until)


def _look_for_records(state: ConsumerState, ctx: StepContext, poll: Poll) -> PollReturned:
    """Records that can be handed out now. When this returns, the next ones are already requested."""
    if ctx.reads_records:
        returned = PollReturned(*buffer.take(state, ctx, poll.max_records, poll.only))
        fetcher.send_fetches(state, ctx)
        return returned
    ranges = fetching.take(state, ctx, poll.max_records, poll.only)
    fetching.refresh_ends(state, ctx)
    return PollReturned(ranges)


def _update_assignment(state: ConsumerState, ctx: StepContext, poll: Poll) -> bool:
    """False while something is waited for that keeps Kafka's poll from looking at records.

    Raises what poll must raise.
    """
    # Kafka: updateAssignmentMetadataIfNeeded. A join that goes on does not stop records of what is kept.
    metadata.raise_error(state)
    if ctx.config.group_id is not None:
        if state.membership is None:
            join_loop.raise_listener_error(state)
        join_attempt.follow_metadata(state, ctx)
        commits.run_completed(state, ctx)
        if state.membership is not None and state.subscription.automatic:
            rounds.raise_failure(state, ctx)
        elif state.subscription.automatic:
            heartbeats.poll_heartbeat(state, ctx)
            if not lookup.ensure_for_user(state, ctx):
                return False
            if join_attempt.needed(state, ctx):
                if not _pattern_is_fresh(state, ctx, poll):
                    return False
                if not join_loop.advance(state, ctx):
                    return True
        commits.auto_commit_if_due(state, ctx)
        commits.wake_for_auto_commit(state, ctx)
    goes_on = positions.update(state, ctx)
    if ctx.reads_records:
        validation.validate(state, ctx)  # Also of positions that were committed, and have only just been found.
    return goes_on


def _pattern_is_fresh(state: ConsumerState, ctx: StepContext, poll: Poll) -> bool:
    """With a pattern: look at the topics again before joining, so that one new topic costs one rebalance."""
    # Differs: Kafka refreshes whenever poll's loop comes by; here once for each poll and not during a join.
    if state.subscription.type is not SubscriptionType.AUTO_PATTERN or state.join.attempt is not None:
        return True
    if poll.metadata_update == 0:
        poll.metadata_update = -1
        if metadata.may_refresh(state, ctx):
            poll.metadata_update = metadata.request_update(state)
        elif metadata.is_stale(state, ctx):
            poll.metadata_update = metadata.wanted_update(state, ctx)
    if poll.metadata_update > 0 and not metadata.seen(state, poll.metadata_update):
        metadata.ensure_fresh(state, ctx)
        return False
    join_attempt.follow_metadata(state, ctx)
    return True
