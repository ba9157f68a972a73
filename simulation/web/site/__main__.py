"""``python -m rejoin.simulation.web.site FOLDER``: builds the laboratory as a folder of files."""

from __future__ import annotations

import sys
from pathlib import Path

from rejoin.output import print_aside, print_text
from rejoin.simulation.web.site.build import MOST_BYTES, NotBuilt, build


def main(arguments: list[str]) -> int:
    """Build the folder and print what a browser loads."""
    if len(arguments) != 1:
        print_aside("usage: python -m rejoin.simulation.web.site FOLDER")
        return 2
    try:
        sizes = build(Path(arguments[0]))
    except NotBuilt as problem:
        print_aside(problem)
        return 1
    groups = {"page": [0, 0], "engine": [0, 0]}
    for name, size in sizes.items():
        group = groups["engine" if name.startswith("engine/") else "page"]
        group[0] += 1
        group[1] += size
        if name.startswith("engine/"):
            print_text(f"{size / 1e6:8.2f} MB  {name}")
    print_text(f"{groups['page'][1] / 1e6:8.2f} MB  the page, {groups['page'][0]} files")
    total = sum(sizes.values())
    print_text(
        f"{total / 1e6:8.2f} MB  in all, in {arguments[0]}; serve it with python -m http.server -d {arguments[0]}"
    )
    return 0 if total < MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
