"""Share groups as tables, and the findings about them."""

from __future__ import annotations

from typing import Final

from rejoin.pipeline.group_kinds.tables import KindOfGroups
from rejoin.pipeline.share_groups.findings import is_suspicious, share_findings
from rejoin.pipeline.share_groups.histories import COLUMNS, READ, tables_of
from rejoin.pipeline.share_groups.schemas import OF_SHARE_GROUPS

SHARE_GROUPS: Final = KindOfGroups(OF_SHARE_GROUPS, READ, COLUMNS, tables_of, is_suspicious, share_findings)
