"""How much of what is done to simulated consumers is found in logs that are written of them, by client and version.

    python -m benchmarks recovered.from_written_client_logs
    python -m benchmarks.recovered.from_written_client_logs --seeds 30

The simulator plays lives drawn from seeds: consumers are killed, paused, slowed down and redeployed, a topic grows, the
broker restarts. What each consumer does is written down as each library logs it, read as if it were a real log, and
compared with what was done, as :mod:`benchmarks.recovered.from_client_logs` does with recorded logs. No times of this
machine are measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.recovered.from_client_logs import ENOUGH, Recovered, recovered
from conformance.clients.logs.lives import Action, drawn
from rejoin.client.log_writer.libraries import COOPERATIVE, LIBRARIES, STATIC
from rejoin.client.log_writer.writer import ClientLog
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import ConsumerEvent
from rejoin.journal.events.simulation import ConsumerStarted, TopicWritten
from rejoin.journal.kafka_logs.template import Version
from rejoin.simulation.kernel import Actor
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.simulation import Simulation

SEEDS: Final = 4
GROUP: Final = "orders"
PARTITIONS: Final = 6
BASE_MS: Final = 1_700_000_000_000
SETTINGS: Final = {"session.timeout.ms": "8000", "max.poll.interval.ms": "12000"}
WITHOUT_OUTAGES: Final = frozenset({"kafkajs", "franz-go", "sarama"})
"""Libraries whose consumers rejoin after an outage, as those of the simulator do not: nothing is written of it."""
COOPERATIVE_SINCE: Final = {"java": (2, 4)}


class Life(NamedTuple):
    """A simulated run: what was done, and what its consumers did, in order."""

    seed: int
    static: bool
    cooperative: bool
    done: list[Action]
    emitted: list[tuple[int, Event]]


def play(seed: int, *, static: bool = False, cooperative: bool = False) -> Life:
    """Play the life of a seed."""
    done = drawn(seed, {GROUP: static})
    emitted: list[tuple[int, Event]] = []

    def on_event(actor: Actor, event: Event, now: int) -> None:
        if isinstance(event, ConsumerEvent | ConsumerStarted | TopicWritten):
            emitted.append((BASE_MS + now, event))

    assignor = "cooperative-sticky" if cooperative else "range"
    Simulation(scenario(seed, done, assignor, static=static), listeners=[on_event]).run()
    return Life(seed, static, cooperative, done, emitted)


def scenario(seed: int, done: Iterable[Action], assignor: str, *, static: bool) -> Scenario:
    """The same actions for the simulator."""
    done = list(done)
    group: dict[str, Any] = {
        "topics": GROUP,
        "consumers": 3,
        "assignor": assignor,
        "static": static,
        "commit": "after",
        "session_timeout": f"{SETTINGS['session.timeout.ms']}ms",
        "heartbeat_interval": "1500ms",
        "max_poll_interval": f"{SETTINGS['max.poll.interval.ms']}ms",
        "metadata_max_age": "6s",
        "revive": "1d",
        "poll": "1s",
        "start": {"every": "100ms"},
    }
    return Scenario.model_validate(
        {
            "horizon": f"{max(action['at'] for action in done) + 25}s",
            "seed": seed,
            "topics": {GROUP: {"partitions": PARTITIONS, "records_per_second": 0.5}},
            "groups": {GROUP: group},
            "events": [event for nth, action in enumerate(done) for event in _events(action, done[nth + 1 :])],
        }
    )


def _events(action: Action, later: Iterable[Action]) -> Iterator[dict[str, Any]]:
    at, what, members = f"{action['at']}s", action["do"], action.get("members", [])
    who = members[0] if members else None
    match what:
        case "kill":
            back = next(each["at"] for each in later if each["do"] == "start" and each["members"] == members)
            yield {"at": at, "crash": {"who": who, "down": f"{back - action['at']}s"}}
        case "start" if members == [f"{GROUP}-4"]:
            yield {"at": at, "scale": {"group": GROUP, "to": 4}}
        case "stop":
            yield {"at": at, "stop": {"who": who}}
        case "pause":
            yield {"at": at, "pause": {"who": who, "for": f"{action['for']}s"}}
        case "slow-handler":
            yield {"at": at, "stuck": {"who": who, "for": f"{action['for']}s"}}
        case "rolling-restart":
            for nth, member in enumerate(members):
                began = action["at"] + nth * action["every"]
                yield {"at": f"{began}s", "stop": {"who": member, "down": f"{action['away']}s"}}
        case "grow":
            yield {"at": at, "grow": {"topic": GROUP, "to": action["partitions"]}}
        case "broker-restart":
            yield {"at": at, "restart": {"down": f"{action['away']}s"}}
        case "duplicate":
            yield {"at": at, "duplicate": {"who": who}}


@dataclass
class _Written:
    """The logs of a group's consumers, one for each client id."""

    library: str
    version: Version
    static: bool
    logs: dict[str, ClientLog] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    partitions: int = PARTITIONS

    def take(self, at_ms: int, event: Event) -> None:
        if isinstance(event, TopicWritten):
            before, self.partitions = self.partitions, event.partition_count
            if before < self.partitions:
                for name, log in self.logs.items():
                    self.lines[name] += log.topic_resized(event.topic, before, self.partitions, at_ms)
        elif isinstance(event, ConsumerStarted):
            self.lines.setdefault(event.client_id, []).extend(self._log(event.client_id).started(at_ms))
        elif isinstance(event, ConsumerEvent):
            self.lines[event.client_id] += self._log(event.client_id).lines(event, at_ms)

    def _log(self, client_id: str) -> ClientLog:
        if client_id not in self.logs:
            make = LIBRARIES[self.library][0]
            instance = client_id if self.static else None
            self.logs[client_id] = make(client_id, GROUP, version=self.version, instance_id=instance, settings=SETTINGS)
        return self.logs[client_id]


