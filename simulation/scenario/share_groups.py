"""Keys of share groups (KIP-932), and mistakes in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from rejoin.coordinator.core.groups.share.group_settings import DLQ_TOPIC
from rejoin.simulation.scenario.durations import Duration
from rejoin.simulation.scenario.fields import Part
from rejoin.simulation.scenario.mistakes import Mistake

if TYPE_CHECKING:
    from rejoin.simulation.scenario.model import GroupSpec, Scenario

SHARE: Final = "share"

_NOT_OF_SHARE_GROUPS: Final = {
    "assignor": "the coordinator assigns",
    "remote_assignor": "there is one assignor",
    "regex": "topics have names",
    "static": "there are no static members",
    "transform": "consumers write nothing",
    "auto_commit_interval": "acknowledgements travel with the next poll",
    "session_timeout": "say share.session.timeout.ms in its settings",
    "heartbeat_interval": "say share.heartbeat.interval.ms in its settings",
    "revoke": "partitions are shared, and there is no listener",
    "assign": "partitions are shared, and there is no listener",
}
"""Keys that a share group refuses, with what is there in their place."""

_NOT_FOR_SHARE_CONSUMERS: Final = ("enforce", "duplicate", "stale_heartbeats", "outside_commits")
"""Actions on members of other groups."""

_OF_SHARE_GROUPS: Final = ("expire_lock", "release")
"""Actions on the records that a share group has in flight."""


class ShareSpec(Part):
    """The handler of a share group's consumers: how it acknowledges, and how often it fails."""

    acknowledge: Literal["implicit", "explicit"] = "implicit"
    """``share.acknowledgement.mode``: a poll accepts the records of the last, or the handler decides about each."""
    acquire: Literal["batch_optimized", "record_limit"] = "batch_optimized"
    """``share.acquire.mode``: whole batches, or never more than ``max_poll_records``."""
    release: float = Field(default=0.0, ge=0.0, le=1.0)
    """The chance that the handler gives a record back, to be delivered again."""
    reject: float = Field(default=0.0, ge=0.0, le=1.0)
    """The chance that it refuses a record for good."""
    renew: Duration = 0
    """How often it renews the locks of records in hand; 0: never."""
    poison: Literal["release", "reject", "crash"] | None = None
    """Fate of a poison record. None: it is released, or crashes the process where acknowledgement is implicit."""

    @property
    def on_poison(self) -> Literal["release", "reject", "crash"]:
        """Fate of a poison record."""
        if self.poison is not None:
            return self.poison
        return "release" if self.acknowledge == "explicit" else "crash"


def is_share_group(group: GroupSpec) -> bool:
    """Whether the consumers of a group share partitions."""
    return group.protocol == SHARE


def share_groups(scenario: Scenario) -> dict[str, GroupSpec]:
    """The share groups of a scenario, by id."""
    return {name: group for name, group in scenario.groups.items() if is_share_group(group)}


def dead_letter_topics(scenario: Scenario) -> tuple[str, ...]:
    """The topics to which nodes write dead letters, in order."""
    changes = [event.configure.settings for event in scenario.events if event.configure is not None]
    every = [group.settings for group in share_groups(scenario).values()] + changes
    return tuple(dict.fromkeys(str(settings[DLQ_TOPIC]) for settings in every if settings.get(DLQ_TOPIC)))


def share_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Combinations of share groups that cannot be played."""
    for name, group in scenario.groups.items():
        if is_share_group(group):
            yield from _mistakes_of_group(scenario, name, group)
        elif group.share is not None:
            yield Mistake(
                ("groups", name, SHARE), f"group {name} shares nothing; say 'protocol: share', or leave it out"
            )
    yield from _mistakes_of_topics(scenario)
    for number, event in enumerate(scenario.events):
        deploy = event.deploy
        if deploy is not None and deploy.protocol is not None and deploy.group in scenario.groups:
            before = scenario.groups[deploy.group].protocol
            if SHARE in (before, deploy.protocol) and before != deploy.protocol:
                problem = f"events[{number}]: {deploy.group} cannot change from {before} to {deploy.protocol}"
                expected = "share groups are groups of their own"
                yield Mistake(("events", number, "deploy", "protocol"), f"{problem}; {expected}")
        if event.kind in _OF_SHARE_GROUPS and not _shares(scenario, event.action.group):
            problem = f"events[{number}]: group {event.action.group} is no share group, and holds no records"
            yield Mistake(("events", number, event.kind, "group"), problem)
        if event.kind in _NOT_FOR_SHARE_CONSUMERS:
            yield from _mistakes_of_action(scenario, number, event.kind, event.action)


def _mistakes_of_group(scenario: Scenario, name: str, group: GroupSpec) -> Iterator[Mistake]:
    for key, instead in _NOT_OF_SHARE_GROUPS.items():
        if key in group.model_fields_set and getattr(group, key):
            yield Mistake(("groups", name, key), f"group {name} is a share group, which has no {key}: {instead}")
    if group.commit not in ("auto", "after"):
        problem = f"group {name} is a share group and cannot commit {group.commit}; expected auto or after"
        yield Mistake(("groups", name, "commit"), problem)
    share = group.share
    if share is None or share.acknowledge == "explicit":
        return
    for key in ("release", "reject", "renew"):
        if getattr(share, key):
            problem = f"group {name} acknowledges implicitly, which knows no {key}; say 'acknowledge: explicit'"
            yield Mistake(("groups", name, SHARE, key), problem)
    if share.poison in ("release", "reject"):
        problem = f"group {name} acknowledges implicitly, and can only crash; say 'acknowledge: explicit'"
        yield Mistake(("groups", name, SHARE, "poison"), problem)


def _mistakes_of_topics(scenario: Scenario) -> Iterator[Mistake]:
    shared = dict.fromkeys(topic for group in share_groups(scenario).values() for topic in group.topics)
    for name, topic in scenario.topics.items():
        if topic.poison and name not in shared:
            yield Mistake(("topics", name, "poison"), f"topic {name!r} has poison, and no share group reads it")
        if topic.until is not None and name in shared:
            problem = f"topic {name!r} is read by a share group and cannot end; say 'until' of producers that write it"
            yield Mistake(("topics", name, "until"), problem)
    for letters in dead_letter_topics(scenario):
        if letters not in scenario.topics:
            problem = f"dead letters go to topic {letters!r}, which is not under topics"
            path = next((("groups", name, "settings") for name in share_groups(scenario)), ("groups",))
            yield Mistake(path, problem)
        elif scenario.topics[letters].records_per_second:
            problem = f"topic {letters!r} gets dead letters; its records_per_second must be 0"
            yield Mistake(("topics", letters, "records_per_second"), problem)


def _shares(scenario: Scenario, group_id: str) -> bool:
    return group_id in scenario.groups and is_share_group(scenario.groups[group_id])


def _mistakes_of_action(scenario: Scenario, number: int, kind: str, action: object) -> Iterator[Mistake]:
    who = getattr(action, "who", getattr(action, "group", ()))
    for name in (who,) if isinstance(who, str) else who:
        group_id = name.removeprefix("any-of-") if name in scenario.groups else name.rpartition("-")[0]
        for each in (name.removeprefix("any-of-"), group_id):
            if each in scenario.groups and is_share_group(scenario.groups[each]):
                problem = f"events[{number}]: {kind} has no effect on share group {each}"
                yield Mistake(("events", number, kind), problem)
                return
