"""A model that is made without a check is the one that is made with it."""

from __future__ import annotations

from rejoin.journal.events.coordinator import CommittedOffset
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.find_coordinator import Coordinator
from rejoin.protocol.unvalidated import unvalidated


def test_it_equals_the_checked_one_and_is_written_like_it() -> None:
    fields = {"key": "g", "node_id": 1, "host": "h", "port": 9, "error_code": ErrorCode.NONE, "error_message": None}
    made = unvalidated(Coordinator, **fields)
    checked = Coordinator(key="g", node_id=1, host="h", port=9, error_code=ErrorCode.NONE, error_message=None)
    assert made == checked
    assert hash(made) == hash(checked)
    assert made.to_json(4) == checked.to_json(4)
    assert made.model_copy(update={"port": 10}).port == 10


def test_models_that_are_no_messages_can_be_made_so_too() -> None:
    made = unvalidated(CommittedOffset, topic="t", partition=0, offset=5, leader_epoch=-1, metadata="")
    assert made == CommittedOffset(topic="t", partition=0, offset=5)
    assert made.model_dump_json() == CommittedOffset(topic="t", partition=0, offset=5).model_dump_json()
