"""Sentences that depend on what a group's clients can do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rejoin.pipeline.findings.clients.libraries import client_of
from rejoin.pipeline.findings.clients.settings import (
    by_default,
    default_in,
    has_setting,
    in_words_of,
    name_for,
    setting_of,
    value_for,
)
from rejoin.pipeline.findings.clients.share_groups import NO_STATIC_MEMBERS
from rejoin.pipeline.findings.clients.table import (
    AIOKAFKA,
    BROD,
    CLIENTS,
    CONNECT,
    COOPERATIVE_ASSIGNOR,
    FRANZ_GO,
    INSTANCE_ID,
    JAVA,
    KAFKAJS,
    LIBRDKAFKA,
    METADATA_AGE,
    POLL_INTERVAL,
    PROTOCOL,
    REBALANCE_TIMEOUT,
    RUBY_KAFKA,
    SARAMA,
    SESSION_TIMEOUT,
    STREAMS,
)
from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.formatting import names, span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import MemberSession

_SHORTEST: Final = {
    False: ("group.min.session.timeout.ms", 6_000),
    True: ("group.consumer.min.session.timeout.ms", 45_000),
}
"""Setting that bounds session timeouts from below, with its default, by whether members speak the consumer protocol."""


def for_clients_of(history: GroupHistory, findings: Iterable[Finding]) -> list[Finding]:
    """Findings whose settings have the names that the group's clients give them."""
    clients = history.clients

    def said(text: str) -> str:
        return _of_tasks(in_words_of(text, clients)) if history.is_streams_group else in_words_of(text, clients)

    return [
        replace(
            each,
            title=said(each.title),
            text=said(each.text),
            advice=said(each.advice) if each.advice else each.advice,
            setting=name_for(each.setting, clients) if each.setting else each.setting,
        )
        for each in findings
    ]


_PARTITION: Final = re.compile(r"\bpartition(s?)\b(?!er)")
_LEAVES_NO_TASKS: Final = re.compile(r" Take one that is stopped for good out of the group \(Admin[^)]*\)\.")


def _of_tasks(text: str) -> str:
    """Words about a streams group, whose members are threads and have tasks.

    Kafka: no administrator can remove a member of such a group.
    """
    close = " Close one that is stopped for good with KafkaStreams.CloseOptions and LEAVE_GROUP."
    text = _LEAVES_NO_TASKS.sub(close, text)
    return _PARTITION.sub(r"task\1", text).replace("had no reader", "had no owner")


# --- sessions


def session_timeout(history: GroupHistory) -> str:
    """The setting of the session timeout: the consumer's own, or the broker's for the newer protocols."""
    if not history.uses_consumer_protocol:
        return SESSION_TIMEOUT
    return f"group.{history.server_protocol}.session.timeout.ms"


def session_value(history: GroupHistory, ms: int) -> str:
    """A session timeout as its setting takes it."""
    return value_for(session_timeout(history), history.clients, ms)


def session_bound(history: GroupHistory) -> str:
    """Where the session timeout is set, and what bounds it."""
    if history.uses_consumer_protocol:
        kind = history.server_protocol
        return (
            f"members of the {kind} protocol cannot set it themselves: it is the broker's, or the group's "
            f"{kind}.session.timeout.ms, within group.{kind}.max.session.timeout.ms"
        )
    return "group.max.session.timeout.ms of the broker must allow it"


def _shortest(history: GroupHistory) -> tuple[str, int]:
    minimum, least = _SHORTEST[history.uses_consumer_protocol]
    # Kafka: share and streams groups have settings of their own, with the defaults of consumer groups.
    return minimum.replace(".consumer.", f".{history.server_protocol}."), least


def least_session(history: GroupHistory) -> str:
    """Setting that bounds session timeouts from below."""
    minimum, least = _shortest(history)
    heartbeats = "" if history.uses_consumer_protocol else ", nor three times heartbeat.interval.ms"
    return f"not below {minimum}, {least} by default{heartbeats}"


def shortest_already(history: GroupHistory, timeouts: Iterable[int]) -> str:
    """A sentence where the session timeout is one that brokers take by default and no shorter one; else empty."""
    known = max(timeouts, default=0)
    minimum, least = _shortest(history)
    if not 0 < known <= least:
        return ""
    return (
        f"{session_timeout(history)} is {span(known)} already: a shorter one would need a lower {minimum} of the "
        f"broker, too ({least} by default)."
    )


def raise_session(history: GroupHistory) -> str:
    """The last resort for sessions that end while the process runs on."""
    if history.uses_consumer_protocol:
        return f"Only then raise {session_timeout(history)} ({session_bound(history)})."
    return f"Only then raise {SESSION_TIMEOUT}{_now(history, SESSION_TIMEOUT)}."


