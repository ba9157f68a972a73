"""The life of one library, a line of JSON for each step: ``python -m tests.real_clients LIBRARY HOST:PORT``."""

from __future__ import annotations

import json
import sys

from tests.real_clients.libraries import LIBRARIES
from tests.real_clients.steps import STEPS


def main(name: str, bootstrap_servers: str) -> None:
    (library,) = (each for each in LIBRARIES if each.name == name)
    client = library(bootstrap_servers)
    for step, do in STEPS.items():
        if step in library.without:
            continue
        problem = ""
        try:
            do(client)
        except Exception as raised:  # whatever it is, the step was not passed
            problem = f"{type(raised).__name__}: {raised}"
        print(json.dumps({"step": step, "passed": not problem, "problem": problem}), flush=True)
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
