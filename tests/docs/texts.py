"""The texts that people read, by the name under which they are linked."""

from __future__ import annotations

import re
from typing import Final

from tests.paths import ROOT

TEXTS: Final = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [
        ROOT / "README.md",
        ROOT / "COVERAGE.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "helpers" / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
}


def python_blocks(name: str) -> list[str]:
    """The programs in Python that a text shows, in order."""
    return re.findall(r"```python\n(.*?)```", TEXTS[name], re.DOTALL)
