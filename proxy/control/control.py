"""The control of a proxy: what ``rejoin serve --control`` offers, as far as it can be done to a real cluster.

It has the attributes of a node's control, so that operations and the kit work on either. Where a node's own clock or
state is needed, the attribute refuses with the reason.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rejoin.coordinator.control.errors import NotPossible
from rejoin.coordinator.control.evidence import RequestEvidence
from rejoin.coordinator.control.fault_injection.fault_actions import FaultActions
from rejoin.coordinator.core.inputs import Broker, Millis, Received
from rejoin.coordinator.core.views import GroupView
from rejoin.protocol.request_contents.traits import traits_of
from rejoin.proxy.control.groups import ClusterGroups
from rejoin.proxy.control.other_groups import ShareGroupsOfCluster, StreamsGroupsOfCluster
from rejoin.proxy.control.recording import ExchangeRecorder
from rejoin.proxy.faults import ProxyFaults
from rejoin.transcript.steps import StepRecorder

if TYPE_CHECKING:
    from rejoin.proxy.service import Proxy, ProxyOptions

NO_CLOCK: Final = (
    "a real cluster has no clock that can be set or moved: its time is that of its brokers; wait with groups/wait and "
    "faults/{id}/wait, and delay requests with latency_ms"
)
NO_STATE: Final = (
    "the state of a real cluster is its own: a proxy sees requests, and can neither set nor copy nor reset it; use "
    "Kafka's tools for groups, topics and records, and fault rules for errors"
)
NO_BROKERS: Final = (
    "brokers of a real cluster are not in this process, and a proxy cannot stop or move them; refuse their requests "
    "with a fault rule that names the node"
)
_MOST_SHOWN: Final = 1_000


class NotOnCluster:
    """Stands for actions that a real cluster does not offer; each use raises :class:`NotPossible`."""

    def __init__(self, kind: str, detail: str) -> None:
        self._problem = (kind, detail)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotPossible(*self._problem)


class MachineClock:
    """The time of this machine."""

    kind = "real"

    @staticmethod
    def now() -> Millis:
        """The time, ms since 1970."""
        return round(time() * 1_000)

    def catch_up(self) -> None:
        """Nothing: the time of a cluster passes by itself."""


class ProxyEvidence(RequestEvidence):
    """Requests that have passed; a transcript of them cannot be played, and is their text."""

    is_replayable = False

    def __init__(self, recorder: StepRecorder, options: ProxyOptions) -> None:
        super().__init__(recorder)
        host, port = options.bootstrap[0]
        self._broker = Broker(-1, host, port)

    @property
    def broker(self) -> Broker:
        """The first address of the cluster."""
        return self._broker

    def known_groups(self) -> list[str]:
        """None of its own: a group is known by its requests."""
        return []

    def transcript(self, since: int = 0, group_id: str | None = None, claim: str = "") -> str:
        """The requests since a mark with their answers, a line each."""
        self._all(since, group_id)
        head = f"# {claim}\n" if claim else ""
        text = self.last_requests(_MOST_SHOWN, since, group_id)
        return f"{head}# Requests through the proxy, which cannot be played: a real cluster has no transcript.\n{text}"

    def transcript_or_requests(self, claim: str, most: int) -> str:
        """The last requests with their answers."""
        return f"# {claim}\n{self.last_requests(most)}"

    def broker_log(self, kafka: str, since: int = 0, group_id: str | None = None) -> str:
        """Refuse: a broker's log is written from its state."""
        raise NotPossible("real-cluster", f"server.log is the broker's own, and not seen by a proxy; {NO_STATE}")


class ProxyControl(FaultActions):
    """Made before the proxy, which gets its ``rules`` and watches with its ``recording``."""

    brokers = None

    def __init__(self, options: ProxyOptions) -> None:
        super().__init__()
        self.clock = MachineClock()
        self.recorder = StepRecorder()
        self.recording = ExchangeRecorder(self.recorder)
        self.rules = ProxyFaults(self.faults, self.recording)
        self.evidence = ProxyEvidence(self.recorder, options)
        servers = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in options.bootstrap]
        self.groups = ClusterGroups(servers, options.upstream, self.recording)
        self.clock_driver = NotOnCluster("real-clock", NO_CLOCK)
        state = NotOnCluster("real-cluster", NO_STATE)
        self.share_groups = ShareGroupsOfCluster(self.groups)
        self.streams_groups = StreamsGroupsOfCluster(self.groups)
        self.actions = self.access = self.records = state
        self.broker_actions = NotOnCluster("real-cluster", NO_BROKERS)
        self._proxy: Proxy | None = None

    def begin(self, proxy: Proxy) -> None:
        """Record from here on."""
        self._proxy = proxy
        self.recorder.begin(self.clock.now())

    async def stop(self) -> None:
        """Let go of everything that is held, and close the connections to the cluster."""
        await self.rules.stop()
        await self.groups.close()

    def node_ids(self) -> None:
        """Brokers come and go: a rule may name any."""
        return

    def group_ids(self) -> list[str]:
        """The groups that requests have named, as far as they are recorded."""
        found: set[str] = set()
        for step in self.recorder.all():
            if isinstance(step.what, Received):
                found |= traits_of(step.what.request, step.what.context.api_version).groups
        return sorted(found)

    async def describe_group(self, group_id: str) -> GroupView | None:
        """A group as its coordinator shows it, or none."""
        return await self.groups.describe(group_id)

    def produce(self, _: Any) -> NoReturn:
        """Refuse."""
        raise NotPossible("real-cluster", NO_STATE)

    advertise = produce

    def submit(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise NotPossible("real-cluster", "send requests to the proxy as a client: its bootstrap_servers take them")

    def status(self) -> dict[str, Any]:
        """Where everything stands."""
        return {
            "clock": self.clock.kind,
            "now_ms": self.clock.now(),
            "next_in_ms": None,
            "mark": self.recorder.mark,
            "faults": len(self.faults.all()),
            "bootstrap_servers": None if self._proxy is None else self._proxy.bootstrap_servers,
        }
