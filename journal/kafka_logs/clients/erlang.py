"""brod, the client of Erlang and Elixir: a line that names group and generation, and below it what happened."""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import Template

_MEMBER: Final = "Group member ({group_id?},coor={client_id?},cb={callback?},generation={generation}):\n"


def _line(kind: str, text: str, variant: str = "") -> Template:
    return Template(kind, _MEMBER + text, variant=variant)


BROD_LINES: Final[tuple[Template, ...]] = (
    _line("join_failed", "failed to join group\nreason: ~:?~{problem}"),
    _line("rejoin_requested", "re-joining group, reason:~:?~{reason}"),
    _line("generation_joined", "elected={leader}"),
    _line("group_synced", "assignments received:{assignments}"),
    _line("group_left", "~[Ll]~eaving group, reason: {reason}"),
    _line("fenced", "Static member was fenced by another member {rest}"),
    _line("commit_failed", "failed to commit offset~[^\\n]*~\n{problem}"),
)
"""In the order in which a reader tries them. ``coor`` distinguishes the consumers of one process."""
