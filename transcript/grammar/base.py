"""Base of commands that are requests: from words to the request, and from the request to words.

A command is its verb, the ``KEY=VALUE`` options that a member's context does not answer already, and its other words.
Both directions go through the same table of options, so that what is written is what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

from rejoin.protocol.message import Request
from rejoin.transcript.grammar.words import BadWord, read_nullable, read_number, read_phrase, write_phrase, write_word
from rejoin.transcript.members import MemberContext

OUTSIDE: Final = "admin"
"""The client that is in no group."""


class MemberDirectory(Protocol):
    """The members that a transcript has named."""

    def named(self, name: str) -> MemberContext:
        """The member of this name. Raises :class:`BadWord` if there is none."""

    def name_of(self, member_id: str) -> str | None:
        """The name of the member that has this id now."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Subject of a command that does not name it."""

    group_id: str
    member: MemberContext
    members: MemberDirectory
    offsets_partition: int = 0
    """The group's."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """By name: the topics that were created, also those that are gone."""
    now: int = 0
    """The instant of the request, in ms: that of the records that it writes."""


# --- options


@dataclass(frozen=True, slots=True)
class Option:
    """A word ``KEY=VALUE``: the field that it gives, and its text where the word is left out."""

    key: str
    field: str
    read: Callable[[str], Any]
    write: Callable[[Any, MemberContext], str]
    default: Callable[[MemberContext], str]
    stays: bool = False
    """Whether a member goes on with it, once said."""
    since: int = 0
    """The first version of the request that has the field."""

    def value(self, text: str) -> Any:
        """The field of a text. Raises :class:`BadWord` with the key."""
        try:
            return self.read(text)
        except BadWord as problem:
            raise BadWord(f"{self.key}=: {problem}") from None


def plain(value: Any, _: MemberContext) -> str:
    return "" if value is None else str(value)


def always(text: str) -> Callable[[MemberContext], str]:
    return lambda _: text


def kept(key: str, text: str) -> Callable[[MemberContext], str]:
    return lambda member: member.options.get(key, text)


def stays(key: str, field: str, text: str, read: Callable[[str], Any] = str, since: int = 0) -> Option:
    return Option(key, field, read, plain, kept(key, text), stays=True, since=since)


def number(key: str, field: str, text: str) -> Option:
    return Option(key, field, read_number, plain, always(text))


def read_flag(text: str) -> bool:
    """``yes`` or ``no``."""
    if text not in ("yes", "no"):
        raise BadWord(f"expected yes or no, not {text!r}")
    return text == "yes"


def write_flag(value: bool, _: MemberContext) -> str:
    return "yes" if value else "no"


ID = Option("id", "member_id", str, plain, lambda member: member.member_id)
GENERATION = Option("generation", "generation_id", read_number, plain, lambda member: str(member.generation))
INSTANCE = Option("instance", "group_instance_id", read_nullable, plain, kept("instance", ""))
REASON = Option("reason", "reason", read_phrase, lambda text, _: write_phrase(text), always(""))


def version_option(newest: int) -> Option:
    """The version of a request, unless it is the newest."""
    return number("v", "version", str(newest))


# --- commands


class RequestCommand:
    """A command that is a request. Subclasses say what is particular to theirs."""

    verb: ClassVar[str]
    usage: ClassVar[str]
    does: ClassVar[str]
    messages: ClassVar[tuple[type[Request], ...]]
    version: ClassVar[int]
    """The version that is meant unless ``v=`` says otherwise."""
    options: ClassVar[tuple[Option, ...]] = ()
    by_member: ClassVar[bool] = True
    """Whether a line of this command begins with a member's name."""
    options_last: ClassVar[bool] = False

    def read(self, words: Sequence[str], scope: Scope) -> tuple[Request, int]:
        """The request with its version. Raises :class:`BadWord`."""
        given, rest = self.split(words)
        member = scope.member
        self._keep(given, member)
        values: dict[str, Any] = {}
        for option in self.options:
            values[option.field] = option.value(given.get(option.key, option.default(member)))
        version = values.pop("version", self.version)
        for option in self.options:
            if version < option.since:
                values[option.field] = None
        return self.build(values, rest, version, scope), version

    def take_options(self, words: Sequence[str], member: MemberContext) -> None:
        """Let a member go on with these options. Raises :class:`BadWord`."""
        given, rest = self.split(words)
        once = [
            f"{option.key}={given[option.key]}" for option in self.options if not option.stays and option.key in given
        ]
        self.expect_no([*rest, *once])
        self._keep(given, member)

    def _keep(self, given: dict[str, str], member: MemberContext) -> None:
        for option in self.options:
            if option.stays and option.key in given:
                option.value(given[option.key])
                member.options[option.key] = given[option.key]

    def split(self, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """The options by key, and the other words."""
        known = {option.key for option in self.options}
        given, rest = {}, []
        for word in words:
            key, equals, value = word.partition("=")
            if equals and key in known:
                given[key] = value
            else:
                rest.append(word)
        return given, rest

    def build(self, values: dict[str, Any], rest: list[str], version: int, scope: Scope) -> Request:
        """The request of the options' values and the other words."""
        self.expect_no(rest)
        message: Any = self.messages[0]
        request: Request = message(group_id=scope.group_id, **values)
        return request

    def write(self, request: Any, version: int, scope: Scope) -> list[str]:
        """The words behind the verb. Raises :class:`NotExpressible`."""
        values = self.values(request, version) | {"version": version}
        member = scope.member
        written = []
        for option in self.options:
            text = option.write(values[option.field], member) if version >= option.since else option.default(member)
            if text != option.default(member):
                written.append(f"{option.key}={write_word(text, also='=,+:')}")
                if option.stays:
                    member.options[option.key] = text
        rest = self.write_rest(request, version, scope)
        return [*rest, *written] if self.options_last else [*written, *rest]

    def group_id(self, request: Any, version: int) -> str | None:
        """The group that the request is about, or none. Raises :class:`NotExpressible` if it is not one alone."""
        group_id: str | None = getattr(request, "group_id", None)
        return group_id

    def values(self, request: Any, version: int) -> dict[str, Any]:
        """The fields of a request that options give."""
        return {option.field: getattr(request, option.field) for option in self.options if option.key != "v"}

    def write_rest(self, request: Any, version: int, scope: Scope) -> list[str]:
        """The other words."""
        return []

    def expect_no(self, rest: Sequence[str]) -> None:
        """Refuse words that are left."""
        if rest:
            raise BadWord(f"cannot read {rest[0]!r}; expected {self.usage}")


def written_member(member_id: str, scope: Scope) -> str:
    """A member by its name, or by its id where no member has that."""
    name = scope.members.name_of(member_id)
    return name if name is not None else f"id:{write_word(member_id)}"
