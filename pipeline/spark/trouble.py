"""Errors of commands where Spark fails. Spark is not imported."""

from __future__ import annotations


class SparkTrouble(Exception):
    """Spark did not start or did not do its work; the text names what was wrong and the log file."""
