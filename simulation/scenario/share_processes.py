"""The processes of share groups as their scenario wants them: settings, the handler, and the topics that they share."""

from __future__ import annotations

from rejoin.client.share_config import ShareConsumerConfig
from rejoin.simulation.actors.share.consumer import ShareCode
from rejoin.simulation.actors.share.topics import SharedTopics
from rejoin.simulation.scenario.model import GroupSpec, Scenario
from rejoin.simulation.scenario.share_groups import ShareSpec, dead_letter_topics, share_groups


def share_config_of(group_id: str, group: GroupSpec, name: str) -> ShareConsumerConfig:
    """The settings of one consumer of a share group."""
    share = group.share or ShareSpec()
    return ShareConsumerConfig(
        group_id=group_id,
        client_id=name,
        fetch_max_wait_ms=group.fetch_max_wait,
        max_poll_interval_ms=group.max_poll_interval,
        max_poll_records=group.max_poll_records,
        metadata_max_age_ms=group.metadata_max_age,
        request_timeout_ms=group.request_timeout,
        share_acknowledgement_mode=share.acknowledge,
        share_acquire_mode=share.acquire,
    )


def share_code_of(group: GroupSpec) -> ShareCode:
    """The handler of a share group's consumers."""
    share = group.share or ShareSpec()
    return ShareCode(
        commits=group.commit == "after",
        releases=share.release,
        rejects=share.reject,
        renew_ms=share.renew,
        on_poison=share.on_poison,
    )


def shared_topics(scenario: Scenario) -> SharedTopics:
    """The topics of all share groups."""
    groups = share_groups(scenario)
    grown = [event.grow for event in scenario.events if event.grow is not None]
    subscribed = [event.subscribe for event in scenario.events if event.subscribe is not None]
    partitions: dict[str, dict[str, int]] = {}
    for name, group in groups.items():
        topics = dict.fromkeys([*group.topics, *(topic for each in subscribed for topic in each.topics)])
        partitions[name] = {
            topic: max([scenario.topics[topic].partitions, *(grow.to for grow in grown if grow.topic == topic)])
            for topic in topics
        }
    shared = {topic for each in partitions.values() for topic in each}
    return SharedTopics(
        partitions, frozenset(shared - set(scenario.written_topics)), frozenset(dead_letter_topics(scenario))
    )
