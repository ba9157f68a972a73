"""Which data partitions a node leads, in which epoch, and what becomes of appends."""

from __future__ import annotations

from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.journal.events.coordinator import AppendFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.types import TopicIdPartition
from rejoin.protocol.wire.record_batch import parse_header
from tests.coordinator.core.driver import TOPIC
from tests.coordinator.core.partitions.real_topic import RealTopic
from tests.protocol.wire.test_record_batch import ONE_RECORD


class Ends(AppendCompletion):
    """Remembers how each append ended."""

    def __init__(self) -> None:
        self.errors: list[ErrorCode] = []

    def ended(self, error: ErrorCode) -> None:
        self.errors.append(error)


class Progress:
    """Counts what readers would look at again."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_progress(self, partition: TopicIdPartition) -> None:
        self.seen.append(partition.partition)


class Appender(RealTopic):
    """A node with a real log, to which a test appends without a request."""

    def append(self, completion: AppendCompletion | None = None) -> None:
        """Append a batch of one record, behind the end."""
        partition = self.partition()
        partition.append(ONE_RECORD, parse_header(ONE_RECORD).with_position(partition.log.end_offset, partition.epoch))
        if completion is not None:
            partition.when_stored(partition.log.end_offset, completion)
        effects, self.node._ctx.effects = self.node._ctx.effects, []
        for effect in effects:
            self.carry_out(effect)


def test_what_is_stored_is_there_in_the_next_epoch() -> None:
    driven = Appender()
    driven.append()
    assert driven.partition().log.high_watermark == 1
    driven.elect()
    log = driven.partition().log
    assert (log.high_watermark, log.epochs) == (1, [(0, 0), (1, 1)])


def test_a_node_that_resigns_leads_no_data_partitions() -> None:
    driven = Appender()
    identity = driven.partition().partition
    ends = Ends()
    driven.logs.defers_appends = True
    driven.append(ends)
    driven.resign()
    assert driven.node._partitions.get(identity) is None
    assert ends.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_what_is_appended_meanwhile_goes_with_the_next_append() -> None:
    driven = Appender()
    ends = Ends()
    driven.logs.defers_appends = True
    for _ in range(3):
        driven.append(ends)
    assert [len(append.records) for append, _ in driven.logs.pending_appends] == [1]
    assert (driven.partition().log.end_offset, driven.partition().log.high_watermark) == (3, 0)
    driven.logs.end_append()
    assert [len(append.records) for append, _ in driven.logs.pending_appends] == [2]
    assert driven.partition().log.high_watermark == 1
    driven.logs.end_append()
    assert ends.errors == [ErrorCode.NONE] * 3


def test_a_failed_append_takes_those_behind_it_along() -> None:
    driven = Appender()
    ends = Ends()
    driven.append(ends)
    driven.logs.defers_appends = True
    driven.append(ends)
    driven.append(ends)
    driven.logs.end_append(ErrorCode.KAFKA_STORAGE_ERROR)
    assert ends.errors == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR]
    assert len(driven.emitted(AppendFailed)) == 1
    assert driven.partition().log.end_offset == 1


def test_readers_look_again_when_records_are_stored() -> None:
    driven = Appender()
    progress = Progress()
    driven.node._partitions.observe(progress)
    driven.append()
    assert progress.seen == [0]


def test_new_partitions_are_led_at_once_and_deleted_ones_have_no_log() -> None:
    driven = Appender()
    more = CreatePartitionsTopic(name=TOPIC, count=3, assignments=None)
    driven.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=1, validate_only=False), 3)
    assert driven.partition(2).epoch == 0
    driven.append()
    identity = driven.partition().partition
    driven.ask(DeleteTopicsRequest(topic_names=(TOPIC,), timeout_ms=1), 5)
    assert driven.node._partitions.identify(TOPIC, 0) is None
    assert driven.logs.of(identity).records == []


def test_the_end_of_a_real_log_is_its_high_watermark() -> None:
    driven = Appender()
    driven.append()
    (view,) = driven.node.describe_topics(driven.now)
    assert (view.records_per_second, view.end_offsets) == (None, [1])


def test_a_copy_of_a_node_goes_on_by_itself() -> None:
    driven = Appender()
    driven.append()
    copied = driven.node.copy(lambda token: token)
    driven.append()
    identity = driven.partition().partition
    led = copied._partitions.get(identity)
    assert led is not None
    assert (led.log.high_watermark, driven.partition().log.high_watermark) == (1, 2)
