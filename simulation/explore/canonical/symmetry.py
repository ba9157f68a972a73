"""Symmetry: members of a group that differ in nothing but their numbers may change places.

A renaming of clients is an automorphism where nothing that decides anything depends on their names. Assignors sort by
member id, so in a world with symmetry the members of a group send one client id: their member ids then differ by the
coordinator's or their own UUIDs only, in the order in which these were made, which a renaming leaves as it is.

Left out are static members, which sort by instance id, members of share and streams groups, transactional ones, which
have ids by name, groups that an event names as a whole, and members that an event may still name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, permutations, product
from typing import Any

from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.kernel import Lane, actor_of, lane_in_place
from rejoin.simulation.scenario.model import Scenario, any_of
from rejoin.simulation.scenario.share_groups import is_share_group

KEEPS_MEMBERS = ("failover",)
"""Events that name a group and have no effect on its members by number."""


def symmetric_groups(scenario: Scenario) -> frozenset[str]:
    """Groups whose members share a client id, and may change places."""
    explore = scenario.explore
    if explore is None or not explore.symmetry or explore.free is not None:
        return frozenset()
    named = {getattr(event.action, "group", None) for event in scenario.events if event.kind not in KEEPS_MEMBERS}
    # An event for any member is one for the first by number: an explored run draws nothing.
    named |= {any_of(name) for name in named_by(scenario, range(len(scenario.events)))}
    if "" in named:
        return frozenset()
    others = " ".join([*scenario.topics, *scenario.producers, *scenario.readers])
    return frozenset(
        group_id
        for group_id, group in scenario.groups.items()
        if not (group.static or is_share_group(group) or group.streams is not None or group.transform is not None)
        and group.commit != "transaction"
        and group_id not in named
        and f"{group_id}-" not in others
        and not any(f"{group_id}-" in other for other in scenario.groups)
    )


def named_by(scenario: Scenario, events: Iterable[int]) -> set[str]:
    """Names of processes that events name."""
    found: set[str] = set()
    for number in events:
        who = getattr(scenario.events[number].action, "who", ())
        found.update((who,) if isinstance(who, str) else who)
    return found


class Renaming:
    """Clients in the places of others: by name and by number."""

    def __init__(self, places: Mapping[ConsumerProcess, ConsumerProcess]) -> None:
        moved = {who: place for who, place in places.items() if who is not place}
        self._names = {who.name: place.name for who, place in moved.items()}
        self._numbers = {who.number: place.number for who, place in moved.items()}
        names = "|".join(map(re.escape, self._names))
        self._text = re.compile(rf"(?:{names})(?!\d)")
        self._bytes = re.compile(rf"(?:{names})(?!\d)".encode())

    def name(self, name: str) -> str:
        """The new name of an actor."""
        return self._names.get(name, name)

    def lane(self, lane: Lane) -> Lane:
        """A lane of the actor in whose place a lane's actor is."""
        number = self._numbers.get(actor_of(lane))
        return lane if number is None else lane_in_place(lane, number)

    def tokens(self, tokens: list[Any]) -> list[Any]:
        """A form with the new names in all of its texts."""
        if not self._names:
            return tokens
        return [
            self._text.sub(self._in_text, token)
            if type(token) is str
            else self._bytes.sub(self._in_bytes, token)
            if type(token) is bytes
            else token
            for token in tokens
        ]

    def _in_text(self, found: re.Match[str]) -> str:
        return self._names[found[0]]

    def _in_bytes(self, found: re.Match[bytes]) -> bytes:
        return self._names[found[0].decode()].encode()


def renamings(
    groups: Iterable[Sequence[ConsumerProcess]], sign: Callable[[ConsumerProcess], Any]
) -> Iterator[Renaming]:
    """The renamings of which the least form is a state's.

    In each of the ``groups`` members come in the order of their ``sign``, which no renaming changes. Those of equal
    signs come in each order.
    """
    orders = [_orders(members, sign) for members in groups]
    for chosen in product(*orders):
        places: dict[ConsumerProcess, ConsumerProcess] = {}
        for members, order in zip(groups, chosen, strict=True):
            places |= zip(order, members, strict=True)
        yield Renaming(places)


def _orders(
    members: Sequence[ConsumerProcess], sign: Callable[[ConsumerProcess], Any]
) -> list[tuple[ConsumerProcess, ...]]:
    alike = [list(each) for _, each in groupby(sorted(members, key=sign), key=sign)]
    return [
        tuple(member for part in parts for member in part) for parts in product(*(permutations(each) for each in alike))
    ]
