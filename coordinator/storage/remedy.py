"""Advice for damaged partitions, in the words of the log line and of ``rejoin log verify``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC


class Remedy(NamedTuple):
    """Remedy for a store: ``option`` is its command line option, ``restore`` says how to have the store whole again."""

    option: str
    restore: str

    def for_data_partition(self, topic: str) -> str:
        """Advice for a partition whose batches cannot be read. A start leaves it out and serves all others."""
        # Without __transaction_state open transactions would never end, so deleting it is no advice.
        give_up = "" if topic == TRANSACTION_STATE_TOPIC else f", or delete the topic {topic} and create it again"
        return (
            f"all other partitions are served; {self.restore}{give_up}; "
            f"rejoin log verify {self.option} lists everything that is damaged"
        )

    def for_data_partitions(self) -> str:
        """Advice when nothing else of the store is damaged."""
        return (
            f". A start leaves these partitions out and serves all others. To have them back, {self.restore}; "
            "to serve them without their records, delete their topics and create them again"
        )

    def for_offsets_partition(self) -> str:
        """Advice for an offsets partition whose records cannot be read."""
        return (
            f"the groups of all other partitions are served; {self.restore}, or save what can still be read of groups "
            f"and offsets with rejoin log export {self.option} --salvage; "
            f"rejoin log verify {self.option} lists everything that is damaged"
        )


def of_directory(folder: Path) -> Remedy:
    """The remedy for a data directory."""
    return Remedy(f"--data {folder}", f"put a complete copy of {folder} back while no coordinator uses it")


def of_database(shown: str) -> Remedy:
    """The remedy for a cluster's database; ``shown`` is its URL without the password."""
    return Remedy(f"--store {shown}", "restore the database from a backup while no node uses it")
