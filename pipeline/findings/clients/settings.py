"""Texts with each setting as the client at hand calls it; rules write the names of Kafka's documentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rejoin.pipeline.findings.clients.table import (
    ASSIGNORS,
    AUTO_COMMIT,
    BATCHES,
    COMMIT_INTERVAL,
    DURATION,
    INSTANCE_ID,
    ISOLATION,
    METADATA_AGE,
    MS,
    OFFSET_RESET,
    POLL,
    POLL_INTERVAL,
    POLL_RECORDS,
    PROTOCOL,
    RACK,
    REBALANCE_TIMEOUT,
    REVOKED,
    SETTINGS,
    TABLE,
    ClientSetting,
    S,
    Value,
)
from rejoin.pipeline.findings.formatting import span

SMALLER_BATCHES: Final = f"a smaller {POLL_RECORDS}"
"""Rules say so where one poll returns too much; clients without that setting have words of their own."""
IN_REVOKED: Final = "onPartitionsRevoked"
IN_POLL: Final = "poll()"
_WITHOUT: Final = {
    POLL_INTERVAL: "the rebalance timeout",
    REBALANCE_TIMEOUT: "the session timeout",
    INSTANCE_ID: "static membership",
    ASSIGNORS: "the assignor",
    AUTO_COMMIT: "automatic commits",
    COMMIT_INTERVAL: "the interval of commits",
    OFFSET_RESET: "the client's start position",
    ISOLATION: "the isolation level",
    RACK: "the rack",
    PROTOCOL: "the consumer protocol",
    METADATA_AGE: "the interval at which they do so",
}
"""Words for a setting that no client of the group has."""
# A name with a prefix, such as group.min.session.timeout.ms, is a broker's.
_ANY: Final = "|".join(map(re.escape, sorted((*SETTINGS, IN_REVOKED, IN_POLL), key=len, reverse=True)))
_NAMES: Final = re.compile(
    rf"{re.escape(SMALLER_BATCHES)}|(?P<article>\ba )?(?<![\w.])(?P<name>{_ANY})(?![\w.]*\w)| \((?P<aside>{_ANY})\)"
)


def setting_of(client: str, setting: str) -> ClientSetting | None:
    """A client's own setting for one of Kafka's documentation; None where it has none."""
    return TABLE[client].get(setting)


def name_for(setting: str, clients: Sequence[str]) -> str | None:
    """The name of a setting in the words of these clients, the first one's where they differ; unchanged where it is no
    setting of consumers, and None where no client has it."""
    if setting not in SETTINGS:
        return setting
    return next((found.name for each in clients if (found := setting_of(each, setting)) is not None), None)


def in_words_of(text: str, clients: Sequence[str]) -> str:
    """A text with each setting as these clients call it. Where names differ, the first mention has all of them."""
    said: set[str] = set()

    def named(found: re.Match[str]) -> str:
        what = found["aside"] or found["name"] or found[0]
        if found["aside"] is not None and name_for(what, clients) is None:
            return ""
        words = _mentioned(what, clients, is_first=what not in said)
        said.add(what)
        article = "" if found["article"] is None else "an " if words[0] in "aeio" else "a "
        return f" ({words})" if found["aside"] else f"{article}{words}"

    return _NAMES.sub(named, text)


def _mentioned(what: str, clients: Sequence[str], *, is_first: bool) -> str:
    by_client = {each: words for each in clients if (words := _words(what, each)) is not None}
    if not by_client:
        return _WITHOUT.get(what, "the handler")
    base, *others = dict.fromkeys(by_client.values())
    if not others or not is_first:
        return base
    apart = [f"{client}: {words}" for client, words in by_client.items() if words != base]
    return f"{base} ({'; '.join(apart)})"


def _words(what: str, client: str) -> str | None:
    if what == IN_REVOKED:
        return REVOKED.get(client)
    if what == IN_POLL:
        return POLL.get(client, IN_POLL)
    if what == SMALLER_BATCHES:
        found = setting_of(client, POLL_RECORDS)
        return BATCHES.get(client, "smaller batches") if found is None else f"a smaller {found.name}"
    found = setting_of(client, what)
    return None if found is None else found.name


# --- values and defaults


def value_for(setting: str, clients: Sequence[str], ms: int) -> str:
    """A length of time as a setting takes it: ``60000 (60 s)``, ``60 (seconds)``, ``60*time.Second``."""
    units = {each: found for each in clients if (found := setting_of(each, setting)) is not None}
    found = next(iter(units.values()), None)
    if found is None or found.unit == MS or len({each.unit for each in units.values()}) > 1:
        return f"{ms} ({span(ms)})"
    return f"{found.in_its_unit(ms)} (seconds)" if found.unit == S else found.in_its_unit(ms)


def default_in(setting: ClientSetting, version: str | None) -> Value | None:
    """The default of a version of the client; of its newest where the version is not known, and None before it had
    the setting."""
    if version is None:
        return list(setting.defaults.values())[-1]
    holds = [value for since, value in setting.defaults.items() if not since or _key(since) <= _key(version)]
    return holds[-1] if holds else None


def has_setting(client: str, setting: str, version: str | None = None) -> bool:
    """Whether a client, of this version where it is known, has a setting."""
    found = setting_of(client, setting)
    return found is not None and (version is None or default_in(found, version) is not None)


def by_default(setting: str, client: str, version: str | None = None) -> str:
    """The default of a length of time in words: ``45 s by default since 3.0, 10 s before``; empty where none is one."""
    found = setting_of(client, setting)
    if found is None or found.unit not in (MS, S, DURATION):
        return ""
    if version is not None:
        value = default_in(found, version)
        return "" if value is None else f"{_long(found, value)} by default in {version}"
    (since, newest), *older = reversed(list(found.defaults.items()))
    if not isinstance(newest, int):
        return f"{newest} by default"
    before = f" since {since}, {_long(found, older[0][1])} before" if older else ""
    return f"{_long(found, newest)} by default{before}"


def _long(setting: ClientSetting, value: Value) -> str:
    if isinstance(value, str):
        return value
    return span(value) if setting.unit == MS else span(value * 1_000)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])
