"""Runs the commands of a transcript on a virtual clock; collects what the coordinator answers and emits.

A transcript is a text file. Its first comment is the claim. Empty lines separate blocks; each has commands, a line
``----`` and what must come out. A line with ``+MS`` says how much time has passed since the line before. A member's
answers begin with its name. The commands are those of ``grammar.table``.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args

from rejoin.coordinator.core.inputs import ConnectionLost, Context, LockExpired, Millis, PersisterFault, RecordReleased
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import BY_REQUEST
from rejoin.transcript.access import acl_request
from rejoin.transcript.grammar.base import OUTSIDE
from rejoin.transcript.grammar.table import (
    ADMIN_REQUESTS,
    BEAT,
    CREATE_TOPIC,
    DIRECTIVES,
    HEARTBEAT,
    JOIN,
    MEMBER_DIRECTIVES,
    MEMBER_REQUESTS,
    SHARE_HEARTBEAT,
    STREAMS_HEARTBEAT,
    topic_command,
)
from rejoin.transcript.grammar.words import BadWord, read_number, read_offsets
from rejoin.transcript.session import PendingRequest, PlayedMember, TranscriptSession
from rejoin.transcript.views import show_group, show_record, show_timers

BEAT_EVERY_MS: Final = 3_000
_Operation = Literal["initialize", "read", "write", "delete", "summary"]
_OPERATIONS: Final[dict[str, _Operation]] = {each: each for each in get_args(_Operation)}
LONGEST_ADVANCE_MS: Final = 10 * 365 * 86_400_000


class TranscriptPlayer(TranscriptSession):
    """Runs commands on one node whose log takes no time, and collects what comes out."""

    # --- playing

    def play(self, commands: Sequence[str]) -> list[str]:
        """Run one block; returns the lines that came out of it."""
        self.lines = []
        for command in commands:
            self.run(command)
        return self.lines

    def run(self, command: str) -> None:
        """Run one command. Raises :class:`BadWord` where it cannot be read or done."""
        words = command.split()
        verb = words[0]
        if verb in DIRECTIVES:
            getattr(self, f"do_{verb.replace('-', '_')}")(words[1:])
        elif verb in ADMIN_REQUESTS:
            self._request(ADMIN_REQUESTS[verb], self._member(OUTSIDE), words[1:])
        elif len(words) > 1 and words[1] in MEMBER_REQUESTS:
            self._request(MEMBER_REQUESTS[words[1]], self._member(verb), words[2:])
        elif len(words) > 1 and words[1] in MEMBER_DIRECTIVES:
            getattr(self, f"member_{words[1]}")(self._member(verb), words[2:])
        else:
            raise BadWord(_unknown(words))

    # --- several commands in one

    def do_quietly(self, words: list[str]) -> None:
        if not words:
            raise BadWord(f"expected {DIRECTIVES['quietly'].usage}")
        before, self._silent = self._silent, True
        try:
            self.run(" ".join(words))
        finally:
            self._silent = before
        self._shown_at = self.now
        self._unread.clear()

    def do_completing(self, names: list[str]) -> None:
        for name in sorted(names, key=lambda name: not self._leads(name)):
            self.do_quietly([name, "joins"])
        while (group := self._view()) is not None and group.state == "PreparingRebalance":
            self.do_quietly(["advance", "to=join"])

    def do_stable(self, words: list[str]) -> None:
        shares = dict(_pair(word) for word in words)
        self.do_completing(list(shares))
        for name in sorted(shares, key=self._leads):
            give = ["give", *words] if self._leads(name) else []
            self.do_quietly([name, "sync", *give])
        group = self._view()
        state = "Dead" if group is None else group.state
        if state != "Stable":
            raise BadWord(f"the group is {state}, expected Stable")

    def _leads(self, name: str) -> bool:
        group = self._view()
        return group is not None and name in self.members and group.leader == self.members[name].member_id

    # --- access

    def do_acl(self, words: list[str]) -> None:
        request = acl_request(words)
        before, self._silent = self._silent, True
        context = Context(BY_REQUEST[type(request)].default_version, OUTSIDE, by_operator=True)
        self.driver.request(PendingRequest(self._member(OUTSIDE), request), request, context)
        self._silent = before

    def member_principal(self, member: PlayedMember, words: list[str]) -> None:
        if len(words) != 1 or ":" not in words[0]:
            raise BadWord(f"expected {MEMBER_DIRECTIVES['principal'].usage}")
        member.principal = words[0]

    # --- looking

    def do_look(self, _: list[str]) -> None:
        self._say(show_group(self.group, self._view()))

    def do_timers(self, _: list[str]) -> None:
        self._say(show_timers(self.group, self._view(), self.now))

    def do_written(self, _: list[str]) -> None:
        for record in self._unread:
            self._say(show_record(record, self._topic_name))
        if not self._unread:
            self._say("log  nothing")
        self._unread.clear()

    # --- time

    def do_advance(self, words: list[str]) -> None:
        if len(words) != 1:
            raise BadWord(f"expected {DIRECTIVES['advance'].usage}")
        if words[0].startswith("to="):
            kind = words[0].removeprefix("to=")
            due = [timer.at for timer in self.node.timers() if timer.timer == kind]
            if not due:
                raise BadWord(f"no {kind} timer is set")
            self._run_until(min(due))
        else:
            millis = read_number(words[0])
            if not 0 <= millis <= LONGEST_ADVANCE_MS:
                raise BadWord(f"expected 0 to {LONGEST_ADVANCE_MS} ms (ten years), not {words[0][:40]}")
            self._run_until(self.driver.now + millis)

    def _run_until(self, until: Millis) -> None:
        """Let everything happen that is due by then. A heartbeat that arrives at a deadline comes before it."""
        driver = self.driver
        while True:
            deadline = driver.next_deadline()
            beat = min(
                (each.next_beat_at for each in self.members.values() if each.next_beat_at is not None), default=None
            )
            if beat is not None and beat <= until and (deadline is None or beat <= deadline):
                driver.now = max(driver.now, beat)
                self._send_beat(beat)
            elif deadline is not None and deadline <= until:
                driver.fire()
            else:
                break
        driver.now = max(driver.now, until)

    def _send_beat(self, at: Millis) -> None:
        member = next(each for each in self.members.values() if each.next_beat_at == at)
        member.next_beat_at = at + BEAT_EVERY_MS
        if member.is_modern and member.generation < 0:
            return  # fenced: the next command says what it joins with
        kinds = ((member.is_sharing, SHARE_HEARTBEAT), (member.is_streaming, STREAMS_HEARTBEAT), (True, HEARTBEAT))
        modern = next(command for is_kind, command in kinds if is_kind)
        self._request(modern if member.is_modern else BEAT, member, [], quiet=True)

    def do_pause(self, _: list[str]) -> None:
        self.driver.paused = True

    def do_resume(self, _: list[str]) -> None:
        self.driver.paused = False

    def do_beating(self, names: list[str]) -> None:
        for name in names:
            member = self._member(name)
            member.last_beat = ""
            member.next_beat_at = self.now + BEAT_EVERY_MS

    def do_silence(self, names: list[str]) -> None:
        for name in names:
            self._member(name).next_beat_at = None

    # --- surroundings

    def do_set(self, words: list[str]) -> None:
        if self._driver is not None:
            raise BadWord("settings come before any other command; restart takes some, too")
        for key, value in map(_pair, words):
            self.settings[key] = tuple(value.split(",")) if key == "emulator.deny" else value

    def do_restart(self, words: list[str]) -> None:
        self._now = self.driver.now
        self._driver = None
        self.logs.drop_pending()
        self.do_set(words)
        _ = self.driver

    def do_group(self, words: list[str]) -> None:
        self.group = words[0] if words else ""

    def do_topic(self, words: list[str]) -> None:
        command = topic_command(words)
        if command is not CREATE_TOPIC:
            self._request(command, self._member(OUTSIDE), words)
            return
        before, self._silent = self._silent, True
        ids = [word for word in words[2:3] if "=" not in word]
        self._topic_id = _topic_id(*ids) if ids else f"{len(self.topic_ids) + 1:032x}"
        try:
            self._request(command, self._member(OUTSIDE), words)
        finally:
            self._silent, self._topic_id = before, ""

    def do_log(self, words: list[str]) -> None:
        mode, _, error = (words[0] if words else "").partition("=")
        if mode not in ("ok", "hold", "fail"):
            raise BadWord(f"expected {DIRECTIVES['log'].usage}")
        self.logs.defers_appends = mode == "hold"
        self.logs.error = _error(error) if mode == "fail" else None

    def do_stored(self, words: list[str]) -> None:
        if self.logs.pending_appends:
            self.logs.end_append(_error(words[0]) if words else None)
        else:
            self._say("log  nothing is pending")

    def do_resign(self, words: list[str]) -> None:
        if words != ["writing"]:
            self.logs.pending_appends.clear()
        self.logs.pending_reads.clear()
        self.driver.resign(self._offsets_partition)

    def do_elect(self, words: list[str]) -> None:
        self.logs.defers_reads = words == ["hold"]
        self.driver.elect(self._offsets_partition)

    def do_load(self, _: list[str]) -> None:
        self.logs.defers_reads = False
        if self.logs.pending_reads:
            self.logs.end_read()
        else:
            self._say("log  nothing is pending")

    def do_expire(self, words: list[str]) -> None:
        if len(words) != 1:
            raise BadWord(f"expected {DIRECTIVES['expire'].usage}")
        (who,) = words
        member_id = who.removeprefix("id:") if who.startswith("id:") else self.named(who).member_id
        self.driver.lose_session(self.group, member_id)

    def do_disconnect(self, words: list[str]) -> None:
        if len(words) != 1:
            raise BadWord(f"expected {DIRECTIVES['disconnect'].usage}")
        member = self.named(words[0])
        if not member.session_epoch:
            raise BadWord(f"{member.name} has no share session")
        member.session_epoch = 0
        self.driver.step(ConnectionLost(member.name))

    def do_expire_lock(self, words: list[str]) -> None:
        self.driver.step(LockExpired(self.group, *self._locked(words, "expire-lock")))

    def do_release(self, words: list[str]) -> None:
        self.driver.step(RecordReleased(self.group, *self._locked(words, "release")))

    def _locked(self, words: list[str], verb: str) -> tuple[str, int, int]:
        """Topic, partition and offset of a record that has a lock."""
        usage = DIRECTIVES[verb].usage
        if len(words) != 1 or "=" not in words[0]:
            raise BadWord(f"expected {usage}")
        ((topic, ((partition, offset, _),)),) = read_offsets(words).items()
        state = self.node.share_state(self.group, topic, partition, self.now)
        held = [] if state is None else [each for each in state.records if each.lock_ms is not None]
        if not any(each.first_offset <= offset <= each.last_offset for each in held):
            locked = ", ".join(f"{each.first_offset} to {each.last_offset}" for each in held) or "none"
            raise BadWord(f"{self.group} has no lock on record {offset} of {topic}:{partition}; locked: {locked}")
        return topic, partition, offset

    def do_fail_persister(self, words: list[str]) -> None:
        usage = DIRECTIVES["fail-persister"].usage
        operation, *rest = words or [""]
        numbers = [word for word in rest if word.lstrip("-").isdecimal()]
        errors = [word for word in rest if word not in numbers]
        if operation not in _OPERATIONS or len(numbers) > 1 or len(errors) > 1:
            raise BadWord(f"expected {usage}")
        count = read_number(numbers[0]) if numbers else 1
        error = _error(errors[0]) if errors else None
        if count < -1:
            raise BadWord(f"expected -1 for all requests, or how many, not {count}")
        self.driver.step(PersisterFault(self.group, _OPERATIONS[operation], error, count))

    def do_compact(self, words: list[str]) -> None:
        if len(words) > 1:
            raise BadWord(f"expected {DIRECTIVES['compact'].usage}")
        topic = words[0] if words else None
        if topic is not None and topic not in self.topic_ids:
            known = ", ".join(self.topic_ids) or "one that was created"
            raise BadWord(f"there is no topic {topic!r}; expected {known}")
        self.driver.compact(topic)

    # --- members

    def member_is(self, member: PlayedMember, words: list[str]) -> None:
        JOIN.take_options(words, member)

    def member_joins(self, member: PlayedMember, words: list[str]) -> None:
        self._request(JOIN, member, words)
        if member.member_id and member.generation == -1 and not member.options.get("instance"):
            self._request(JOIN, member, [])

    def member_restarts(self, member: PlayedMember, words: list[str]) -> None:
        member.forget()
        self._request(JOIN, member, words)


def _unknown(words: list[str]) -> str:
    verbs = {**DIRECTIVES, **ADMIN_REQUESTS}
    actions = {**MEMBER_REQUESTS, **MEMBER_DIRECTIVES}
    is_action = len(words) > 1 and words[1].replace("-", "").isalpha() and words[0] not in verbs
    known: dict[str, Any] = actions if is_action else verbs
    given = words[1] if known is actions else words[0]
    near = get_close_matches(given, known, n=1)
    hint = f"is it {near[0]}: {known[near[0]].usage}?" if near else f"expected {', '.join(sorted(known))}"
    return f"there is no command {given!r}; {hint}"


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise BadWord(f"expected KEY=VALUE, not {word!r}")
    return key, value


def _topic_id(text: str) -> str:
    """The hexadecimal digits of a topic's id."""
    try:
        return base64.urlsafe_b64decode(f"{text}==").hex()
    except ValueError:
        raise BadWord(f"expected the id of a topic in base64, not {text!r}") from None


def _error(name: str) -> ErrorCode:
    if name not in ErrorCode.__members__:
        near = get_close_matches(name, ErrorCode.__members__, n=1)
        raise BadWord(f"there is no error {name!r}" + (f"; is it {near[0]}?" if near else ""))
    return ErrorCode[name]
