"""The settings of a scenario that its page has controls for, with the values that they have."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.model import GroupSpec, Scenario
from rejoin.simulation.scenario.protocols import protocols_of
from rejoin.simulation.scenario.share_groups import is_share_group
from rejoin.simulation.scenario.streams.groups import StreamsSpec

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND


class DurationControl(NamedTuple):
    """A length of time that can be slid. ``is_of_coordinator``: it stands in the coordinator's settings, in ms."""

    key: str
    label: str
    least: Millis
    most: Millis
    is_of_coordinator: bool = False


_OF_CLASSIC: Final = (
    DurationControl("session_timeout", "session.timeout.ms", 6 * SECOND, 5 * MINUTE),
    DurationControl("heartbeat_interval", "heartbeat.interval.ms", 200, MINUTE),
)
_MAX_POLL_INTERVAL: Final = DurationControl("max_poll_interval", "max.poll.interval.ms", SECOND, 30 * MINUTE)
_OF_ALL: Final = (
    _MAX_POLL_INTERVAL,
    DurationControl("auto_commit_interval", "auto.commit.interval.ms", 200, 5 * MINUTE),
    DurationControl("revoke", "onPartitionsRevoked takes", 0, 2 * MINUTE),
    DurationControl("assign", "onPartitionsAssigned takes", 0, 2 * MINUTE),
)
_OF_CLASSIC_GROUPS: Final = (
    DurationControl("group.initial.rebalance.delay.ms", "group.initial.rebalance.delay.ms", 0, MINUTE, True),
)
_OF_CONSUMER_GROUPS: Final = (
    DurationControl(
        "group.consumer.session.timeout.ms", "group.consumer.session.timeout.ms", 45 * SECOND, MINUTE, True
    ),
    DurationControl(
        "group.consumer.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms", 5 * SECOND, 15 * SECOND, True
    ),
)
_OF_STREAMS_GROUPS: Final = (
    DurationControl("group.streams.session.timeout.ms", "group.streams.session.timeout.ms", 45 * SECOND, MINUTE, True),
    DurationControl(
        "group.streams.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms", 5 * SECOND, 15 * SECOND, True
    ),
    DurationControl(
        "group.streams.initial.rebalance.delay.ms", "group.streams.initial.rebalance.delay.ms", 0, MINUTE, True
    ),
)
_COMMIT_INTERVAL: Final = DurationControl("commit_interval", "commit.interval.ms", 10, 5 * MINUTE)
_STANDBYS: Final = ("0", "1", "2")
_GUARANTEES: Final = ("at_least_once", "exactly_once_v2")
_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
_COMMITS: Final = ("auto", "after", "before", "none")


def controls_of(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    """The controls of each group: where its key stands, its name, its kind and its value.

    A ``duration`` is from ``least`` to ``most`` ms, a ``choice`` one of ``among``, a ``flag`` true or false.
    """
    return {group_id: _controls(scenario, group_id, group) for group_id, group in scenario.groups.items()}


def _controls(scenario: Scenario, group_id: str, group: GroupSpec) -> list[dict[str, Any]]:
    if is_share_group(group):
        return [_duration(scenario, group_id, group, _MAX_POLL_INTERVAL)]
    if group.streams is not None:
        return _of_application(scenario, group_id, group, group.streams)
    protocols = protocols_of(scenario, group_id)
    is_classic = "classic" in protocols
    durations = [*(_OF_CLASSIC if is_classic else ()), *_OF_ALL, *(_OF_CLASSIC_GROUPS if is_classic else ())]
    durations += _OF_CONSUMER_GROUPS if "consumer" in protocols else ()
    found = [_duration(scenario, group_id, group, each) for each in durations]
    if is_classic and len(group.assignor) == 1:
        found.append(_choice(group_id, "assignor", "partition.assignment.strategy", group.assignor[0], _ASSIGNORS))
    if group.commit in _COMMITS and group.transform is None:
        found.append(_choice(group_id, "commit", "commit", group.commit, _COMMITS))
    path = ["groups", group_id, "static"]
    found.append({"path": path, "label": "group.instance.id (static)", "kind": "flag", "value": group.static})
    return found


def _of_application(scenario: Scenario, group_id: str, group: GroupSpec, spec: StreamsSpec) -> list[dict[str, Any]]:
    """The controls of a Kafka Streams application: those of its protocol, then its own."""
    of_protocol = (*_OF_CLASSIC, *_OF_CLASSIC_GROUPS) if group.protocol == "classic" else _OF_STREAMS_GROUPS
    found = [_duration(scenario, group_id, group, each) for each in (*of_protocol, _MAX_POLL_INTERVAL)]
    path = ["groups", group_id, "streams"]
    interval, value = _COMMIT_INTERVAL, spec.commit_interval_ms
    bounds = {"least": min(interval.least, value), "most": max(interval.most, value)}
    shown = {"path": [*path, interval.key], "label": interval.label, "kind": "duration", "unit": "duration"}
    found.append({**shown, "value": value, **bounds})
    for key, label, now, among in (
        ("standby_replicas", "num.standby.replicas", str(spec.standby_replicas), _STANDBYS),
        ("processing_guarantee", "processing.guarantee", spec.processing_guarantee, _GUARANTEES),
    ):
        found.append({"path": [*path, key], "label": label, "kind": "choice", "value": now, "among": [*among]})
    kept = {"path": [*path, "keep_state"], "label": "state directory outlives a restart"}
    found.append({**kept, "kind": "flag", "value": spec.keep_state})
    static = {"path": ["groups", group_id, "static"], "label": "group.instance.id (static)"}
    found.append({**static, "kind": "flag", "value": group.static})
    return found


def _duration(scenario: Scenario, group_id: str, group: GroupSpec, control: DurationControl) -> dict[str, Any]:
    if control.is_of_coordinator:
        given, name = scenario.coordinator.settings, control.key.replace(".", "_")
        path = ["coordinator", "settings", name if name in given else control.key]
        value = scenario.coordinator.milliseconds(control.key)
    else:
        path = ["groups", group_id, control.key]
        value = int(getattr(group, control.key))
    bounds = {"least": min(control.least, value), "most": max(control.most, value)}
    unit = "ms" if control.is_of_coordinator else "duration"
    return {"path": path, "label": control.label, "kind": "duration", "unit": unit, "value": value, **bounds}


def _choice(group_id: str, key: str, label: str, value: str, among: tuple[str, ...]) -> dict[str, Any]:
    path = ["groups", group_id, key]
    return {"path": path, "label": label, "kind": "choice", "value": value, "among": sorted({value, *among})}
