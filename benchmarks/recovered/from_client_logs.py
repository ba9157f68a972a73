"""How much of what was done to real consumers is found in their logs, by client.

    python -m benchmarks recovered.from_client_logs
    python -m benchmarks.recovered.from_client_logs FOLDER ...        # recorded by make record-client-logs

The logs of ``tests/golden/client-logs`` were written by real clients while they were started, killed, paused, slowed
down and redeployed; a ledger has what was done, when and to which of them. Each action is to be found with its member
and its cause, once from the clients' logs alone and once with the broker's log; whatever is found and was not done is
invented. The lives of the recordings called ``drawn-`` were drawn from a seed after the catalogue was complete: nothing
was made to fit them.
No times of this machine are measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.on_spark import PARSED, follow
from rejoin.pipeline.reading.client_logs.owners import UNNAMED, named_groups
from rejoin.pipeline.reading.client_logs.statements import NO_GROUP
from rejoin.pipeline.reading.log_files import read_file

GOLDEN: Final = Path(__file__).parents[2] / "tests" / "golden" / "client-logs"
SETS: Final = tuple(sorted(each.parent.name for each in GOLDEN.glob("*/ledger.json")))
WITHOUT_POLL_TIMEOUT: Final = ("franz-go",)
"""Its heartbeats go on while a handler is slow, for however long: nothing happens to the group."""
ENOUGH: Final = 0.9
"""Of what was done, this share is to be found."""
EARLY_MS: Final = 1_000
SOON_MS: Final = 30_000
"""An action shows in a log within this, beside its own length: a session and the rejoin of all others."""
AFTER_OUTAGE_MS: Final = 60_000
"""What happens so soon after the broker is back may have come from its absence."""


@dataclass(slots=True)
class Recovered:
    """One group: what was done to it, what of that is found, and what is found and was not done."""

    family: str
    group: str
    done: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    unread: int = 0

    @property
    def share(self) -> float:
        return 1 - len(self.missed) / len(self.done)


@dataclass(frozen=True, slots=True)
class Action:
    what: str
    member: str | None
    from_ms: int
    to_ms: int
    is_logged: bool = True
    """Whether it leaves a trace; else the ledger says why not."""


_GONE: Final = ("left", "session-expiry", "did-not-rejoin", "rebalance-expiry")


def recovered(folder: Path, *, with_broker: bool = False) -> list[Recovered]:
    """The groups of one recording."""
    ledger = json.loads((folder / "ledger.json").read_text())
    files = sorted((*folder.glob("*/*.log.gz"), *folder.glob("*/*.log")))
    events, unread = read([*files, folder / "server.log.gz"] if with_broker else files)
    found = []
    for group, settings in ledger["groups"].items():
        mine = [
            each for each in events if group in (each.get("group_id"), each.get("topic")) or _of_member(each, group)
        ]
        one = Recovered(
            settings["library"], group, unread=sum(n for path, n in unread.items() if group == path.parent.name)
        )
        actions = list(actions_of(ledger["done"], group, bool(settings.get("static"))))
        if settings["library"] in WITHOUT_POLL_TIMEOUT:
            actions = [each for each in actions if each.what != "slow-handler"]
        for action in actions:
            if not action.is_logged:
                continue
            name = f"{action.what} {action.member or ''}".strip()
            one.done.append(name)
            if not any(_shows(event, action) for event in mine):
                one.missed.append(name)
        one.invented = [_said(each) for each in mine if _claims(each) and not _was_done(each, actions)]
        found.append(one)
    return found


def _of_member(event: EventRow, group: str) -> bool:
    """Whether an event of a consumer whose group is not known is about a member of this one."""
    return event.get("group_id") == NO_GROUP and str(event.get("client_id")).rsplit("-", 1)[0] == group


def read(files: Iterable[Path]) -> tuple[list[EventRow], dict[Path, int]]:
    """The events of files, and how many lines of each could not be read."""
    rows: list[dict[str, Any]] = []
    unread: dict[Path, int] = {}
    for path in files:
        for row in _golden_rows(path) if path.is_relative_to(GOLDEN) else read_file(str(path)):
            if row["what"] == "broken":
                unread[path] = unread.get(path, 0) + 1
            elif row["what"] != "file":
                rows.append(row)
    groups = named_groups(
        {row["about"][len(UNNAMED) :] for row in rows if row["about"].startswith(UNNAMED)},
        ((row["about"], row["body"]) for row in rows if row["about"].startswith("g:")),
    )
    subjects: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        about = groups.get(row["about"], row["about"])
        subjects.setdefault(about, []).append({**dict.fromkeys(PARSED.names), **row, "about": about})
    schema = PARSED
    return [each for mine in subjects.values() for each in _followed(mine, schema)], unread


@cache
def _golden_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a recorded file, which is read once for all that is asked about it; they are not to be changed."""
    return list(read_file(str(path)))


