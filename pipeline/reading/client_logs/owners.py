"""The groups of consumers whose own logs name none, as librdkafka's do: from what others say of the same clients."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rejoin.pipeline.reading.client_logs.statements import NO_GROUP

UNNAMED: Final = "c:"
"""How ``about`` begins of a consumer whose group is not known; the client id follows."""
_CLIENT: Final = r'"([^"\\]+?)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"|"client_id":"([^"\\]+)"'
_CLIENTS: Final = re.compile(_CLIENT)


def named_groups(clients: Iterable[str], rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The ``about`` of each client's group, by the one that it has: the only group in whose rows (``about``, body) a
    client id or a member id that begins with it is found. Where there is none, or several, it is :data:`NO_GROUP`."""
    found: dict[str, set[str]] = {client: set() for client in clients}
    for about, body in rows if found else ():
        for of_member, client in _CLIENTS.findall(body):
            if (name := of_member or client) in found:
                found[name].add(about)
    return {
        f"{UNNAMED}{client}": groups.pop() if len(groups) == 1 else f"g:{NO_GROUP}" for client, groups in found.items()
    }


def with_groups(parsed: DataFrame) -> DataFrame:
    """Parsed rows with a group for each consumer, by :func:`named_groups`."""
    unnamed = fn.col("about").startswith(UNNAMED)
    clients = [row.about[len(UNNAMED) :] for row in parsed.where(unnamed).select("about").distinct().collect()]
    if not clients:
        return parsed
    of_groups = parsed.where(fn.col("about").startswith("g:"))
    named = fn.concat(*(fn.regexp_extract_all("body", fn.lit(_CLIENT), fn.lit(group)) for group in (1, 2)))
    pairs = (
        of_groups.select("about", fn.explode(named).alias("client")).where(fn.col("client").isin(clients)).distinct()
    )
    seen: dict[str, list[str]] = defaultdict(list)
    for row in pairs.collect():
        seen[row.client].append(row.about)
    groups = named_groups(clients, ((about, f'"client_id":"{name}"') for name in seen for about in seen[name]))
    group = fn.create_map(*(fn.lit(part) for pair in groups.items() for part in pair))[fn.col("about")]
    return parsed.withColumn("about", fn.when(unnamed, group).otherwise(fn.col("about")))
