"""Names of files in the folder of a stream."""

from __future__ import annotations

from typing import Final

STREAM: Final = "stream.json"
"""The file that marks a folder as one of a stream."""
