"""Random steps for the player of recordings: members, a log, a share coordinator that fails or is late, new leaders."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.coordinator.core.share.recordings import Player

MEMBERS = ("A", "B", "C")
ERRORS = ("3", "14", "15", "16", "42", "69", "74", "124", "-1", "exception")


def random_sequence(random: Random) -> dict[str, Any]:
    """A sequence without steps: settings, a log, and no state yet."""
    settings = {
        "delivery_limit": random.randrange(2, 8),
        "lock_ms": 5_000,
        "max_in_flight": random.choice((12, 40, 2_000)),
        "renew": random.random() < 0.9,
        "dlq_feature": random.random() < 0.5,
        "dlq_topic": random.choice(("", "dlq.t")),
        "reset": random.choice(("earliest", "latest")),
        "snapshot_every": random.choice((0, 1, 4, 500)),
    }
    log = [{"base": 0, "last": 4, "kind": "plain", "producer": -1}]
    return {"settings": settings, "start": 1_700_000_000_000, "log": log, "kept_at_start": [0, -1]}


class RandomSteps:
    """Steps one after the other, each by how the player is now."""

    def __init__(self, random: Random, player: Player) -> None:
        self._random = random
        self._player = player
        self._calls = 0
        self._leader_epoch = 0
        self._state_epoch = 0

    def next(self) -> dict[str, Any]:
        random = self._random
        kinds = {"fetch": 30, "acknowledge": 30, "produce": 9, "sleep": 8, "release": 5, "lead": 3, "log_start": 2}
        kinds |= {"compacted": 2, "settings": 2, "initialize": 1}
        kinds["answer"] = 8 if self._player.parked else 0
        kinds["letter"] = 8 if self._player.letters else 0
        op = random.choices(list(kinds), list(kinds.values()))[0]
        step = {"op": op, **getattr(self, "_" + op)()}
        if op == "answer" and "persister" not in step:
            step["persister"] = random.choice(("ok", "ok", "15", "exception"))
        elif op in ("acknowledge", "release", "sleep") and random.random() < 0.3:
            step["persister"] = random.choice((*ERRORS, *["park"] * 10))
        if random.random() < 0.3:
            step["dlq"] = random.choice(("fail", "park"))
        return step

    def _member(self) -> str:
        return self._random.choice(MEMBERS)

    def _fetch(self) -> dict[str, Any]:
        random = self._random
        return {
            "member": self._member(),
            "mode": random.choice(("batch_optimized", "record_limit")),
            "batch_size": random.choice((1, 4, 500)),
            "max_records": random.choice((1, 3, 10, 500)),
            "max_batches": random.randrange(1, 7),
            "committed": random.random() < 0.3,
        }

    def _acknowledge(self) -> dict[str, Any]:
        """Usually what the member holds, whole or in part; else any range."""
        random, member = self._random, self._member()
        view = self._player.partition.view(self._player.now)
        held = [
            (run.first_offset, run.last_offset)
            for batch in view.batches
            for run in batch.runs
            if run.member_id == member
        ]
        if random.random() < 0.1 or not held:
            first = random.randrange(max(0, view.start_offset - 3), view.end_offset + 3)
            held = [(first, first + random.randrange(6))]
        batches = []
        for run in held[random.randrange(len(held)) :][: random.randrange(1, 4)]:
            part = sorted((random.randint(*run), random.randint(*run)))
            first, last = part if random.random() < 0.4 else run
            size = last - first + 1 if random.random() < 0.5 else 1
            batches.append([first, last, random.choices((0, 1, 2, 3, 4), (1, 5, 5, 2, 2), k=size)])
        self._calls += 1
        return {"member": member, "batches": batches, "call": self._calls}

    def _release(self) -> dict[str, Any]:
        self._calls += 1
        return {"member": self._member(), "call": self._calls}

    def _produce(self) -> dict[str, Any]:
        random, base, batches = self._random, self._player.end, []
        for _ in range(random.randrange(1, 4)):
            base += random.choice((0, 0, 0, 3))
            kind = random.choice(("plain", "plain", "txn", "abort", "commit"))
            last = base if kind in ("abort", "commit") else base + random.randrange(12)
            batches.append({"base": base, "last": last, "kind": kind, "producer": random.randrange(2)})
            base = last + 1
        return {"batches": batches}

    def _sleep(self) -> dict[str, Any]:
        return {"ms": self._random.choice((10, 900, 5_001, 9_000))}

    def _lead(self) -> dict[str, Any]:
        self._leader_epoch += self._random.randrange(2)
        return {"leader_epoch": self._leader_epoch}

    def _log_start(self) -> dict[str, Any]:
        start = self._player.partition.start_offset
        return {"offset": min(start + self._random.randrange(9), self._player.end)}

    def _compacted(self) -> dict[str, Any]:
        batch = self._random.choice(self._player.log or [{"base": 0, "last": 0}])
        return {"base": batch["base"], "last": batch["last"]}

    def _settings(self) -> dict[str, Any]:
        name, value = self._random.choice((("delivery_limit", 3), ("renew", True), ("dlq_topic", "")))
        return {name: value}

    def _initialize(self) -> dict[str, Any]:
        self._state_epoch += 1
        return {"state_epoch": self._state_epoch, "start_offset": self._random.randrange(self._player.end + 1)}

    def _answer(self) -> dict[str, Any]:
        return {}

    def _letter(self) -> dict[str, Any]:
        first, last = self._random.choice(sorted(self._player.letters))
        return {"first": first, "last": last, "written": self._random.random() < 0.5}
