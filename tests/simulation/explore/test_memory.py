"""States take few bytes, and those of a depth that is too large to be kept are played again."""

from __future__ import annotations

import pytest

from rejoin.simulation.explore.canonical.form import digest_of
from rejoin.simulation.explore.copying import CannotBeCopied, RunSnapshot, copied
from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.states import Frontier, States
from tests.simulation.explore.small_worlds import WORLDS, small_world


def test_states_are_found_by_their_digests_and_have_paths() -> None:
    states = States()
    digests = [digest_of([number]) for number in range(20_000)]
    for number, digest in enumerate(digests):
        assert states.number_of(digest) is None
        assert states.add(digest, max(0, number - 1) // 2, number % 2) == number
    assert [states.number_of(digest) for digest in digests] == list(range(20_000))
    assert states.number_of(digest_of(["another"])) is None
    assert states.path_to(0) == ()
    assert states.path_to(12) == (0, 1, 0)
    assert states.size() < 33 * len(states)


@pytest.mark.parametrize("name", WORLDS)
def test_a_copy_goes_on_as_its_original(name: str) -> None:
    run = ExploredRun(small_world(name))
    snapshot = RunSnapshot(run)
    digests = []
    for each in (run, snapshot.restore(), snapshot.restore().copy()):
        found = []
        for _ in range(8):
            found.append(each.digest())
            each.take(each.choices()[0])
        digests.append(found)
    assert digests[0] == digests[1] == digests[2]


def test_what_cannot_be_copied_is_named() -> None:
    with pytest.raises(CannotBeCopied, match="generator"):
        copied([(number for number in range(3))])


@pytest.mark.parametrize("bounds", [(0, 0), (2, 3)])
def test_states_that_are_played_again_are_the_same(bounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    world = small_world("classic")
    expected = explore(world, depth=5, most_states=20, liveness=False)
    monkeypatch.setattr(Frontier.__init__, "__defaults__", bounds)
    assert explore(world, depth=5, most_states=20, liveness=False) == expected
