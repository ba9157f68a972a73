"""Why a rebalance began, from the reason that a coordinator prints behind "Preparing to rebalance group".

Reasons came with Kafka 2.2; what the client says of itself (KIP-800) with 3.2. The texts of every version are told
apart by their fixed words, since ids may hold nearly anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

UNKNOWN: Final = "unknown"
"""The class of a cause that a log does not tell."""

_CLIENT: Final = "; client reason: "
_NOT_PROVIDED: Final = ("not provided", "null", "")


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause class of the journal, and through whom. ``members`` are all of them where a reason names several."""

    cause: str
    member_id: str | None = None
    group_instance_id: str | None = None
    client_reason: str | None = None
    members: tuple[str, ...] = ()
    state: str | None = None
    """The group's state before, where the reason tells it."""
    error: str | None = None


_FORMS: Final = tuple(
    (cause, re.compile(form, re.DOTALL))
    for cause, form in (
        ("join-new", r"Adding new member (?P<member>.*?)(?: with group instance ?id (?P<instance>.*))?"),
        (
            "static-metadata",
            r"Updating metadata for static member (?P<member>.*?) with instance id (?P<instance>.*)",
        ),
        ("rejoin-metadata", r"Updating metadata for member (?P<member>.*?)(?: during (?P<state>\w+))?"),
        ("rejoin-leader", r"[Ll]eader (?P<member>.*) re-joining group during (?P<state>\w+)"),
        ("rejoin-preparing", r"Member (?P<member>.*?) (?:is )?joining group during (?P<state>\w+)"),
        (
            "static-protocol",
            r"Group's selectedProtocol will change because static member (?P<member>.*?) with instance id "
            r"(?P<instance>.*) joined with change of protocol",
        ),
        ("leave", r"[Rr]emoving member (?P<member>.*) on LeaveGroup"),
        # Kafka: the coordinator in Java rebalances once for all members of a LeaveGroup, and names them together.
        ("leave", r"explicit `LeaveGroup` request for \((?P<members>.*)\) members\.?"),
        ("session-expiry", r"removing member (?P<member>.*) on heartbeat expiration\.?"),
        ("sync-expiry", r"Removing (?P<set>.*) on pending sync request expiration"),
        (
            "store-failure",
            r"[Ee]rror (?:(?P<error>\S+) )?when storing group assignment ?during SyncGroup "
            r"\(member: (?P<member>.*)\)\.?",
        ),
        ("over-capacity", r"Freshly-loaded group .*is over capacity.*"),
        ("downgrade", r"Downgrade group .* from consumer to classic\.?"),
    )
)


def read_reason(text: str) -> Reason:
    """The cause that a reason tells; its class is ``unknown`` for words that no known version prints."""
    said, behind, told = text.partition(_CLIENT)
    client = told if behind and told not in _NOT_PROVIDED else None
    for cause, form in _FORMS:
        match = form.fullmatch(said)
        if match is None:
            continue
        found = match.groupdict()
        members = several(found["set"]) if found.get("set") is not None else ()
        if found.get("members"):
            members = tuple(found["members"].split(", "))
        member = found.get("member") or (members[0] if members else None)
        return Reason(
            cause,
            member,
            instance(found.get("instance")),
            client,
            members or ((member,) if member else ()),
            found.get("state"),
            found.get("error"),
        )
    return Reason(UNKNOWN, client_reason=client)


def instance(text: str | None) -> str | None:
    """An instance id as either language prints it: ``Some(i)`` and ``None``, ``i`` and ``null``, ``Optional[i]``."""
    if text is None or text in ("None", "null", "Optional.empty"):
        return None
    if text.startswith("Some(") and text.endswith(")"):
        return text[5:-1]
    if text.startswith("Optional[") and text.endswith("]"):
        return text[9:-1]
    return text


def several(text: str) -> tuple[str, ...]:
    """The ids of a printed collection: ``Set(a, b)``, ``HashSet(a, b)``, ``[a, b]``."""
    match = re.fullmatch(r"\w*[(\[{](.*)[)\]}]", text, re.DOTALL)
    inside = text if match is None else match[1]
    return tuple(inside.split(", ")) if inside else ()
