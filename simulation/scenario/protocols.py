"""Keys of groups that depend on their protocol, and mistakes in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.consumer.regex_resolution import is_valid, matching
from rejoin.coordinator.core.groups.share.group_settings import OFFSET_RESET
from rejoin.coordinator.core.topics.configs import ConfigError
from rejoin.coordinator.core.topics.group_configs import check_group, group_definitions
from rejoin.protocol.units import format_duration
from rejoin.simulation.scenario.fields import GroupSettings, settings_as_text
from rejoin.simulation.scenario.mistakes import Mistake
from rejoin.simulation.scenario.share_groups import SHARE, is_share_group, share_mistakes
from rejoin.simulation.scenario.streams.groups import STREAMS, streams_mistakes, streams_settings

if TYPE_CHECKING:
    from rejoin.simulation.scenario.model import GroupSpec, Scenario

Protocol: TypeAlias = Literal["classic", "consumer", "share", "streams"]

CLASSIC_KEYS: Final = ("assignor", "session_timeout", "heartbeat_interval")
"""Keys of a group that only members of the classic protocol have."""

CONSUMER_KEYS: Final = ("remote_assignor", "regex", "settings")
"""Keys of a group that only members of the consumer protocol have."""


def protocols_of(scenario: Scenario, group_id: str) -> dict[Protocol, None]:
    """The protocols that members of a group ever use, in order."""
    deploys = (event.deploy for event in scenario.events)
    later = [each.protocol for each in deploys if each is not None and each.group == group_id and each.protocol]
    return dict.fromkeys((scenario.groups[group_id].protocol, *later))


def settings_of_group(group: GroupSpec) -> GroupSettings:
    """Settings that a group has of its own. A share group begins to read there; applications have standby replicas."""
    if is_share_group(group):
        return {OFFSET_RESET: group.reset, **group.settings}
    return {**streams_settings(group), **group.settings}


def topics_of(scenario: Scenario, group_id: str) -> tuple[str, ...]:
    """The topics that a group reads: those it names, or those that its regular expression matches."""
    group = scenario.groups[group_id]
    return group.topics if group.regex is None else topics_matching(scenario, group.regex)


def topics_matching(scenario: Scenario, regex: str) -> tuple[str, ...]:
    """The topics that a regular expression matches, in order."""
    found = matching(regex, scenario.topics)
    return tuple(name for name in scenario.topics if name in found)


def protocol_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Combinations that cannot be played."""
    for name, group in scenario.groups.items():
        yield from _subscription_mistakes(name, group)
        yield from _assignor_mistakes(scenario, name, group)
        if "classic" in protocols_of(scenario, name):
            yield from _session_mistakes(name, group)
        if "classic" in protocols_of(scenario, name) and group.regex is not None:
            problem = f"group {name} has members that use the classic protocol, which has no regular expressions"
            yield Mistake(("groups", name, "regex"), f"{problem}; say 'protocol: consumer', or name the topics")
    yield from share_mistakes(scenario)
    yield from streams_mistakes(scenario)
    yield from _settings_mistakes(scenario)
    for number, event in enumerate(scenario.events):
        change = event.subscribe
        if change is None or change.regex is None:
            continue
        for who in change.who:
            group_id = who.removeprefix("any-of-") if who.startswith("any-of-") else who.rpartition("-")[0]
            ids = [group_id] if group_id in scenario.groups else list(scenario.groups)
            if any("classic" in protocols_of(scenario, each) for each in ids):
                problem = f"events[{number}]: {who} may use the classic protocol, which has no regular expressions"
                yield Mistake(("events", number, "subscribe", "regex"), problem)
        if not is_valid(change.regex):
            problem = f"events[{number}]: {change.regex!r} is no regular expression in the syntax of RE2"
            yield Mistake(("events", number, "subscribe", "regex"), problem)


def _subscription_mistakes(name: str, group: GroupSpec) -> Iterator[Mistake]:
    if group.regex is None:
        if not group.topics:
            yield Mistake(("groups", name), f"groups.{name}.topics: is missing")
        return
    path = ("groups", name, "regex")
    if group.topics:
        yield Mistake(path, f"group {name} has both topics and regex; expected one of them")
    if not is_valid(group.regex):
        yield Mistake(path, f"group {name}: {group.regex!r} is no regular expression in the syntax of RE2")
    if group.transform is not None:
        yield Mistake(path, f"group {name} transforms, and must name the topics that it reads")


