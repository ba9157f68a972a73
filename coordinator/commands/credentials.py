"""The command ``rejoin credentials``: SCRAM's keys of a password, as lines of a users file."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from rejoin.output import print_text


def run(
    name: str, /, *, iterations: Annotated[int, Parameter(help="Number of hash iterations.", metavar="N")] = 4_096
) -> int:
    """Read a password from the terminal, or from a line of the standard input, and print the user's entry.

    Parameters
    ----------
    name
        Name of the user.
    """
    import getpass  # noqa: PLC0415 (help can do without these)
    import secrets  # noqa: PLC0415

    import yaml  # noqa: PLC0415

    from rejoin.error_lines import refuse  # noqa: PLC0415
    from rejoin.protocol.sasl.scram import HASHES, ITERATIONS, MOST_ITERATIONS, ScramCredential  # noqa: PLC0415

    if not name or not name.isprintable():
        return refuse("NAME: expected a name of printable characters")
    if not ITERATIONS <= iterations <= MOST_ITERATIONS:
        return refuse(f"--iterations {iterations}: expected {ITERATIONS} to {MOST_ITERATIONS}")
    try:
        password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    except EOFError:
        password = ""
    if not password:
        return refuse("there is no password; expected one on standard input")
    keys = {
        mechanism: str(ScramCredential.of(mechanism, password, secrets.token_bytes(16), iterations))
        for mechanism in HASHES
    }
    print_text(yaml.safe_dump({name: keys}, width=1_000, allow_unicode=True), end="")
    return 0
