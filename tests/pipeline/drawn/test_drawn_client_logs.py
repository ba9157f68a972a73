"""Drawings of consumers' logs, alone and beside a broker's: every lane has a name, and every killed member ends."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import pytest

from benchmarks.recovered.from_client_logs import GOLDEN
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import CoordinatorLost, JoinSent
from rejoin.pipeline.drawn.drawn_event import DrawnEvent
from rejoin.pipeline.drawn.events import events_of
from rejoin.pipeline.drawn.lanes import with_lanes
from rejoin.pipeline.drawn.page import recorded
from rejoin.pipeline.reading.client_logs.statements import NO_GROUP
from tests.pipeline.recorded import events_of_logs

Rows = dict[str, Any]
NO_MEMBER: Final = frozenset({"UNJOINED", "DOWN", "FENCED"})
SETS: Final = ("java", "python", "others", "rdkafka", "older-python/kafka-python-2.0")


def drawn(name: str, *, with_broker: bool) -> dict[str, Rows]:
    """The rows of the page for each group of a recording."""
    folder = GOLDEN / name
    files = sorted(each for each in folder.rglob("*.log.gz") if each.name != "server.log.gz")
    table = events_of_logs([*files, folder / "server.log.gz"] if with_broker else files)
    groups = {
        ("logs", group) for group in table.column("group_id").unique().to_pylist() if group not in (None, NO_GROUP)
    }
    return {group: recorded(events, 0) for (_, group), events in events_of(table, groups, 100_000).items()}


class Lanes:
    """Members, owners and states as the page has them, row by row in the order of time."""

    def __init__(self, rows: Rows) -> None:
        kinds = ("members", "owners", "groups")
        self._by_instant: dict[int, list[tuple[str, list[Any]]]] = defaultdict(list)
        for kind in kinds:
            for row in rows.get(kind, ()):
                self._by_instant[row[0]].append((kind, row))
        self.states: dict[str, str] = {}
        self.owned: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.group = ""

    def __iter__(self) -> Any:
        for at in sorted(self._by_instant):
            for kind, row in self._by_instant[at]:
                if kind == "members":
                    self.states[row[1]] = row[2]
                elif kind == "groups":
                    self.group = row[3]
                else:
                    (self.owned[row[4]].add if row[5] > 0 else self.owned[row[4]].discard)((row[2], row[3]))
            yield at

    @property
    def members(self) -> set[str]:
        return {name for name, state in self.states.items() if state not in NO_MEMBER}


@pytest.mark.parametrize(
    ("name", "with_broker"), [*((name, False) for name in SETS), *((name, True) for name in SETS if "/" not in name)]
)
def test_every_lane_has_a_name_and_no_member_outlives_its_end(name: str, with_broker: bool) -> None:
    groups = drawn(name, with_broker=with_broker)
    assert groups
    for group, rows in groups.items():
        is_drawn_well(group, rows, with_broker=with_broker)


def is_drawn_well(group: str, rows: Rows, *, with_broker: bool) -> None:
    kind_of = {row[0]: row[1] for row in rows["actors"]}
    named = [row[1] for kind in ("members", "requests") for row in rows.get(kind, ())]
    named += [row[4] for row in rows.get("owners", ())]
    assert {kind_of.get(name) for name in named} == {"consumer"}
    nodes = [name for name, kind in kind_of.items() if kind == "node"]
    assert nodes == (["1"] if with_broker else ["coordinator"])
    texts = [text for _, text, _ in rows["lines"]]
    assert not [each for each in texts if "()" in each or "after 0 ms" in each or each.startswith(" ")]
    assert all(state for _, _, _, state, _ in rows["groups"])
    # librdkafka does not log its member ids: a new member beside the old one has its id in its name.
    assert {row[1].split()[0] for row in rows["members"]} <= {f"{group}-{number}" for number in (1, 2, 3, 4)}

    lanes, empty_since = Lanes(rows), None
    for at in lanes:
        # A broker's log has the broker's last word, which may be older than that of all members.
        if not with_broker and lanes.group not in ("Empty", "") and not lanes.members:
            empty_since = at if empty_since is None else empty_since
            assert at == empty_since, f"{lanes.group}, but no member is in it since {empty_since}"
        else:
            empty_since = None
    assert empty_since is None
    assert not [name for name, owned in lanes.owned.items() if owned and name not in lanes.members]


def test_the_last_that_was_removed_is_no_member_at_the_end() -> None:
    rows = drawn("java/java", with_broker=False)["java"]
    lanes = Lanes(rows)
    for _ in lanes:
        pass
    removed = [row[1].split()[1] for row in rows["lines"] if row[2] == "MemberRemoved"]
    assert removed
    assert removed[-1] not in lanes.members
    assert sorted(lanes.states) == ["java-1", "java-2", "java-3", "java-4"]


def of_log(node: str, event: type[Event], client_id: str, member_id: str | None = None) -> DrawnEvent:
    values: dict[str, Any] = {"client_id": client_id, "group_id": "app"}
    if member_id is not None:
        values |= {"member_id": member_id}
    return DrawnEvent(0, 0, node, "client-log", event.model_construct(None, **values))


def lanes_of(*events: DrawnEvent) -> list[str]:
    return [each.event.client_id for each in with_lanes(events)]  # type: ignore[attr-defined]


def test_a_line_without_a_client_id_has_that_of_its_log() -> None:
    lost, joined = of_log("logs/a", CoordinatorLost, ""), of_log("logs/a", JoinSent, "orders-1", "m")
    assert lanes_of(lost, joined, lost) == ["orders-1"] * 3
    assert lanes_of(lost, of_log("logs/b", JoinSent, "", "n"), joined) == ["orders-1", "b", "orders-1"]


def test_processes_with_one_client_id_have_the_names_of_their_logs() -> None:
    first, second = of_log("logs/pod-a", JoinSent, "app", "m"), of_log("logs/pod-b", JoinSent, "app", "n")
    assert lanes_of(first, second) == ["pod-a", "pod-b"]
    other = of_log("logs/pod-a", JoinSent, "audit", "o")
    assert lanes_of(first, second, other) == ["app pod-a", "pod-b", "audit"]
    assert lanes_of(first, of_log("old/pod-a", JoinSent, "app", "p")) == ["logs/pod-a", "old/pod-a"]
