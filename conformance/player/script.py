"""A script, and how it fails."""

from __future__ import annotations


class ScriptFailed(Exception):
    """A script that did not go as its author meant."""
