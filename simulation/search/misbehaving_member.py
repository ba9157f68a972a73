"""A client whose acknowledgements must be refused: of records that another member holds, or with a wrong epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rejoin.coordinator.core.inputs import Context, Received
from rejoin.coordinator.core.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from rejoin.coordinator.core.views import RecordRunView, ShareStateView
from rejoin.protocol.message import Request
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch, AcknowledgeType
from rejoin.protocol.messages.share.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.misbehaving_client import voided
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.share_groups import share_groups

if TYPE_CHECKING:
    from rejoin.simulation.simulation import Simulation

_VERSION: Final = 2
_NO_SUCH_EPOCH: Final = 1_000_000
_STRANGER: Final = "stranger"


class MisbehavingMember:
    """Accepts records that members of share groups hold, in their place."""

    def __init__(self, simulation: Simulation, every_ms: Millis, until: Millis) -> None:
        self.simulation = simulation
        self.every_ms = every_ms
        self.until = until
        self.random = simulation.world.new_random()
        simulation.world.control(every_ms, self._act)

    def _act(self, _: object) -> None:
        world = self.simulation.world
        for group_id in share_groups(self.simulation.scenario):
            for node in self.simulation.cluster.nodes:
                if node.core is not None and node.paused_until <= world.now:
                    states = node.core.share_states(group_id, world.now)
                    held = [(each, run) for each in states for run in each.records if run.state == "ACQUIRED"]
                    if held:
                        self._accept(node, *self.random.choice(held))
        if world.now < self.until:
            world.control(world.now + self.every_ms, self._act)

    def _accept(self, node: NodeActor, share: ShareStateView, run: RecordRunView) -> None:
        if self.random.random() < 0.5:
            self._send(node, share.group_id, _acceptance(self.simulation, share, run, run.member_id, _NO_SUCH_EPOCH))
            return
        opening = ShareFetchRequest(
            group_id=share.group_id,
            member_id=_STRANGER,
            share_session_epoch=INITIAL_EPOCH,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=0,
            topics=(),
            forgotten_topics_data=(),
        )
        self._send(node, share.group_id, opening)
        self._send(node, share.group_id, _acceptance(self.simulation, share, run, _STRANGER, FINAL_EPOCH))

    def _send(self, node: NodeActor, group_id: str, request: Request) -> None:
        consumers = [each for each in self.simulation.consumers.values() if each.config.group_id == group_id]
        if consumers and node.is_up:
            exchange = voided(consumers[0], node.index, request, _VERSION, self.simulation.world.now)
            node.hand_in(Received(exchange, request, Context(_VERSION, "misbehaving")))


def _acceptance(
    simulation: Simulation, share: ShareStateView, run: RecordRunView, member_id: str | None, epoch: int
) -> ShareAcknowledgeRequest:
    batch = AcknowledgementBatch(
        first_offset=run.first_offset,
        last_offset=run.last_offset,
        acknowledge_types=(int(AcknowledgeType.ACCEPT),),
    )
    partition = ShareAcknowledgePartition(partition_index=share.partition, acknowledgement_batches=(batch,))
    topic_id = simulation.cluster.log_of(TopicPartition(share.topic, share.partition)).topic_id
    return ShareAcknowledgeRequest(
        group_id=share.group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        topics=(ShareAcknowledgeTopic(topic_id=topic_id, partitions=(partition,)),),
    )
