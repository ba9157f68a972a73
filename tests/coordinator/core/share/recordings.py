"""A player of recorded sequences of Kafka's SharePartition, with Kafka's share coordinator behind it."""

from __future__ import annotations

import gzip
import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from rejoin.coordinator.core.share.window.aborted import (
    ReadBatch,
    aborted_batches,
    returned_batches,
)
from rejoin.coordinator.core.share.window.acquiring import AcquireLimits
from rejoin.coordinator.core.share.window.effects import CallEnded, DeadLetter, FetchesWoken, StateWrite
from rejoin.coordinator.core.share.window.share_partition import SharePartition
from rejoin.coordinator.core.share.window.values import (
    ReadRange,
    RecordRun,
    RecordState,
    SharePartitionView,
)
from rejoin.coordinator.core.share_state.share_states import ShareStates, WrittenState
from rejoin.coordinator.core.share_state.state_batch import PersistedState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Struct
from rejoin.protocol.messages.records.fetch import AbortedTransaction
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch
from rejoin.protocol.records.share_group_state import (
    NO_COUNT,
    ShareStateBatch,
    ShareStateRecord,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from tests.paths import GOLDEN

KEY = SharePartitionKey("g", "AAAAAAAAAAEAAAAAAAAAAQ", 0)


def sequences() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "share-groups" / "share-partition.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@dataclass
class GroupSettings:
    """The settings of a recording, for the window and the share coordinator."""

    lock_duration_ms: int
    delivery_count_limit: int
    max_record_locks: int
    allows_renewal: bool
    dead_letter_feature: bool
    dead_letter_topic: str
    reset: str
    updates_per_snapshot: int

    @property
    def has_dead_letters(self) -> bool:
        return self.dead_letter_feature and self.dead_letter_topic != ""


NAMES = {
    "delivery_limit": "delivery_count_limit",
    "lock_ms": "lock_duration_ms",
    "max_in_flight": "max_record_locks",
    "renew": "allows_renewal",
    "dlq_feature": "dead_letter_feature",
    "dlq_topic": "dead_letter_topic",
    "reset": "reset",
    "snapshot_every": "updates_per_snapshot",
}
DEFAULTS = {"persister": "ok", "dlq": "ok"}


class Player:
    """One sequence: ``play`` does a step and returns what the recording says of it."""

    def __init__(self, sequence: dict[str, Any]) -> None:
        self.settings = GroupSettings(**{NAMES[name]: value for name, value in sequence["settings"].items()})
        self.now: int = sequence["start"]
        self.log: list[dict[str, Any]] = list(sequence["log"])
        self.log_start = 0
        self.end = self.log[-1]["last"] + 1 if self.log else 0
        self.states = ShareStates(self.settings, lambda _: True)
        self.records: list[ShareStateRecord] = []
        self._step: dict[str, Any] = {}
        epoch, start = sequence["kept_at_start"]
        self._store(self.states.initialize(KEY, epoch, start, self.now).record)
        self.partition = SharePartition(0, self.settings)
        self.parked: deque[tuple[SharePartition, StateWrite]] = deque()
        self.letters: dict[tuple[int, int], int] = {}

    def _store(self, record: ShareStateRecord | None) -> None:
        if record is not None:
            self.records.append(record)
            self.states.replay(record)

    def play(self, step: dict[str, Any]) -> dict[str, Any]:
        do = step["do"]
        self.do, self.records = do, []
        self.out: dict[str, Any] = {}
        self.writes: list[dict[str, Any]] = []
        self.dead_letters: list[dict[str, Any]] = []
        operation = getattr(self, "do_" + do["op"])
        operation(**{name: value for name, value in do.items() if name not in ("op", *DEFAULTS)})
        self.settle()
        result: dict[str, Any] = {"do": do, "out": self.out}
        if self.writes:
            result["writes"] = self.writes
        if self.dead_letters:
            result["dead_letters"] = self.dead_letters
        if self.records:
            result["records"] = [record_as_json(record) for record in self.records]
        result["partition"] = view_as_json(self.partition.view(self.now))
        summary = self.states.summarize(KEY)
        result["kept"] = {
            "start_offset": summary.start_offset,
            "delivery_complete_count": summary.delivery_complete_count,
            "leader_epoch": summary.leader_epoch,
            "state_epoch": summary.state_epoch,
        }
        if self.parked:
            result["parked"] = len(self.parked)
        return result

    # --- effects, depth first

    def settle(self) -> None:
        for effect in self.partition.take_effects():
            if isinstance(effect, StateWrite):
                self._write(effect)
            elif isinstance(effect, DeadLetter):
                self._dead_letter(effect)
            elif isinstance(effect, CallEnded):
                if effect.breaks_request:
                    self.out["thrown"] = "NullPointerException"
                else:
                    self.out.setdefault("done", []).append({"call": effect.call, "error": int(effect.error)})
            else:
                assert isinstance(effect, FetchesWoken)
                self.out["notified"] = True

    def _write(self, write: StateWrite) -> None:
        how = self.do.get("persister", "ok")
        row = {
            "state_epoch": write.state_epoch,
            "leader_epoch": write.leader_epoch,
            "start_offset": write.start_offset,
            "delivery_complete_count": write.delivery_complete_count,
            "batches": [list(batch) for batch in write.batches()],
        }
        self.writes.append(row)
        if how == "park":
            row["result"] = "parked"
            self.parked.append((self.partition, write))
            return
        error, row["result"] = self._answer(write, how)
        self.partition.written(write.write_id, error)
        self.settle()

    def _answer(self, write: StateWrite, how: str) -> tuple[ErrorCode, str]:
        if how == "exception":
            return ErrorCode.UNKNOWN_SERVER_ERROR, how
        if how != "ok":
            return ErrorCode(int(how)), how
        written = WrittenState(
            write.state_epoch,
            write.leader_epoch,
            write.start_offset,
            write.delivery_complete_count,
            tuple(write.batches()),
        )
        changed = self.states.write(KEY, written, self.now)
        self._store(changed.record)
        return changed.error, str(int(changed.error))

    def _dead_letter(self, letter: DeadLetter) -> None:
        how = self.do.get("dlq", "ok")
        self.dead_letters.append(
            {
                "first": letter.first_offset,
                "last": letter.last_offset,
                "delivery_count": letter.delivery_count,
                "cause": letter.cause.value,
                "result": how,
            }
        )
        if how == "park":
            self.letters[letter.first_offset, letter.last_offset] = letter.letter_id
        else:
            self.partition.dead_letter_ended(letter.letter_id)
            self.settle()

    # --- operations

    def do_lead(self, leader_epoch: int) -> None:
        self.partition.fence()
        self.parked.clear()
        self.letters.clear()
        self.partition = SharePartition(leader_epoch, self.settings)
        assert self.partition.start_loading()
        how = self.do.get("persister", "ok")
        state: PersistedState | ErrorCode
        if how in ("ok", "park"):
            outcome = self.states.read(KEY, leader_epoch, self.now)
            self._store(outcome.record)
            state = outcome.error if outcome.state is None else outcome.state
        else:
            state = ErrorCode.UNKNOWN_SERVER_ERROR if how == "exception" else ErrorCode(int(how))
        reset = self.end if self.settings.reset == "latest" else self.log_start
        self.out["error"] = int(self.partition.loaded(state, lambda: reset))

    def do_produce(self, batches: list[dict[str, Any]]) -> None:
        self.log += batches
        self.end = self.log[-1]["last"] + 1

    def do_fetch(
        self, member: str, mode: str, batch_size: int, max_records: int, max_batches: int, committed: bool
    ) -> None:
        partition, out = self.partition, self.out
        if not partition.is_active:
            out["fetched"] = "not active"
            return
        if not partition.may_acquire():
            out["fetched"] = "full"
            return
        offset = out["fetch_offset"] = partition.next_fetch_offset()
        if offset < self.log_start or offset > self.end:
            out["fetched"] = "out of range"
            partition.log_start_moved(self.log_start)
            return
        stable = self._last_stable_offset() if committed else self.end
        read = [batch for batch in self.log if batch["last"] >= offset and batch["base"] < stable][:max_batches]
        if not read:
            out["fetched"] = "nothing"
            return
        ranges = [ReadRange(batch["base"], batch["last"]) for batch in read]
        out["read"] = [list(each) for each in ranges]
        aborted = self._aborted(read) if committed else []
        if committed:
            out["aborted"] = [[each.producer_id, each.first_offset] for each in aborted]
        limits = AcquireLimits(max_records, batch_size, mode == "record_limit")
        acquired = partition.acquire(member, ranges, offset, limits, self.now)
        if aborted and not acquired.broken:
            transactional = [
                ReadBatch(
                    each["base"], each["last"], each["producer"], each["kind"] != "plain", each["kind"] == "abort"
                )
                for each in read
            ]
            acquired = partition.drop_aborted(acquired, aborted_batches(transactional, aborted))
        if acquired.broken:
            out["thrown"] = "IllegalStateException"
            return
        out["acquired"] = [list(row) for row in acquired.rows]
        out["count"] = acquired.record_count
        returned = ranges[returned_batches(ranges, acquired.rows)]
        if returned:
            out["returned"] = [list(each) for each in returned]

    def _transactions(self) -> list[tuple[int, int, int | None, str]]:
        """Producer, first offset, the marker's offset (none: open) and the marker's kind of each transaction."""
        found: list[tuple[int, int, int | None, str]] = []
        opened: dict[int, int] = {}
        for batch in self.log:
            if batch["kind"] == "txn":
                opened.setdefault(batch["producer"], batch["base"])
            elif batch["kind"] != "plain" and batch["producer"] in opened:
                first = opened.pop(batch["producer"])
                found.append((batch["producer"], first, batch["last"], batch["kind"]))
        return found + [(producer, first, None, "open") for producer, first in opened.items()]

    def _last_stable_offset(self) -> int:
        return min((first for _, first, marker, _ in self._transactions() if marker is None), default=self.end)

    def _aborted(self, read: list[dict[str, Any]]) -> list[AbortedTransaction]:
        begin, end = read[0]["base"], read[-1]["last"]
        return [
            AbortedTransaction(producer_id=producer, first_offset=first)
            for producer, first, marker, kind in self._transactions()
            if kind == "abort" and first <= end and marker is not None and marker >= begin
        ]

    def do_acknowledge(self, member: str, batches: list[Any], call: int) -> None:
        asked = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(types))
            for first, last, types in batches
        ]
        self.partition.acknowledge(call, member, asked, self.now)

    def do_release(self, member: str, call: int) -> None:
        self.partition.release(call, member, self.now)

    def do_sleep(self, ms: int) -> None:
        self.now += ms
        fired = []
        while (offsets := self.partition.expire_next(self.now)) is not None:
            fired.append(list(offsets))
            self.settle()
        if fired:
            self.out["fired"] = fired

    def do_answer(self) -> None:
        partition, write = self.parked.popleft()
        error, self.out["kept"] = self._answer(write, self.do["persister"])
        partition.written(write.write_id, error)

    def do_letter(self, first: int, last: int, written: bool) -> None:
        self.partition.dead_letter_ended(self.letters.pop((first, last)))

    def do_log_start(self, offset: int) -> None:
        self.log_start = offset
        self.log = [batch for batch in self.log if batch["last"] >= offset]

    def do_compacted(self, base: int, last: int) -> None:
        self.log = [batch for batch in self.log if (batch["base"], batch["last"]) != (base, last)]

    def do_initialize(self, state_epoch: int, start_offset: int) -> None:
        changed = self.states.initialize(KEY, state_epoch, start_offset, self.now)
        self._store(changed.record)
        self.out["error"] = int(changed.error)

    def do_settings(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self.settings, NAMES[name], value)


