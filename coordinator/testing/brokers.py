"""Actions of a test on each of several brokers, and on the leaders of partitions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from rejoin.coordinator.control.broker_actions import BrokerActions, LedPartition, LinkEnds, NewLeader
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.testing.controlled import ControlledCoordinator
from rejoin.coordinator.testing.results import hides_traceback

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class BrokerState(NamedTuple):
    """A broker. ``state`` is running, paused or stopped; one that is fenced leads nothing.

    Without a socket it has neither ``kafka`` nor ``url``.
    """

    broker: int
    state: str
    is_fenced: bool
    kafka: str | None
    url: str | None
    leads: int


class PartitionLeadership(NamedTuple):
    """Who leads a partition, and since which epoch; without a leader it is none."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


class BrokerMethods(ControlledCoordinator):
    """The methods for several brokers, of a coordinator that was started with ``brokers=``."""

    async def brokers(self) -> list[BrokerState]:
        """State of every broker."""
        return await self._ask(lambda control: [_state(each) for each in control.broker_actions.all()["brokers"]])

    async def stop_broker(self, broker: int) -> BrokerState:
        """Stop a broker cleanly: others lead what it led, then its connections close and its port refuses new ones."""
        return await self._act(lambda actions: actions.stop(str(broker)))

    async def kill_broker(self, broker: int) -> BrokerState:
        """End a broker as by kill -9. Others lead what it led after broker.session.timeout.ms."""
        return await self._act(lambda actions: actions.kill(str(broker)))

    async def start_broker(self, broker: int) -> BrokerState:
        """Start a stopped broker on the ports from before. It leads only what no other can, until it is moved."""
        return await self._act(lambda actions: actions.start(str(broker)))

    async def pause_broker(self, broker: int) -> BrokerState:
        """Let a broker stand still: it accepts connections, and does not answer."""

        async def pause(actions: BrokerActions) -> dict[str, Any]:
            return actions.pause(str(broker))

        return await self._act(pause)

    async def resume_broker(self, broker: int) -> BrokerState:
        """Let a paused broker go on."""

        async def resume(actions: BrokerActions) -> dict[str, Any]:
            return actions.resume(str(broker))

        return await self._act(resume)

    async def cut_off(
        self, broker: int, *, clients: bool = False, controller: bool = False, brokers: int | Sequence[int] = ()
    ) -> BrokerState:
        """Cut a broker off from its clients, from the controller, or from copying to and from other brokers."""

        async def cut(actions: BrokerActions) -> dict[str, Any]:
            others: Any = brokers
            return actions.cut_off(LinkEnds(clients=clients, controller=controller, brokers=others), str(broker))

        return await self._act(cut)

    async def heal(self, broker: int) -> BrokerState:
        """Let a broker reach all again that it was cut off from."""

        async def heal(actions: BrokerActions) -> dict[str, Any]:
            return actions.heal(str(broker))

        return await self._act(heal)

    async def partition(self, topic: str, partition: int) -> PartitionLeadership:
        """Who leads a partition."""
        return await self._ask(
            lambda control: PartitionLeadership(
                **control.broker_actions.partition(LedPartition(topic=topic, partition=partition))
            )
        )

    async def move_leader(
        self,
        topic: str | None = None,
        partition: int | None = None,
        to: int | None = None,
        *,
        group: str | None = None,
        unclean: bool = False,
    ) -> PartitionLeadership:
        """Let another broker lead a partition, or the offsets partition of a group; the next in sync unless named.

        With ``unclean`` it need not be in sync: the records that it does not have are lost.
        """

        def move(control: Control) -> PartitionLeadership:
            wanted = NewLeader(topic=topic, partition=partition, group=group, to=to, unclean=unclean)
            return PartitionLeadership(**control.broker_actions.move(wanted))

        return await self._ask(move)

    async def elect_preferred(self) -> list[PartitionLeadership]:
        """Let the first replica of every partition lead where it is in sync; returns the partitions that moved."""

        def elect(control: Control) -> list[PartitionLeadership]:
            return [PartitionLeadership(**each) for each in control.broker_actions.elect_preferred()["moved"]]

        return await self._ask(elect)

    async def _act(self, act: Callable[[BrokerActions], Coroutine[Any, Any, dict[str, Any]]]) -> BrokerState:
        async def do(control: Control) -> BrokerState:
            control.clock.catch_up()
            return _state(await act(control.broker_actions))

        return await self.do(do)


def _state(shown: dict[str, Any]) -> BrokerState:
    return BrokerState(**{name: shown[name] for name in BrokerState._fields})
