"""Scripts from tables: each kind of request in each state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from conformance.participants.looks import Looks
from conformance.participants.producer import Producer
from conformance.transactions.probes import REQUESTS, Probe
from conformance.transactions.states import STATES, State
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script


def table(
    requests: Iterable[str] = REQUESTS,
    states: Mapping[str, State] = STATES,
    *,
    version: int = 2,
    takes: Callable[[str], bool] = lambda _: True,
    wait_ms: int | None = None,
) -> Iterator[Script]:
    """A script for each kind of request and each state; the producers speak a version of transactions.

    ``takes`` picks requests by their names in the table. With ``wait_ms`` all are brought into the state, and so much
    later they are made.
    """
    for request in requests:
        for state in states:
            probes = {name: probe for name, probe in REQUESTS[request].items() if takes(name)}
            yield Script(
                f"{request}-{state}",
                _script(states[state], probes, version) if wait_ms is None else _later(states[state], probes, wait_ms),
                partitions=2 * len(probes),
            )


def _script(state: State, probes: dict[str, Probe], version: int) -> Callable[[Play], Awaitable[None]]:
    async def run(play: Play) -> None:
        for number, (name, probe) in enumerate(probes.items()):
            producer = Producer(play, transactional_id=f"{play.transactional_id}-{name}", version=version)
            await state(producer, 2 * number)
            await probe(producer, 2 * number)
            await Looks(play).transactions(str(producer.transactional_id))
        await Looks(play).producers()
        await Looks(play).fetch()

    return run


def _later(state: State, probes: dict[str, Probe], wait_ms: int) -> Callable[[Play], Awaitable[None]]:
    async def run(play: Play) -> None:
        producers = {name: Producer(play, transactional_id=f"{play.transactional_id}-{name}") for name in probes}
        for number, producer in enumerate(producers.values()):
            await state(producer, 2 * number)
        await play.wait(wait_ms)
        for number, (name, probe) in enumerate(probes.items()):
            await probe(producers[name], 2 * number)
            await play.settle(str(producers[name].transactional_id))
            await Looks(play).transactions(str(producers[name].transactional_id))
        await Looks(play).producers()
        await Looks(play).fetch()

    return run
