"""Scripts: what several clients ask and wait for over time, in YAML that reads from top to bottom.

A folder below ``scripts/`` is a set: its scripts share a broker, with the settings of ``settings.yaml`` there. A file
is a subject; each key in it names a script and says what it shows. A script is a list of steps, one a line:

    member-leaves:                                       # the name
      - {member: a, sessionTimeoutMs: 1000}              # what all of a's requests say, in Kafka's own field names
      - {a: JoinGroup}                                   # a sends a request and waits for the answer
      - {a: JoinGroup, parks: true}                      # ... or is seen to get none yet
      - {await: a}                                       # now a's oldest open request must be answered
      - {a: SyncGroup, give: {a: orders-0 orders-1}}     # assignments, by member
      - {a: Heartbeat, version: 3, expect: NONE}         # a version; an error that the author means to see
      - {wait: 500}                                      # milliseconds; ``at`` counts from the start of the script
      - {a: OffsetCommit, offsets: {orders-0: 5}}
      - {a: Heartbeat, version: 4, claims: 9}            # ... or written as one version and said to be another
      - {admin: DescribeGroups}                          # clients appear when they are first named
      - {a: LeaveGroup, memberId: $b}                    # any field; $b is b's member id, $group the group's id

Everything else is filled in: ids and generations from the client's own answers, the rest with usual values.
``completing: [a, b]`` brings members into a generation and ``stable: {a: orders-0, b: orders-1}`` shares out partitions
as well; ``forget: a`` restarts a client without its memory; ``{repeat: 4, every: 300, steps: [...]}`` repeats.
With several brokers, ``{move: 2}`` makes broker 2 the coordinator; ``{fill: 9000}`` writes so much into the group's
offsets partition beforehand that it is still loading after ``{move: 2, loading: true}``, until ``{loaded: true}``.

A script that is a mapping has ``steps`` and says more: ``each: [0, 1]`` makes one script for each value, which stands
for ``$each``; ``topics`` are made beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from rejoin.conform.player.script import Script, ScriptSet
from rejoin.conform.steps.player import Steps
from rejoin.conform.steps.requests import BadScript, Step

SCRIPTS: Final = Path(__file__).parents[1] / "groups" / "scripts"
SETTINGS: Final = "settings.yaml"
AT_ONCE: Final = 6
"""Scripts that are played at the same time, unless the set is to be played ``alone``."""


def load_all() -> list[ScriptSet]:
    """Every set, by name."""
    return [load_set(folder) for folder in sorted(SCRIPTS.iterdir()) if folder.is_dir()]


def load_set(folder: Path) -> ScriptSet:
    """One folder of scripts."""
    about = yaml.safe_load((folder / SETTINGS).read_text())
    return ScriptSet(
        name=folder.name,
        scripts=partial(_scripts, folder),
        settings={name: _setting(value) for name, value in about["settings"].items()},
        brokers=about.get("brokers", 1),
        topics=about.get("topics", {}),
        deny=tuple(about.get("deny", ())),
        at_once=1 if about.get("alone", False) else AT_ONCE,
        folder="kafka-4.x",
    )


def script_header(of: ScriptSet, script: Script) -> dict[str, Any]:
    """The first line of a recording: the script's steps, and the cluster that it was played on."""
    assert isinstance(script.run, Steps), f"{script.name} is not written in steps"
    return {
        "script": f"{of.name}/{script.subject}/{script.name}",
        "brokers": of.brokers,
        "settings": of.settings,
        "deny": list(of.deny),
        "topics": {**of.topics, **script.more_topics},
        "steps": list(script.run.steps),
    }


def _scripts(folder: Path) -> Iterator[Script]:
    for path in sorted(folder.glob("*.yaml")):
        if path.name != SETTINGS:
            yield from _load(path, yaml.safe_load(path.read_text()))


def _load(path: Path, content: dict[str, Any]) -> Iterator[Script]:
    for name, written in content.items():
        given = written if isinstance(written, dict) else {"steps": written}
        each = given.get("each", [None])
        for value in each:
            full = name if value is None else f"{name}{value}" if name.endswith("-v") else f"{name}-{value}"
            group = f"{path.stem}.{full}"
            try:
                steps = tuple(_expand(_replace(given["steps"], value, group)))
            except (KeyError, TypeError, ValueError) as problem:
                raise BadScript(f"{path.name}: {full}: {problem!r}") from None
            topics = _replace(given.get("topics", {}), value, group)
            yield Script(full, Steps(steps), more_topics=topics, subject=path.stem)


def _replace(value: Any, each: Any, group: str) -> Any:
    """Fill in ``$each`` and ``$group``."""
    if isinstance(value, dict):
        return {_replace(key, each, group): _replace(item, each, group) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace(item, each, group) for item in value]
    if value == "$each":
        return each
    if isinstance(value, str):
        text = value.replace("$each", str(each)).replace("$group", group)
        return int(text) if "$each" in value and text.isdigit() else text
    return value


def _expand(steps: list[Step]) -> Iterator[Step]:
    """Write out ``stable``, ``completing`` and ``repeat``."""
    for step in steps:
        if "repeat" in step:
            for _ in range(step["repeat"]):
                yield {"wait": step["every"]}
                yield from _expand(step["steps"])
        elif "completing" in step:
            yield from _completing(step["completing"], step)
        elif "stable" in step:
            shares: dict[str, str] = step["stable"]
            yield from _completing(list(shares), step)
            first, *others = shares
            yield {first: "SyncGroup", "give": shares}
            for other in others:
                yield {other: "SyncGroup"}
        else:
            yield step


def _completing(members: list[str], step: Step) -> Iterator[Step]:
    """Into an Empty group, the first one leading: the ids first, so that all join in one window."""
    static = step.get("static", False)
    if not static:
        for member in members:
            yield {member: "JoinGroup", "expect": "MEMBER_ID_REQUIRED"}
    for member in members:
        yield {member: "JoinGroup", "parks": True}
    yield {"await": members}


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
