"""The two forms of a recording: a line for each event, by time, or a line for each exchange."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rejoin.conform.player.connection import ConnectionClosed, SentRequest
from rejoin.conform.player.messages import Json, with_defaults
from rejoin.conform.player.names import ExchangeNames, StepNames
from rejoin.conform.player.play import CLOSED, Note, Play
from rejoin.conform.records.described_transaction_log import with_transactions

LEARNED_FROM: Final = {"InitProducerId", "EndTxn", "Fetch", "JoinGroup"}
"""Requests whose answers bring values that a broker made up."""


def events(play: Play) -> list[Json]:
    """A line for each request, for each answer and for each mark, in order of time."""
    names = StepNames(play.group, frozenset(play.target.topics) | frozenset(play.script.more_topics))
    for asked in _by_answer(play):
        answer = asked.answer
        if asked.api == "JoinGroup" and not asked.body["memberId"] and answer.exception() is None:
            prefix = asked.body.get("groupInstanceId")
            if answer.result()["memberId"]:
                names.learn(answer.result()["memberId"], asked.client if prefix is None else prefix)
    return [_with_names(names, api, line) for _, api, line in sorted(_events(play), key=lambda event: event[0])]


def _events(play: Play) -> Iterator[tuple[float, str, Json]]:
    """Each event with its instant and its API."""
    number = 0
    for entry in play.entries:
        if isinstance(entry, Note):
            yield entry.began, "", {"at": round(entry.began), **entry.fields}
            continue
        number += 1
        version = entry.version if entry.claimed is None else entry.claimed
        who = {"client": entry.client, "broker": entry.broker, "api": entry.api, "version": version}
        yield entry.sent_at, entry.api, {"at": round(entry.sent_at), "n": number, **who, "request": entry.body}
        if entry.answer.done() and not entry.answer.cancelled():
            yield entry.answered_at, entry.api, {"at": round(entry.answered_at), "n": number, **_outcome(entry)}


def _outcome(asked: SentRequest) -> Json:
    problem = asked.answer.exception()
    if problem is None:
        return {"response": asked.answer.result()}
    return {"closed": True} if isinstance(problem, ConnectionClosed) else {"unreadable": repr(problem)}


def _with_names(names: StepNames, api: str, line: Json) -> Json:
    return {key: names.of(api, value) if key in ("request", "response") else value for key, value in line.items()}


def exchanges(play: Play) -> list[Json]:
    """A line for each request with its answer, and for each other action, in order of their beginnings."""
    ports = {port: number for number, port in play.cluster.ports.items()}
    names = ExchangeNames(play.topic_ids, ports, play.now())
    for asked in _by_answer(play):
        answer = _answer(asked)
        # The id that a member has chosen itself is no name.
        is_chosen = asked.api == "JoinGroup" and (bool(asked.body["memberId"]) or play.script.keeps_ids)
        if asked.api in LEARNED_FROM and not is_chosen:
            names.learn(answer)
        if asked.api == "CreateTopics":
            for made in answer["topics"]:
                names.learn_topic(made["name"], made["topicId"])
    return [{"n": number, **_line(names, entry)} for number, entry in enumerate(play.entries, 1)]


def _line(names: ExchangeNames, entry: SentRequest | Note) -> Json:
    if isinstance(entry, Note):
        return {**entry.fields, "began": round(entry.began, 1), "ended": round(entry.ended, 1)}
    request = names.named(with_defaults(entry.api, entry.version, entry.body))
    line: Json = {"client": entry.client, "broker": entry.broker, "api": entry.api, "version": entry.version}
    line |= {"sent": round(entry.sent_at, 1), "request": request}
    if entry.answer.done() and not entry.answer.cancelled():
        line |= {"answered": round(entry.answered_at, 1), "answer": names.named(with_transactions(_answer(entry)))}
    return line


def _answer(asked: SentRequest) -> Any:
    return CLOSED if isinstance(asked.answer.exception(), ConnectionClosed) else asked.answer.result()


def _by_answer(play: Play) -> list[SentRequest]:
    """The requests that were answered, in the order of their answers."""
    answered = [
        entry
        for entry in play.entries
        if isinstance(entry, SentRequest) and entry.answer.done() and not entry.answer.cancelled()
    ]
    return sorted(answered, key=lambda asked: asked.answered_at)