def _now(history: GroupHistory, setting: str) -> str:
    """The default of a setting in brackets, where the group's clients are known."""
    return _by_default(history, setting, history.known_clients)


def _by_default(history: GroupHistory, setting: str, clients: Sequence[str]) -> str:
    said = [(each, by_default(setting, each, history.version_of(each))) for each in clients]
    shown = [text if len(said) == 1 else f"{client}: {text}" for client, text in said if text]
    return f" ({'; '.join(shown)})" if shown else ""


def heartbeats_stop(history: GroupHistory) -> str:
    """Why heartbeats of these clients may stop though the process runs."""
    else_it_is = "a pause of the process, or a coordinator that cannot be reached"
    client = history.clients[0] if len(history.clients) == 1 and history.known_clients else None
    if client is None:
        return (
            "Find out what stops the heartbeats: a handler that blocks the thread or the event loop behind them, "
            f"{else_it_is}."
        )
    who = "Java's consumer" if client == JAVA else client
    if client in _BETWEEN_RECORDS:
        return (
            f"Find out what stops the heartbeats: {client} sends them between records, so a handler that takes longer "
            f"than the session ends it ({_BETWEEN_RECORDS[client]}); else {else_it_is}."
        )
    if client == AIOKAFKA:
        return (
            "Find out what stops the heartbeats: aiokafka sends them from the event loop, so a handler that blocks it "
            f"ends the session (run such work in an executor); else {else_it_is}."
        )
    return (
        f"Find out what stops the heartbeats: {who} sends them in the background, whatever the handler does, so "
        "look for a pause of the whole process (garbage collection, a starved CPU, a host that was suspended) or a "
        "coordinator that cannot be reached or answers late."
    )


_BETWEEN_RECORDS: Final = {
    KAFKAJS: "call heartbeat() within eachMessage and eachBatch",
    RUBY_KAFKA: "call trigger_heartbeat within each_message and each_batch",
}
"""Clients without a thread of their own for heartbeats, and how a handler sends one."""

# --- polls


def has_poll_limit(history: GroupHistory) -> bool:
    """Whether one of the group's clients watches how long it goes without a poll."""
    return any(has_setting(each, POLL_INTERVAL) for each in history.clients)


def joins_with(history: GroupHistory) -> str:
    """A clause: when a member of this group answers a rebalance, and what holds all others up."""
    if all(each in _JOIN_IN_BACKGROUND for each in history.clients):
        return "A member joins when it has given up its partitions, so one slow handler holds up all"
    when = "between two batches" if all(each in _BETWEEN_RECORDS for each in history.clients) else "with its next poll"
    return f"A member joins {when}, so one long batch holds up all"


_JOIN_IN_BACKGROUND: Final = (AIOKAFKA, FRANZ_GO, SARAMA, BROD)


def after_a_late_poll(history: GroupHistory) -> str:
    """A sentence about Streams, whose threads own tasks."""
    return " Meanwhile the thread's tasks move to others, which restore their state." if _is_of_streams(history) else ""


def _is_of_streams(history: GroupHistory) -> bool:
    return STREAMS in history.clients


def rebalance_timeout(history: GroupHistory) -> str:
    """The setting of the rebalance timeout, which for most clients is the limit between polls as well."""
    clients = history.clients
    same = all(name_for(POLL_INTERVAL, [each]) == name_for(REBALANCE_TIMEOUT, [each]) for each in clients)
    return POLL_INTERVAL if same else REBALANCE_TIMEOUT


def late_setting(history: GroupHistory) -> str:
    """The setting that a member missed which was late: the limit between polls, or only that of the join phase."""
    return POLL_INTERVAL if has_poll_limit(history) else REBALANCE_TIMEOUT


def late_value(history: GroupHistory, ms: int) -> str:
    """A limit of :func:`late_setting` as it takes it."""
    return value_for(late_setting(history), history.clients, ms)


def limit_by_default(history: GroupHistory) -> str:
    """The default of :func:`late_setting` in brackets, where the group's clients are known."""
    return _now(history, late_setting(history))


# --- static membership

SURVIVING_ID: Final = (
    "a name that stays the same over restarts (in Kubernetes the ordinal of a StatefulSet; the name of a Deployment's "
    "pod changes with each rollout: then nothing is saved, and each partition waits a whole session for a member that "
    "never comes back)"
)
"""Names that are fit for group.instance.id."""


def can_be_static(history: GroupHistory) -> bool:
    """Whether all clients of the group have static membership, in some version; share groups have none."""
    return not history.is_share_group and not _never_static(history.clients)


