"""Packs the recordings for ``rejoin conform``, into conform/recordings: ``python -m conformance.packing``.

A script that cannot be asked of another broker is packed as its header and the reason.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from conformance.packing_share_groups import LONGEST_MS as LONGEST_OF_SHARE_GROUPS_MS
from conformance.packing_share_groups import paths_of_share_groups, scripts_of_share_groups
from conformance.packing_streams_groups import path_of_streams_groups, scripts_of_streams_groups
from conformance.player.recorder import GOLDEN
from rejoin.conform.player.messages import Json
from rejoin.conform.recordings.reading import RELEASE, SETS, pack, packed_path

OFFSETS: Final = ("commits", "fetches", "retention", "small")
ADMIN: Final = ("topics", "configs", "creating", "describing", "acl")
WIRE: Final = ("bad-requests",)
RECORDS: Final = ("record-mixtures", "compaction")
OF_RECORDS: Final = ("fetch-", "produce-", "list-offsets-", "not-the-leader")
WAITS: Final = ("wait", "wait until the transaction is complete", "wait until no transaction is open")
LONGEST_MS: Final = 15_000
"""A script that takes longer waits for what a clock of the broker's brings about."""
OF_CLUSTER: Final = ("UpdateFeatures", "AlterPartitionReassignments", "ElectLeaders", "CreateAcls", "DeleteAcls")
CONFIGS: Final = ("AlterConfigs", "IncrementalAlterConfigs")
BY_DRAWN_IDS: Final = frozenset(
    f"groups/{name}"
    for name in (
        "heartbeat-classic",
        "join-classic",
        *(f"{api}-classic-beside" for api in ("classic", "delete", "describe", "heartbeat", "join", "offsets")),
    )
)
"""Scripts in which the hash of a classic member's id decides where the assignor comes to it."""
STREAMS_HEARTBEAT: Final = "StreamsGroupHeartbeat"
"""A topology that names internal topics is refused everywhere."""
TOPIC, GROUP, OWN_NAMES = 2, 32, "__"
SURROUNDING: Final = frozenset({"move", "stop", "start", "fill", "loaded"})


SOURCES: Final = Path(__file__).with_name("packed-recordings.sha256")
"""Digest of the recordings that were packed."""


def digest() -> str:
    """The digest of all recordings as they are now."""
    found = hashlib.sha256()
    others = (
        *_paths_of_transactions(),
        *_paths_of_consumer_groups(),
        *paths_of_share_groups(),
        path_of_streams_groups(),
    )
    for path in sorted((*_paths_of_steps(), *others)):
        found.update(f"{path.relative_to(GOLDEN)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def packed_sets(scripts: Iterable[tuple[str, Json, list[Json]]]) -> dict[str, list[Json]]:
    """The lines of each set's file, from scripts with their sets."""
    found: dict[str, list[Json]] = {name: [] for name in SETS}
    for of_set, header, lines in scripts:
        reason = _unplayable(header, lines)
        if reason is None:
            found[of_set] += [header, *lines]
        else:
            kept = {name: header[name] for name in ("script", "settings", "topics")}
            found[of_set].append({**kept, "unplayable": reason})
    return found


def scripts_in_steps() -> Iterator[tuple[str, Json, list[Json]]]:
    """The scripts that are written in steps, each with its set, its header and its lines."""
    for path in _paths_of_steps():
        header, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        subject = path.parent.name
        named = {"offsets": OFFSETS, "admin": ADMIN, "wire": WIRE, "transactions": ("transactions",)}
        of_set = next((name for name, subjects in named.items() if subject in subjects), "groups")
        header["group"] = f"{subject}.{path.stem}"
        yield of_set, header, lines


def _paths_of_steps() -> list[Path]:
    return sorted((GOLDEN / "kafka-4.x").glob("*/*/*.jsonl"))


def _paths_of_transactions() -> list[Path]:
    folder = GOLDEN / "transactions"
    return [*sorted(folder.glob("*.jsonl")), *sorted((folder / "recorded").glob("*.gz"))]


def _paths_of_consumer_groups() -> list[Path]:
    return sorted((GOLDEN / "consumer-groups" / "recorded").glob("*.gz"))


def _exchanges() -> Iterator[tuple[str, Json, list[Json]]]:
    for path in _paths_of_transactions():
        yield from _exchanges_of(path, "transactions")
    for path in _paths_of_consumer_groups():
        yield from _exchanges_of(path, "consumer-protocol")
    yield from scripts_of_share_groups()
    yield from scripts_of_streams_groups()


def _exchanges_of(path: Path, of_set: str) -> Iterator[tuple[str, Json, list[Json]]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    name = path.name.partition(".")[0]
    header: Json = {}
    lines: list[Json] = []
    for line in (*map(json.loads, text.splitlines()), {"script": ""}):
        if "script" not in line:
            lines.append(line)
            continue
        if header:
            alone = header["script"] == name
            is_about_records = name in RECORDS or (alone and name.startswith(OF_RECORDS))
            wanted = "wire" if name == "all-api-versions" else "records" if is_about_records else of_set
            yield wanted, header | {"script": name if alone else f"{name}/{header['script']}"}, lines
        header, lines = line, []


def _unplayable(header: Json, lines: list[Json]) -> str | None:
    """Why a script cannot be asked of any broker; None where it can."""
    actions = {line["do"] for line in lines if "do" in line} - set(WAITS)
    actions |= {word for step in header.get("steps", ()) for word in step if word in SURROUNDING}
    requests = [line for line in lines if "request" in line]
    if header["brokers"] > 1 or actions:
        return "brokers are moved, stopped or started"
    if header.get("deny"):
        return "rights of the cluster are changed"
    if header.get("epochs"):
        return "the transaction log is written by hand"
    if any(_changes_cluster(line) for line in requests):
        return "settings or features of the cluster are changed"
    if any(f'"{OWN_NAMES}' in json.dumps(line["request"]) for line in requests if line["api"] != STREAMS_HEARTBEAT):
        return "partitions of internal topics are named, and other names are elsewhere"
    if "ids" in header or header["script"] in BY_DRAWN_IDS:
        return "the outcome follows from the ids that Kafka drew"
    if any("segment.ms" in topic["configs"] for topic in header["topics"].values() if isinstance(topic, dict)):
        return "the log cleaner is waited for"
    instants = (line[name] for line in lines for name in ("answered", "ended", "at") if name in line)
    longest = LONGEST_OF_SHARE_GROUPS_MS if header.get("brief") else LONGEST_MS
    if max(instants, default=0) > longest:
        return f"it takes longer than {longest // 1000} s: a virtual clock is needed"
    return None


def _changes_cluster(line: Json) -> bool:
    if line["api"] in CONFIGS:
        return any(each["resourceType"] not in (TOPIC, GROUP) for each in line["request"]["resources"])
    return line["api"] in OF_CLUSTER


def main() -> None:
    """Write the file of each set, or of those that the command line names."""
    SOURCES.write_text(f"{digest()}\n")
    for name, lines in packed_sets((*scripts_in_steps(), *_exchanges())).items():
        if name not in (sys.argv[1:] or SETS):
            continue
        path = packed_path(name, RELEASE)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pack(lines))
        print(f"{path.name}: {sum('script' in line for line in lines)} scripts, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