def _followed(rows: list[dict[str, Any]], schema: pa.Schema) -> list[EventRow]:
    made = follow(pa.Table.from_pylist(rows, schema)).to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in made]


def actions_of(done: Iterable[Mapping[str, Any]], group: str, static: bool) -> Iterator[Action]:
    for each in done:
        members = [name for name in each.get("members", ()) if name.rsplit("-", 1)[0] == group]
        what, to_ms = each["do"], each.get("to_ms", each["from_ms"])
        if what == "broker-restart" or (what == "grow" and group in each["topics"]):
            yield Action(what, None, each["from_ms"], to_ms, each.get("is_logged", True))
        for nth, member in enumerate(members):
            if what == "rolling-restart":
                began = each["from_ms"] + nth * each["every"] * 1_000
                yield Action("static-restart" if static else "restart", member, began, began + each["away"] * 1_000)
            elif what != "duplicate" or static:
                yield Action(what, member, each["from_ms"], to_ms, each.get("is_logged", True))


def _names(event: EventRow) -> tuple[str | None, ...]:
    """By what an event calls a member; one without an id is called by its file."""
    file = str(event.get("member_id", "")).rpartition("#")[0].rpartition("/")[2]
    return event.get("client_id"), event.get("group_instance_id"), file


def _shows(event: EventRow, action: Action) -> bool:
    """Whether an event shows an action: its member, its cause, and at its time."""
    early_ms = AFTER_OUTAGE_MS if action.what == "stop" and event.get("cause") != "left" else EARLY_MS
    if not action.from_ms - early_ms <= event["at_ms"] <= action.to_ms + SOON_MS:
        return False
    name, cause = event["event"], event.get("cause")
    if action.member is None:
        shows: tuple[str, ...] = ("topic_grown",) if action.what == "grow" else ("group_loaded",)
        return name in shows
    if action.member not in _names(event):
        return False
    shows_it: dict[str, bool] = {
        "kill": name == "member_removed" and cause == "session-expiry",
        "start": name == "member_joined",
        # One that had not come back since the broker was away cannot leave any more.
        "stop": name == "member_removed" and (cause == "left" or event["at_ms"] < action.from_ms - EARLY_MS),
        # Where no line shows a process begin, a member that comes back may be that.
        "restart": name == "member_joined" and not event.get("other_member_id"),
        # One that is away for longer than its session joins again.
        "static-restart": name == "static_member_replaced"
        or (name == "member_joined" and not event.get("other_member_id")),
        "pause": (name == "member_removed" and cause in _GONE) or name == "heartbeat_failed",
        "slow-handler": name == "poll_timeout_exceeded" or (name == "member_removed" and cause in _GONE),
        "duplicate": name in ("fenced", "member_fenced", "static_member_replaced"),
    }
    return shows_it[action.what]


def _claims(event: EventRow) -> bool:
    """Whether an event says that something was done to a consumer."""
    return event["event"] in ("member_removed", "poll_timeout_exceeded", "fenced", "topic_grown", "group_loaded")


def _was_done(event: EventRow, actions: Iterable[Action]) -> bool:
    name = event["event"]
    for action in actions:
        if not action.from_ms - EARLY_MS <= event["at_ms"] <= action.to_ms + AFTER_OUTAGE_MS:
            continue
        if action.what == "broker-restart" and name != "topic_grown":
            return True
        if action.member is None:
            if action.what == "grow" and name == "topic_grown":
                return True
        elif action.member in _names(event):
            return True
    return False


def _said(event: EventRow) -> str:
    who = event.get("client_id") or event.get("member_id") or ""
    return f"{event['event']} {who} {event.get('cause', '')}".strip()


def table(folders: Iterable[Path]) -> tuple[list[str], bool]:
    """The table, and whether enough was found everywhere and nothing invented."""
    columns = f"{'recording':<18} {'group':<16} {'actions':>7}"
    lines = [f"{columns}  {'clients alone':<24} {'with the broker log':<24} unread lines"]
    good = True
    for folder in folders:
        pairs = zip(recovered(folder), recovered(folder, with_broker=True), strict=True)
        for alone, joined in pairs:
            cells = [f"{each.share:4.0%}, {len(each.invented)} invented" for each in (alone, joined)]
            columns = f"{folder.name:<18} {alone.group:<16} {len(alone.done):>7}"
            lines.append(f"{columns}  {cells[0]:<24} {cells[1]:<24} {alone.unread}")
            for each, how in ((alone, ""), (joined, " with the broker log")):
                lines += [f"    missed{how}: {what}" for what in each.missed]
                lines += [f"    invented{how}: {what}" for what in each.invented]
            good = good and joined.share >= ENOUGH and not alone.invented and not joined.invented
    return lines, good


def main(folders: Iterable[Path] = ()) -> int:
    """Print the table, of all recordings where none is given. Returns 1 where too little or too much was found."""
    lines, good = table(list(folders) or [GOLDEN / name for name in SETS])
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(map(Path, sys.argv[1:])))