def no_static_members(history: GroupHistory) -> str:
    """A clause: which clients have no static membership."""
    if history.is_share_group:
        return NO_STATIC_MEMBERS
    return _have_no(_never_static(history.clients), "static membership")


def _never_static(clients: Sequence[str]) -> list[str]:
    return [each for each in clients if not has_setting(each, INSTANCE_ID)]


def _have_no(clients: Sequence[str], what: str) -> str:
    return f"{names(clients)} {'has' if len(clients) == 1 else 'have'} no {what}"


def static_since(history: GroupHistory) -> str:
    """A sentence where a client needs a newer version than it has, or may have, for group.instance.id; else empty."""
    return _static_since({each: history.version_of(each) for each in history.known_clients})


def _static_since(versions: Mapping[str, str | None]) -> str:
    wanted = []
    for client, version in versions.items():
        found = setting_of(client, INSTANCE_ID)
        if found is None or not found.since or (version is None and client in _LONG_SINCE):
            continue
        if version is None:
            wanted.append(f"{client} {found.since}")
        elif default_in(found, version) is None:
            wanted.append(f"{client} {found.since} instead of {version}")
    return f" That needs {names(wanted)} or newer." if wanted else ""


def through_rollouts(clients: Sequence[str]) -> tuple[str | None, str]:
    """Advice for a rollout of these clients without rebalances, with the setting where there is one.
    ``clients`` is empty where the sources show none."""
    without = _never_static(clients)
    if without:
        return None, (
            f"{_have_no(without, 'static membership')}, so each restart of a member rebalances the group. Restart many "
            "at a time, or all, and not one after the other: members that leave and join together share one rebalance."
        )
    name = name_for(INSTANCE_ID, clients) if clients else INSTANCE_ID
    where = "" if clients else " (docs/client-settings.md has its name for each client)"
    return name, in_words_of(
        f"Give each member a {INSTANCE_ID}{where}, and a session timeout longer than its restart: a rollout that "
        "restarts one member after the other then passes without a rebalance. Restart as few at a time as you can."
        f"{_static_since(dict.fromkeys(clients))}",
        clients or (JAVA,),
    )


def of_workers(history: GroupHistory) -> str:
    """Advice on restarts of Connect's workers, whose leader waits for them; empty for consumers."""
    if history.clients != (CONNECT,):
        return ""
    return (
        "The leader of a Connect cluster keeps the connectors and tasks of a worker that left for "
        "scheduled.rebalance.max.delay.ms (5 min by default), and gives them back to a worker that returns by then: "
        "make it longer than a restart takes. Until then those tasks do not run."
    )


def without_instance_id(history: GroupHistory) -> str:
    """A clause: the way back to dynamic members. brod makes up an id of the process by default."""
    if BROD in history.clients:
        return f"set {INSTANCE_ID} to null (brod 4.6 or newer)"
    return f"leave {INSTANCE_ID} out"


_LONG_SINCE: Final = (JAVA, STREAMS, LIBRDKAFKA)
"""Clients that have had static membership for so long that an older version is not likely."""


def leaves_when_closed(history: GroupHistory) -> bool:
    """Whether a dynamic member of this group leaves when its process closes it.

    Kafka: Streams does not with the classic protocol; a member of a streams group does.
    """
    return history.is_streams_group or not _is_of_streams(history)


# --- topics


def metadata_age(history: GroupHistory) -> str:
    """When consumers notice that a topic grew, and what to do about the wait."""
    when = "when a rebalance does no harm."
    if name_for(METADATA_AGE, history.clients) is None:
        return f"Consumers look at the metadata from time to time. Grow topics {when}"
    shown = _by_default(history, METADATA_AGE, history.clients)
    return (
        f"Consumers look at the metadata at an interval, {METADATA_AGE}{shown}. "
        f"Lower it before a topic grows if the wait matters, and grow topics {when}"
    )


# --- assignors


def cooperative_assignor(history: GroupHistory) -> str | None:
    """Setting for cooperative rebalances, as the group's clients call it; None where they cannot, or do already."""
    known = history.known_clients
    if not known:
        return "cooperative-sticky"
    if not all(each in COOPERATIVE_ASSIGNOR for each in known):
        return None
    called = {COOPERATIVE_ASSIGNOR[each].name for each in known}
    return called.pop() if len(called) == 1 else "cooperative-sticky"


