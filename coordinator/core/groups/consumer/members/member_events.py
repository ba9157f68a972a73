"""Events of members that join, rejoin or change their subscription; ``removal.py`` has those of members that leave."""

from __future__ import annotations

from rejoin.coordinator.core.groups.classic.group import CLASSIC
from rejoin.coordinator.core.groups.consumer.members.subscribing import NEW_MEMBER, Before
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMemberMetadata
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER
from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import MemberJoined, MemberRejoined, StaticMemberReplaced


def coming(
    group: ConsumerGroup,
    member_id: str,
    before: Before,
    after: ConsumerMemberMetadata,
    *,
    state: str,
    session_timeout_ms: Millis,
    rejoins: bool,
    reason: str | None,
) -> list[Event]:
    """Events of a member's request: the member is new, rejoins, or changes its subscription.

    ``state`` is the group's before the request. The assignors of a modern member are the one that it asks for.
    """
    topics = sorted(group.subscriptions.topics_of(after))
    if after.classic is None:
        protocols = [] if after.server_assignor is None else [after.server_assignor]
    else:
        protocols = [protocol.name for protocol in after.classic.protocols]
        session_timeout_ms = after.classic.session_timeout_ms
    if before is NEW_MEMBER:
        joined = MemberJoined(
            group_id=group.group_id,
            member_id=member_id,
            group_instance_id=after.instance_id,
            client_id=after.client_id,
            client_host=after.client_host,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=after.rebalance_timeout_ms,
            protocols=protocols,
            topics=topics,
            state=state,
            client_reason=reason,
            member_type=CONSUMER if after.classic is None else CLASSIC,
        )
        return [joined]
    changed = _wishes(before[0]) != _wishes(after)
    if not changed and not rejoins:
        return []
    rejoined = MemberRejoined(
        group_id=group.group_id,
        member_id=member_id,
        group_instance_id=after.instance_id,
        protocols=protocols,
        topics=topics,
        state=state,
        changed=changed,
        client_reason=reason,
        member_type=CONSUMER if after.classic is None else CLASSIC,
    )
    return [rejoined]


def complete_replacement(events: list[Event], after: ConsumerMemberMetadata, session_timeout_ms: Millis) -> bool:
    """Whether a static member is replaced; the event of it gets the session timeout of the new one."""
    for index, event in enumerate(events):
        if isinstance(event, StaticMemberReplaced):
            own = session_timeout_ms if after.classic is None else after.classic.session_timeout_ms
            events[index] = event.model_copy(update={"session_timeout_ms": own})
            return True
    return False


def _wishes(metadata: ConsumerMemberMetadata) -> tuple[object, ...]:
    """The part of a member that the group's assignment depends on, and the protocol that the member speaks."""
    return metadata.topic_names, metadata.topic_regex, metadata.server_assignor, metadata.classic is None
