"""Lives of applications on Rejoin: ``python -m conformance.clients.streams_groups [LIFE ...]``.

Without a life all are played, and the table of docs/clients.md is written.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from conformance.clients.streams_groups import TABLE
from conformance.clients.streams_groups.lives import LIVES, STEPS
from conformance.clients.streams_groups.playing import played


def main() -> int:
    """Play the lives; 1 where a step failed."""
    parser = argparse.ArgumentParser(description="Play lives of applications of Kafka Streams on Rejoin.")
    parser.add_argument("life", nargs="*", choices=[*LIVES, []], metavar="LIFE", help="all without any")
    lives = parser.parse_args().life
    outcome = asyncio.run(played("rejoin", "", lives or LIVES))
    for line in outcome.defects:
        print(f"the node logged: {line}")
    if not lives:
        TABLE.keep("Kafka Streams", "4.4.0", {name: outcome.problems.get(name, "not played") for name in STEPS})
        TABLE.write()
    return 1 if any(outcome.problems.values()) or outcome.defects else 0


if __name__ == "__main__":
    sys.exit(main())
