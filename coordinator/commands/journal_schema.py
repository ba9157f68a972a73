"""The command ``rejoin journal-schema``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoin.journal.schema import JournalSchema


def journal_schema() -> JournalSchema:
    """The rows that a coordinator writes."""
    # Imported here, since help can do without.
    from rejoin.journal.events import (  # noqa: PLC0415
        consumer_groups,
        coordinator,
        share_groups,
        share_partitions,
        streams_groups,
        transactions,
    )
    from rejoin.journal.schema import JournalSchema, events_in  # noqa: PLC0415

    return JournalSchema(
        events_in(coordinator, consumer_groups, share_groups, share_partitions, streams_groups, transactions)
    )


def print_journal_schema() -> int:
    """Print the JSON Schema of the journal's rows."""
    import orjson  # noqa: PLC0415

    schema = orjson.dumps(journal_schema().json_schema(), option=orjson.OPT_INDENT_2)
    sys.stdout.buffer.write(schema + b"\n")
    return 0