def found_in(life: Life, library: str, version: Version) -> Recovered:
    """What is found in the logs of a life."""
    written = _Written(library, version, life.static)
    for at_ms, event in life.emitted:
        written.take(at_ms, event)
    with tempfile.TemporaryDirectory(prefix="written-logs-") as work:
        folder = Path(work)
        (folder / GROUP).mkdir()
        for name, lines in written.lines.items():
            (folder / GROUP / f"{name}.log").write_text("\n".join([*lines, ""]))
        (folder / "ledger.json").write_text(json.dumps(_ledger(life, library)))
        return recovered(folder)[0]


def _ledger(life: Life, library: str) -> dict[str, Any]:
    done = []
    for action in life.done:
        is_logged = action["do"] != "broker-restart" or library not in WITHOUT_OUTAGES
        from_ms = BASE_MS + 1_000 * action["at"]
        lasts = int(action.get("away", 0) if action["do"] == "broker-restart" else action.get("for", 0))
        done.append({"from_ms": from_ms, "to_ms": from_ms + 1_000 * lasts, "is_logged": is_logged, **action})
    return {"groups": {GROUP: {"library": f"written {library}", "static": life.static}}, "done": done}


@dataclass
class Score:
    """Of a library in a version, over all lives."""

    done: int = 0
    missed: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    unread: int = 0

    @property
    def share(self) -> float:
        return 1 - len(self.missed) / self.done

    def add(self, seed: int, found: Recovered) -> None:
        self.done += len(found.done)
        self.unread += found.unread
        self.missed += [f"seed {seed}: {each}" for each in found.missed]
        self.invented += [f"seed {seed}: {each}" for each in found.invented]


def scores(seeds: Iterable[int]) -> dict[tuple[str, Version], Score]:
    """Every library in every version, over the lives of the seeds."""
    made = {(library, version): Score() for library, (_, versions) in LIBRARIES.items() for version in versions}
    for seed in seeds:
        for static, cooperative in ((False, False), (False, True), (True, seed % 2 == 1)):
            life = play(seed, static=static, cooperative=cooperative)
            for (library, version), score in made.items():
                if is_of(library, version, static=static, cooperative=cooperative):
                    score.add(seed, found_in(life, library, version))
    return made


def is_of(library: str, version: Version, *, static: bool, cooperative: bool) -> bool:
    """Whether consumers of a library can have such a life."""
    is_cooperative = library in COOPERATIVE and version >= COOPERATIVE_SINCE.get(library, version)
    return (library in STATIC or not static) and (is_cooperative or not cooperative)


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Returns 1 where too little was found or something invented."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many lives")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    options = parser.parse_args(arguments or [])
    made = scores(range(options.first, options.first + options.seeds))
    print(f"{'library':<16} {'actions':>7}  found  invented  unread lines")
    for (library, version), score in made.items():
        name = f"{library} {'.'.join(map(str, version))}"
        print(f"{name:<18} {score.done:>5}  {score.share:5.1%} {len(score.invented):>8} {score.unread:>13}")
        for what in ("missed", "invented"):
            for each in getattr(score, what):
                print(f"    {what}: {each}")
    wanted = [score for (library, _), score in made.items() if library != "rdkafka"]
    return 0 if all(each.share >= ENOUGH and not each.invented for each in wanted) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
