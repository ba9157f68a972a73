"""The distribution on the package index, its release, and the distribution with which it cannot share a folder.

The index has ``rejoin`` as well: a program of others, whose package has the name of ours. Where both are installed,
their files lie in one folder, and the later one has written ``rejoin/__init__.py`` and the command. So each of our
packages imports this module, which then raises `ImportError`.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

DISTRIBUTION: Final = "rejoin-kafka"
"""The name to install."""

_FOREIGN: Final = "rejoin"


@cache
def release() -> str:
    """The installed release, such as 1.0.0."""
    from importlib.metadata import version  # noqa: PLC0415 (half as slow as all of rejoin's own start)

    return version(DISTRIBUTION)


def foreign_release(packages: str) -> str | None:
    """The release of the foreign distribution in a folder of installed packages, or None."""
    if not os.path.isdir(packages):  # an archive, as Spark's executors import from
        return None
    for entry in os.listdir(packages):
        name, _, rest = entry.partition("-")
        if name == _FOREIGN and rest.endswith(".dist-info"):
            return rest.removesuffix(".dist-info")
    return None


def _refuse_the_foreign(packages: str) -> None:
    found = foreign_release(packages)
    if found is not None:
        raise ImportError(
            f"{packages} has {_FOREIGN} {found} beside {DISTRIBUTION}: a program of others, whose package is rejoin, "
            f"too. Run: pip uninstall {_FOREIGN}; pip install --force-reinstall --no-deps {DISTRIBUTION}"
        )


_refuse_the_foreign(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