def record_as_json(record: ShareStateRecord) -> dict[str, Any]:
    """A record as Kafka's converters write it: fields that have their default are left out."""
    value = None if record.value is None else struct_as_json(record.value)
    if value is not None and value["deliveryCompleteCount"] == NO_COUNT:
        del value["deliveryCompleteCount"]
    group_id, topic_id, partition = record.key
    key = {"groupId": group_id, "topicId": topic_id, "partition": partition}
    return {"type": int(record.type), "key": key, "value": value}


def struct_as_json(struct: Struct) -> dict[str, Any]:
    return {to_camel(name): as_json(getattr(struct, name)) for name in type(struct).model_fields}


def as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [batch_as_json(each) for each in value]
    return value


def batch_as_json(batch: ShareStateBatch) -> dict[str, int]:
    return {to_camel(name): value for name, value in batch._asdict().items()}


def run_as_json(run: RecordRun) -> list[Any]:
    first, last, state, count, member, in_transition, lock_ms = run
    return [first, last, RecordState(state).name, count, member, in_transition, lock_ms]


def view_as_json(view: SharePartitionView) -> dict[str, Any]:
    """The picture of a share-partition as the recordings have it."""
    return {
        "state": view.state.value,
        "start_offset": view.start_offset,
        "end_offset": view.end_offset,
        "find_next": view.find_next,
        "delivery_complete_count": view.delivery_complete_count,
        "state_epoch": view.state_epoch,
        "leader_epoch": view.leader_epoch,
        "gap_window": None if view.gap_window is None else list(view.gap_window),
        "batches": [
            [batch.first_offset, batch.last_offset, [run_as_json(run) for run in batch.runs]]
            if batch.by_record
            else run_as_json(batch.runs[0])
            for batch in view.batches
        ],
    }
