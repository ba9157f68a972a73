"""Names of files in the folder of a watch of a cluster."""

from __future__ import annotations

from typing import Final

ABOUT: Final = "cluster.json"
"""The file that marks a folder as one of a watched cluster."""
