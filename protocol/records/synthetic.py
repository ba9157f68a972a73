"""The records of synthetic logs, which are nowhere stored: both sides make them of topic, partition and offset."""

from __future__ import annotations


def synthetic_record(topic: str, partition: int, offset: int) -> tuple[bytes, bytes]:
    """Key and value of the record at an offset."""
    return f"key-{offset % 1000}".encode(), f"{topic}-{partition}@{offset}".encode()
