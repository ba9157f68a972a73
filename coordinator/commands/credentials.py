"""The command ``rejoin credentials``: SCRAM's keys of a password, as lines of a users file."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter


def run(
    name: str, /, *, iterations: Annotated[int, Parameter(help="How often the password is hashed.")] = 4_096
) -> int:
    """Read a password from the terminal, or a line of standard input, and print what a users file keeps of it.

    Parameters
    ----------
    name
        The user.
    """
    import getpass  # noqa: PLC0415 (help can do without these)
    import secrets  # noqa: PLC0415

    import yaml  # noqa: PLC0415

    from rejoin.protocol.sasl.scram import HASHES, ITERATIONS, MOST_ITERATIONS, ScramCredential  # noqa: PLC0415

    if not name or not name.isprintable():
        print("rejoin credentials: expected a name of printable characters", file=sys.stderr)
        return 2
    if not ITERATIONS <= iterations <= MOST_ITERATIONS:
        print(f"rejoin credentials: --iterations: expected {ITERATIONS} to {MOST_ITERATIONS}", file=sys.stderr)
        return 2
    try:
        password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    except EOFError:
        password = ""
    if not password:
        print("rejoin credentials: expected a password on standard input", file=sys.stderr)
        return 2
    keys = {
        mechanism: str(ScramCredential.of(mechanism, password, secrets.token_bytes(16), iterations))
        for mechanism in HASHES
    }
    print(yaml.safe_dump({name: keys}, width=1_000, allow_unicode=True), end="")
    return 0