def _session_mistakes(name: str, group: GroupSpec) -> Iterator[Mistake]:
    """A session that is over before a heartbeat is due. No consumer can be set up so."""
    if group.heartbeat_interval < group.session_timeout:
        return
    beat, session = format_duration(group.heartbeat_interval), format_duration(group.session_timeout)
    if "session_timeout" in group.model_fields_set:
        key, expected = "session_timeout", f"expected a session_timeout of more than {beat}"
        problem = f"groups.{name}.session_timeout is {session}, and heartbeat_interval is {beat}"
    else:
        key, expected = "heartbeat_interval", f"expected a heartbeat_interval of less than {session}"
        problem = f"groups.{name}.heartbeat_interval is {beat}, and session_timeout is {session}"
    yield Mistake(("groups", name, key), f"{problem}; {expected}")


def _settings_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Settings that no group can have of its own."""
    has: dict[str, GroupSettings] = {}
    for name, group in scenario.groups.items():
        has[name] = dict(settings_of_group(group))
        if not group.settings:
            continue  # the coordinator's own defaults may lie outside of what a group may have
        yield from _refused(scenario, ("groups", name, "settings"), name, has[name])
    for number, event in sorted(enumerate(scenario.events), key=lambda each: each[1].at):
        change = event.configure
        if change is not None and change.group in has:
            has[change.group] |= change.settings
            yield from _refused(scenario, ("events", number, "configure", "settings"), change.group, has[change.group])


def _refused(
    scenario: Scenario, path: tuple[str | int, ...], group_id: str, settings: Mapping[str, int | str]
) -> Iterator[Mistake]:
    definitions = group_definitions(Settings.model_validate(scenario.coordinator.settings))
    try:
        check_group(settings_as_text(settings), definitions)
    except ConfigError as error:
        yield Mistake(path, f"group {group_id}: {error}")


def _assignor_mistakes(scenario: Scenario, name: str, group: GroupSpec) -> Iterator[Mistake]:
    settings = Settings.model_validate(scenario.coordinator.settings)
    there = [each.strip() for each in settings.group_consumer_assignors.split(",")]
    if group.remote_assignor is not None and group.remote_assignor not in there:
        problem = f"group {name}: the coordinator has no assignor {group.remote_assignor!r}; it has {', '.join(there)}"
        yield Mistake(("groups", name, "remote_assignor"), problem)


def idle_keys(scenario: Scenario) -> Iterator[Mistake]:
    """Keys that have no effect, because no member ever uses the protocol that has them."""
    for name, group in scenario.groups.items():
        used = protocols_of(scenario, name)
        for key in group.model_fields_set:
            if SHARE in used:
                continue
            if key in CLASSIC_KEYS and "classic" not in used:
                kind = STREAMS if STREAMS in used else "consumer"
                kept_by = {
                    "assignor": "the coordinator assigns; say remote_assignor",
                    "session_timeout": f"say {kind}.session.timeout.ms in its settings",
                    "heartbeat_interval": f"say {kind}.heartbeat.interval.ms in its settings",
                }[key]
                yield Mistake(("groups", name, key), f"group {name} uses the {kind} protocol: {kept_by}")
            elif key == "settings" and STREAMS in used:
                continue
            elif key in CONSUMER_KEYS and "consumer" not in used and getattr(group, key):
                problem = f"group {name} uses the classic protocol, which has no {key}; say 'protocol: consumer'"
                yield Mistake(("groups", name, key), problem)


def unread_topics(scenario: Scenario) -> Iterator[Mistake]:
    """Topics of producers that a group subscribes to, and whose records it does not read."""
    written = {topic for each in scenario.producers.values() for topic in each.topics}
    for name, group in scenario.groups.items():
        if SHARE in protocols_of(scenario, name):
            continue
        for index, topic in enumerate(group.topics):
            if topic in written:
                problem = f"group {name} reads none of topic {topic!r}: only share groups read what producers write"
                yield Mistake(
                    ("groups", name, "topics", index), f"{problem}; say records_per_second of the topic instead"
                )