def how_to_become_cooperative(history: GroupHistory, listed: bool) -> str:
    """The way from an eager assignor to a cooperative one. ``listed``: all members list it already."""
    eager = sorted({each.protocol for each in history.rebalances if history.is_eager(each) and each.protocol})
    java = (
        f"One rolling restart without {' and '.join(eager)} in partition.assignment.strategy is enough: all members "
        "list cooperative-sticky already."
        if listed
        else "That takes two rolling restarts: first add {assignor} behind the present assignor, then "
        "take the old one away. Custom listeners must be ready for {lost} and for a revocation of some partitions only."
    )
    known = history.known_clients
    if not known:
        java = java.format(assignor="CooperativeStickyAssignor", lost="onPartitionsLost")
        return f"With Java clients: {java[0].lower()}{java[1:]} With librdkafka: {_RDKAFKA} {CONSUMER_PROTOCOL}"
    ways = {_way(each, java): None for each in known}
    return f"{' '.join(ways)}{consumer_protocol(history)}"


def _way(client: str, java: str) -> str:
    if client == STREAMS:
        return "Kafka Streams brings its own assignor, which is cooperative since 2.4: update the application."
    if client not in COOPERATIVE_ASSIGNOR:
        return f"{client} has no cooperative assignor: what helps is to have fewer rebalances."
    if client in _ALONE:
        return _RDKAFKA
    assignor = COOPERATIVE_ASSIGNOR[client]
    since = "" if client in _LONG_SINCE or not assignor.since else f" {client} has it since {assignor.since}."
    return java.format(assignor=assignor.name.rsplit(".", 1)[-1], lost=_LOST.get(client, "onPartitionsLost")) + since


_ALONE: Final = (LIBRDKAFKA, "racecar")
_LOST: Final = {"kafka-python": "on_partitions_lost", "franz-go": "kgo.OnPartitionsLost"}
_RDKAFKA: Final = (
    "librdkafka refuses eager and cooperative assignors in one group, so there is no rolling way: stop all "
    "members, and start them again with cooperative-sticky alone."
)
CONSUMER_PROTOCOL: Final = (
    "With brokers and clients that have it (Kafka 4.0 and later), group.protocol=consumer is the other way: the broker "
    "then assigns, and members change over one by one."
)


def can_speak_consumer_protocol(clients: Sequence[str]) -> bool:
    """Whether all these clients have ``group.protocol=consumer`` in some version; Streams has a protocol of its own."""
    return all(each != STREAMS and has_setting(each, PROTOCOL) for each in clients)


def consumer_protocol(history: GroupHistory) -> str:
    """A sentence about the consumer protocol, where the group's clients have it; else empty."""
    return f" {CONSUMER_PROTOCOL}" if can_speak_consumer_protocol(history.clients) else ""


def finish_the_migration(history: GroupHistory, old: Sequence[MemberSession]) -> str:
    """The way on for a group of which some members list a cooperative assignor, and these do not."""
    clients = {found for each in old if (found := client_of(each)) is not None} or set(history.known_clients)
    never = [each for each in CLIENTS if each in clients and each not in COOPERATIVE_ASSIGNOR]
    who = names(map(history.name_of, old))
    if never:
        return (
            f"{_have_no(never, 'cooperative assignor')}, so the group cannot become cooperative: give {who} a group.id "
            "of their own, or take cooperative-sticky out of the other members."
        )
    if clients and clients <= set(_ALONE):
        return _RDKAFKA
    return (
        f"Finish the first of the two rolling restarts: {who} must list both assignors as well. Then a second one "
        "takes the eager one out (KIP-429)."
    )


def agree_on_an_assignor(history: GroupHistory) -> str:
    """The way for members that may not join, as they have no assignor that all members of the group have."""
    another = "If it is another application, give it a group.id of its own."
    one = [each for each in history.known_clients if each in _ONE_ASSIGNOR]
    if one:
        return (
            f"{names(one)} {'lists' if len(one) == 1 else 'list'} one assignor, so there is no rolling way to another: "
            f"stop all members, and start them with the same one. Members of another client do not fit into a group of "
            f"{names(one)}. {another}"
        )
    return (
        "Let the new members list the old assignor beside the new one (first the new, then the old), restart all of "
        f"them, and take the old one out with a second rolling restart. {another}"
    )


_ONE_ASSIGNOR: Final = (STREAMS, BROD, RUBY_KAFKA)
"""Clients whose members list a single assignor."""


def go_on_meanwhile(history: GroupHistory) -> str:
    """Advice on letting the other members continue during a rebalance; empty where they already do."""
    if history.is_cooperative or history.uses_consumer_protocol:
        return ""
    assignor = cooperative_assignor(history)
    if assignor is None:
        return ""
    return f" With {assignor.removeprefix('org.apache.kafka.clients.consumer.')} the others go on meanwhile."
