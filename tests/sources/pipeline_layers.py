"""The rooms of the pipeline: which package each may import."""

from __future__ import annotations

TABLE_WORDS = ("pipeline.event_fields", "pipeline.vocabulary")
"""Parts of tables that readers without Spark use, too."""

OF_PIPELINE = {
    "pipeline": ("protocol", "journal", "pages", "pipeline"),
    "pipeline.spark": ("pipeline.spark",),
    "pipeline.schemas": (
        *("journal.events.fields", "pipeline.columns", "pipeline.event_fields", "pipeline.schemas"),
        "pipeline.sweep.schemas",
        *("pipeline.share_groups.schemas", "pipeline.streams_groups.schemas"),
        "pipeline.transactions.schemas",
    ),
    # The page that steps through a report's groups.
    "pipeline.drawn": (
        *("journal.events", "journal.recording", "pages", "pipeline.event_fields", "pipeline.drawn"),
        *("pipeline.findings.formatting", "pipeline.report.data", "pipeline.report.page", "pipeline.vocabulary"),
    ),
    # A log alone as a page to step through: without Arrow.
    "pipeline.drawn.logged_rows": (
        *("journal.envelope", "journal.recording", "pipeline.drawn.row_events", "pipeline.reading"),
    ),
    "pipeline.reading": (
        "protocol",
        "journal",
        *TABLE_WORDS,
        "pipeline.columns",
        "pipeline.reading",
        "pipeline.schemas",
        "pipeline.tables.on_spark",
    ),
    "pipeline.tables": (*TABLE_WORDS, "pipeline.schemas", "pipeline.tables"),
    # What rejoin why needs of the tables: no schema of Spark's.
    "pipeline.tables.groups": (*TABLE_WORDS, "pipeline.tables.groups"),
    "pipeline.audits": (*TABLE_WORDS, "pipeline.audits", "pipeline.schemas", "pipeline.tables"),
    "pipeline.sweep.schemas": ("pipeline.columns",),
    # Lines that bugs leave in logs are tables of the journal's, as all lines are.
    "pipeline.findings.known_bugs": (
        *TABLE_WORDS,
        "journal.kafka_logs.bug_signs",
        "journal.kafka_logs.clients.names",
        "pipeline.findings",
    ),
    "pipeline.findings": (
        "protocol.partitioner",
        *TABLE_WORDS,
        "pipeline.findings",
        "pipeline.schemas",
        "pipeline.tables",
    ),
    "pipeline.report": (
        "pages",
        "protocol.printable",
        *TABLE_WORDS,
        "pipeline.columns",
        "pipeline.drawn",
        "pipeline.audits",
        "pipeline.instants",
        "pipeline.findings",
        "pipeline.reading",
        "pipeline.report",
        "pipeline.schemas",
        *("pipeline.share_groups", "pipeline.streams_groups"),
        "pipeline.tables",
        "pipeline.transactions",
        "protocol.printable",
    ),
    "pipeline.share_groups": (
        *("journal.events.fields", *TABLE_WORDS, "pipeline.columns", "pipeline.findings", "pipeline.share_groups"),
        *("pipeline.group_kinds", "pipeline.tables"),
    ),
    # As share groups, of whose tables some columns are theirs, too.
    "pipeline.streams_groups": (
        *("journal.events.fields", *TABLE_WORDS, "pipeline.columns", "pipeline.findings", "pipeline.share_groups"),
        *("pipeline.group_kinds", "pipeline.streams_groups", "pipeline.tables"),
    ),
    "pipeline.group_kinds": ("pipeline.group_kinds", "pipeline.tables", "pipeline.transactions.on_spark"),
    "pipeline.transactions": (
        "journal.events.fields",
        "pipeline.columns",
        "pipeline.findings",
        "pipeline.schemas",
        "pipeline.tables",
        "pipeline.transactions",
    ),
    "pipeline.incremental": (
        *(*TABLE_WORDS, "pipeline.findings", "pipeline.incremental", "pipeline.schemas", "pipeline.tables"),
        *("pipeline.share_groups", "pipeline.streams_groups", "pipeline.transactions"),
    ),
    "pipeline.watch": (
        "journal",
        "pipeline.findings",
        "pipeline.incremental",
        "pipeline.watch",
        "pipeline.reading",
        "pipeline.schemas",
        "protocol.printable",
    ),
    # The one room of the pipeline that speaks Kafka's protocol: it looks at clusters as an admin client.
    "pipeline.kafka_cluster.polling": (
        *("protocol.types", "client.admin.admin", "client.commands.setting_options", "client.core.errors"),
        *("client.core.inputs", "client.transports.addresses", "pipeline.kafka_cluster"),
    ),
    "pipeline.kafka_cluster": (
        *("protocol.types", "protocol.printable", "journal.file_lock", "pipeline.kafka_cluster", "pipeline.findings"),
        *("pipeline.watch.shown_rows", "pipeline.reading.broker_logs", "pipeline.reading.request_log"),
        *(*TABLE_WORDS, "pipeline.why"),
    ),
    "pipeline.why": (
        *("protocol.printable", "pipeline.kafka_cluster", "pipeline.findings", "pipeline.watch.service"),
        *(*TABLE_WORDS, "pipeline.instants", "pipeline.reading", "pipeline.tables.groups", "pipeline.why"),
        *("journal.reader", "journal.segments", "pipeline.share_groups", "pipeline.streams_groups"),
    ),
    # The one room of the pipeline that plays: what it reads is what simulations return.
    "pipeline.explore": ("simulation", "pipeline.explore", "pipeline.spark"),
    "pipeline.sweep": ("journal", "pages", "simulation", "pipeline.columns", "pipeline.spark", "pipeline.sweep"),
    "pipeline.commands": ("simulation.scenario.reading", "pipeline"),
}
"""Package to packages of ours that it may import, all below ``rejoin``."""
