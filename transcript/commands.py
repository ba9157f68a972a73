"""``rejoin transcript``: play a transcript against a fresh node, and list the commands of the language."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill
from typing import Annotated, Final

from cyclopts import App, Parameter

from rejoin.error_lines import print_error, refuse
from rejoin.output import print_aside, print_text
from rejoin.usage_errors import no_option

_WIDTH: Final = 110
MOST_BYTES: Final = 64 * 2**20

app = App(name="transcript", help="Play transcripts: requests to a coordinator, with its answers and events.")


@app.command
def play(
    file: Annotated[Path, Parameter(allow_leading_hyphen=True, validator=no_option)],
    *,
    rewrite: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Play a transcript against a fresh node on a virtual clock, and print it with the node's output.

    Parameters
    ----------
    file
        Transcript to play; - is the standard input.
    rewrite
        Write the output into the file.
    """
    # Imported here, since help can do without.
    from rejoin.files import read_text  # noqa: PLC0415
    from rejoin.transcript.player import TranscriptError, differences  # noqa: PLC0415
    from rejoin.transcript.player import play as play_text  # noqa: PLC0415
    from rejoin.transcript.session import NodeFailed  # noqa: PLC0415

    is_stream = str(file) == "-"
    name = "standard input" if is_stream else str(file)
    try:
        text = sys.stdin.read() if is_stream else read_text(file, MOST_BYTES)
        played = play_text(text)
        if rewrite and not is_stream:
            file.write_text(played.text, encoding="utf-8")
    except TranscriptError as problem:
        return refuse(f"{name}:{problem.line.number}: {problem.line.text}: {problem.problem}")
    except NodeFailed as problem:
        print_error(f"{name}: {problem}")
        return 1
    except UnicodeDecodeError:
        return refuse(f"{name}: not text; expected a transcript in UTF-8")
    except OSError as problem:
        return refuse(f"{name}: {problem.strerror}; expected a transcript, or - for standard input")
    print_text(played.text, end="")
    if rewrite and not is_stream:
        return 0
    if not played.differing:
        return 0
    print_aside()
    print_error(f"{name}: the output differs (- expected, + printed by this run); --rewrite writes it into the file")
    print_aside()
    print_aside("\n".join(differences(played)))
    return 1


@app.command
def language() -> None:
    """List the commands of the transcript language.

    NAME is a member, whose id, generation and protocol come from the answers to it. Underscores in a reason are spaces.
    """
    from rejoin.transcript.grammar.table import language as commands  # noqa: PLC0415

    for usage, does in commands():
        print_text(fill(usage, _WIDTH, subsequent_indent=" " * 8, break_on_hyphens=False))
        print_text(fill(does, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4, break_on_hyphens=False))
