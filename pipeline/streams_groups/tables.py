"""Streams groups as tables, and the findings about them."""

from __future__ import annotations

from typing import Final

from rejoin.pipeline.group_kinds.tables import KindOfGroups
from rejoin.pipeline.streams_groups.findings import is_suspicious, streams_findings
from rejoin.pipeline.streams_groups.histories import COLUMNS, READ, tables_of
from rejoin.pipeline.streams_groups.schemas import OF_STREAMS_GROUPS

STREAMS_GROUPS: Final = KindOfGroups(OF_STREAMS_GROUPS, READ, COLUMNS, tables_of, is_suspicious, streams_findings)
