"""The processes of Kafka Streams applications as their scenario wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rejoin.client.config import ConsumerConfig
from rejoin.simulation.actors.streams.application import (
    Application,
    ApplicationCode,
    StoreCode,
    SubtopologyCode,
    repartition_topic,
)
from rejoin.simulation.actors.streams.classic_thread import ClassicExactlyOnceThread, ClassicThread
from rejoin.simulation.actors.streams.exactly_once import ExactlyOnceThread
from rejoin.simulation.actors.streams.instance import Instance
from rejoin.simulation.actors.streams.thread import StreamsThread
from rejoin.simulation.scenario.streams.groups import StreamsSpec, thread_name

if TYPE_CHECKING:
    from rejoin.simulation.actors.consumer_process import UserCode
    from rejoin.simulation.scenario.model import GroupSpec
    from rejoin.simulation.simulation import Simulation


_THREADS: Final[Mapping[tuple[bool, bool], type[StreamsThread]]] = {
    (False, False): StreamsThread,
    (False, True): ExactlyOnceThread,
    (True, False): ClassicThread,
    (True, True): ClassicExactlyOnceThread,
}
"""Threads by whether they use the classic protocol, and whether they process exactly once."""


def application_code(group_id: str, group: GroupSpec) -> ApplicationCode:
    """The code of an application."""
    spec = group.streams
    assert spec is not None, "the group is an application"
    return ApplicationCode(
        group_id,
        _subtopologies(group_id, group, spec),
        threads=spec.threads,
        standby_replicas=spec.standby_replicas,
        exactly_once=spec.is_exactly_once,
        commit_interval_ms=spec.commit_interval_ms,
        keeps_state=spec.keep_state,
        probing_interval_ms=spec.probing_interval,
    )


def _subtopologies(group_id: str, group: GroupSpec, spec: StreamsSpec) -> tuple[SubtopologyCode, ...]:
    return tuple(
        SubtopologyCode(
            str(number),
            part.sources or (() if part.reads else group.topics),
            tuple(repartition_topic(group_id, name) for name in part.reads),
            tuple(repartition_topic(group_id, name) for name in part.writes),
            tuple(StoreCode(name, store.restore_ms, store.keys, store.records) for name, store in part.stores.items()),
        )
        for number, part in enumerate(spec.subtopologies)
    )


def instance_of(
    simulation: Simulation, application: Application, config: ConsumerConfig, user_code: UserCode, name: str
) -> StreamsThread:
    """One instance with all of its threads; its first thread stands for it."""
    made = _THREADS[config.group_protocol == "classic", application.code.exactly_once]
    instance = Instance(application, name)
    for index in range(application.code.threads):
        called = thread_name(name, index)
        own: dict[str, Any] = {"client_id": called}
        if config.group_instance_id is not None:
            own["group_instance_id"] = called
        made(
            simulation.world,
            simulation.network,
            simulation.cluster,
            config.model_copy(update=own),
            user_code,
            instance,
            called,
        )
    return instance.threads[0]
