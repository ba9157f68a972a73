"""Where things are in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
GOLDEN: Final = ROOT / "tests" / "golden"
INCIDENTS: Final = GOLDEN / "incidents"
"""Logs of a broker whose consumers had several troubles at a time, each with the ledger of what was done."""
JOURNALS: Final = GOLDEN / "journals"
"""Journals and a table of events as version 1 wrote them."""
RECORDED: Final = GOLDEN / "kafka-4.x"
TRANSCRIPTS: Final = ROOT / "tests" / "transcripts"
GALLERY: Final = ROOT / "simulation" / "gallery"
