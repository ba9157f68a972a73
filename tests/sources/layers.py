"""Which package may import which: the table that the imports of all sources are checked against."""

from __future__ import annotations

from tests.sources.pipeline_layers import OF_PIPELINE

CLIENT_CONFIGS = ("client.config", "client.producer_config", "client.share_config")

CONSUMER_BASE = (
    "protocol",
    "journal.events",
    "client.assignors",
    *(
        f"client.core.{module}"
        for module in (
            *("base_context", "effects", "errors", "fetch.consumer_record", "fetch.fetched", "fetch.session", "inputs"),
            *("group.consumer.state", "share.session", "share.state"),
            *("in_flight_requests", "metadata", "reactions", "requests", "state", "step_context", "subscription"),
        )
    ),
)
"""What every room of the consumer's core stands on: its state, its vocabulary, and sending requests."""

STEP = (
    "protocol",
    "journal.events",
    "coordinator.config",
    "coordinator.core.effects",
    "coordinator.core.inputs",
    "coordinator.core.runtime",
    "coordinator.core.security",
    "coordinator.core.step_context",
)
"""What every room of the coordinator's core stands on: inputs and effects, and a runtime that knows no groups."""

GROUP_STATES = (
    "coordinator.core.groups.classic.state",
    "coordinator.core.groups.consumer.model.state",
    "coordinator.core.groups.streams.model.state",
)
OBSERVED = ("protocol", "journal.events", "simulation.simulation", "simulation.kernel")
"""What looks at a run from outside: its simulation, its kernel and its events."""
PLAYED = ("simulation.actors", "simulation.disk", "simulation.network", "simulation.scenario")
"""What a run is made of."""

SERVICE = (
    "protocol",
    "journal",
    "pages",
    "coordinator.service",
    "coordinator.core",
    "coordinator.config",
    "coordinator.leadership",
    "coordinator.pending_reply",
    "coordinator.storage",
)

MAY_IMPORT = {
    "protocol": ("protocol",),
    "protocol.request_contents": ("protocol",),
    "protocol.errors": (),
    "protocol.types": ("protocol.records.batch_run",),
    "protocol.fields": ("protocol.errors", "protocol.types"),
    "protocol.message": ("protocol.errors", "protocol.fields", "protocol.limits"),
    # A message knows no other; what is in common between them is in the base and the types.
    "protocol.messages": (
        "protocol.errors",
        "protocol.messages.leader_hints",
        "protocol.messages.share.acknowledgements",
        "protocol.message",
        "protocol.java",
        "protocol.messages.partition_results",
        "protocol.streams",
        "protocol.types",
        "protocol.unvalidated",
    ),
    "protocol.records": (
        "protocol.fields",
        "protocol.message",
        "protocol.records",
        "protocol.streams",
        "protocol.types",
    ),
    "protocol.streams": ("protocol.message", "protocol.streams", "protocol.types"),
    "protocol.brokers": ("protocol.brokers", "protocol.registry"),
    "protocol.sasl": ("protocol.sasl",),
    "protocol.security": ("protocol.messages.security", "protocol.security"),
    "protocol.embedded": ("protocol.java", "protocol.types"),
    "protocol.wire": ("protocol",),
    "journal": ("protocol", "journal"),
    "pages": ("pages",),
    "journal.events": ("protocol", "journal.events"),
    "journal.kafka_logs": ("protocol", "journal.kafka_logs"),
    "journal.recording": ("protocol.records", "journal"),
    "transcript": ("protocol", "journal", "transcript", "coordinator.core", "coordinator.config"),
    "transcript.grammar": ("protocol", "journal.formatting", "transcript.grammar", "transcript.members"),
    "coordinator.config": (
        "protocol.validation",
        "protocol.brokers",
        "coordinator.client_settings",
        "coordinator.settings",
    ),
    "coordinator.client_settings": ("protocol.validation",),
    "coordinator.settings": ("protocol.brokers", "coordinator.settings.types"),
    "coordinator.core": (
        "protocol",
        "journal.events",
        "coordinator.core",
        "coordinator.config",
        "coordinator.settings.security",
        "coordinator.settings.topic_defaults",
    ),
    # What every shard needs knows no groups.
    "coordinator.core.runtime": STEP,
    "coordinator.core.groups": (*STEP, "coordinator.core.groups", "coordinator.core.offsets", "coordinator.core.views"),
    # The classic protocol knows what any kind of group has, and neither offsets nor another kind.
    "coordinator.core.groups.classic": (*STEP, "coordinator.core.groups", "coordinator.core.views"),
    # What a data partition is knows no topics: who makes and deletes them says so. Requests look topics up.
    "coordinator.core.partitions": (
        *STEP,
        "coordinator.core.quotas",
        "coordinator.core.fetch.logs",
        "coordinator.core.fetch.synthetic",
        "coordinator.core.partitions",
        "coordinator.core.topics",
    ),
    "coordinator.core.topics": (
        *STEP,
        "coordinator.core.cluster.loggers",
        "coordinator.core.quotas",
        "coordinator.settings.topic_defaults",
        "coordinator.core.telemetry.subscriptions",
        "coordinator.core.topics",
        "coordinator.core.groups",
        "coordinator.core.partitions",
        "coordinator.core.views",
    ),
    "coordinator.core.telemetry": (*STEP, "coordinator.core.telemetry", "coordinator.core.topics"),
    "coordinator.core.security": (*STEP, "coordinator.core.topics.changes", "coordinator.settings.security"),
    "coordinator.core.quotas": (*STEP, "coordinator.core.quotas", "coordinator.core.topics.changes"),
    "coordinator.core.cluster": (
        *STEP,
        "coordinator.core.cluster",
        "coordinator.core.peers",
        "coordinator.core.groups",
        "coordinator.core.partitions",
        "coordinator.core.topics",
        "coordinator.core.share_state.coordinator",
        "coordinator.core.transactions.coordinator",
    ),
    "coordinator.core.transactions": ("protocol", "journal.events", "coordinator.core", "coordinator.config"),
    # The log of a coordinator knows topics and partitions, and nothing of what it keeps.
    "coordinator.core.state_topics": (
        *STEP,
        "coordinator.core.partitions",
        "coordinator.core.topics",
    ),
    "coordinator.core.fetch": (
        *STEP,
        "coordinator.core.quotas",
        "coordinator.core.fetch",
        "coordinator.core.groups",
        "coordinator.core.partitions",
        "coordinator.core.topics",
    ),
    # A window knows records and members by their numbers and names alone: no log, no group, no request.
    "coordinator.core.share.window": (
        "protocol.errors",
        "protocol.messages.records.fetch",
        "protocol.messages.share.acknowledgements",
        "coordinator.core.inputs",
        "coordinator.core.share.window",
        "coordinator.core.share_state.state_batch",
    ),
    "coordinator.core.share": ("protocol", "journal.events", "coordinator.core", "coordinator.config"),
    "coordinator.core.share_state": ("protocol", "coordinator.core"),
    # Offsets ask what any kind of group answers.
    "coordinator.core.offsets": (
        *STEP,
        "coordinator.core.groups.group",
        "coordinator.core.groups.group_shards",
        "coordinator.core.groups.shard",
        "coordinator.core.offsets",
        "coordinator.core.partitions.producer_state",
        "coordinator.core.topics.names",
        "coordinator.core.topics.topics",
    ),
    "coordinator.leadership.view": ("protocol", "coordinator.core.inputs"),
    "coordinator.leadership.leases": ("protocol", "coordinator.leadership.view", "coordinator.core.inputs"),
    "coordinator.storage.sqlite": ("protocol", "journal.file_lock", "coordinator.storage"),
    "coordinator.storage.postgres": ("protocol", "coordinator.storage"),
    "coordinator.storage": ("protocol", "journal.file_lock", "coordinator.storage", "coordinator.core"),
    "coordinator.leadership": ("protocol", "coordinator.leadership", "coordinator.core", "coordinator.storage"),
    "coordinator.pending_reply": ("protocol",),
    "coordinator.control": (
        "protocol",
        "journal",
        "transcript.steps",
        "transcript.sizes",
        "coordinator.control",
        "coordinator.core",
        "coordinator.config",
        "coordinator.pending_reply",
        "coordinator.storage",
    ),
    "coordinator.control.evidence": (
        *("protocol.request_contents", "journal", "transcript"),
        *("coordinator.control", "coordinator.core.inputs", "coordinator.config"),
    ),
    "coordinator.service": SERVICE,
    "coordinator.service.kafka.connection_limits": (*SERVICE, "coordinator.settings.listeners"),
    # Brokers in one process are made of all that a service is made of.
    "coordinator.in_process_brokers": (
        *SERVICE,
        "coordinator.in_process_brokers",
        "coordinator.control",
    ),
    "coordinator.in_process_brokers.links": ("coordinator.core.peers",),
    # The service knows the control only where it puts it together and where it serves it.
    "coordinator.service.app": (*SERVICE, "coordinator.control"),
    "coordinator.service.options": (*SERVICE, "coordinator.control"),
    "coordinator.service.http.assembly": (*SERVICE, "coordinator.control"),
    "coordinator.service.http.control": (*SERVICE, "coordinator.control"),
    "coordinator.service.http.control_api": (*SERVICE, "coordinator.control"),
    "coordinator.commands": (
        "protocol",
        "journal",
        "coordinator.in_process_brokers.cluster",
        "coordinator.commands",
        "coordinator.config",
        "coordinator.service",
        "coordinator.storage",
    ),
    "coordinator.commands.log": (
        "protocol",
        "journal.file_lock",
        "coordinator.commands.log",
        "coordinator.core.topics.topics",
        "coordinator.core.topics.names",
        "coordinator.service.stores",
        "coordinator.commands.secret_options",
        "coordinator.storage",
    ),
    "coordinator.testing": (
        "protocol",
        "coordinator.in_process_brokers.cluster",
        "coordinator.testing",
        "coordinator.client_settings",
        "coordinator.control",
        "coordinator.core",
        "coordinator.config",
        "coordinator.pending_reply",
        "coordinator.service",
        "coordinator.settings.security",
        "coordinator.storage",
    ),
    "coordinator.testing.starting": (
        *("protocol", "coordinator.in_process_brokers.cluster", "coordinator.testing", "coordinator.client_settings"),
        *("coordinator.config", "coordinator.service", "coordinator.storage", "proxy.control.in_process"),
    ),
    "coordinator.testing.results": ("coordinator.control.errors",),
    "coordinator": ("protocol", "journal", "coordinator"),
    "client.core": ("protocol", "journal.events", "client.core", "client.assignors", *CLIENT_CONFIGS),
    "client.core.producer": ("protocol", "client.core", "client.producer_config"),
    "client.core.state": CONSUMER_BASE,
    "client.core.fetch": (*CONSUMER_BASE, "client.core.fetch", "client.config"),
    "client.core.group": (*CONSUMER_BASE, "client.core.group"),
    "client.core.group.join_loop": (*CONSUMER_BASE, "client.core.group", "client.core.offsets.commits"),
    "client.core.group.consumer.reconciliation": (*CONSUMER_BASE, "client.core.group", "client.core.offsets.commits"),
    "client.core.group.closing": (
        *CONSUMER_BASE,
        "client.core.group",
        "client.core.offsets.commits",
        "client.core.fetch.fetcher",
        "client.config",
    ),
    "client.core.offsets": (
        *CONSUMER_BASE,
        "client.core.offsets",
        "client.core.fetch.leaders",
        "client.core.group.lookup",
        "client.core.group.membership",
    ),
    "client.assignors": ("protocol", "client.assignors"),
    "client.config": ("protocol", "client.assignors", "client.security_config"),
    "client.producer_config": ("protocol", "client.config", "client.security_config"),
    # The one place that knows both: consumers on a coordinator without a socket between them.
    "client.transports.in_process": ("protocol", "coordinator.testing", "client.core", "client.transports.base"),
    "client.transports": ("protocol", "client.core", "client.security_config", "client.transports"),
    "client.admin": (
        "protocol",
        "client.admin",
        "client.config",
        "client.core",
        "client.security_config",
        "client.transports",
    ),
    "client.workload": (
        "protocol",
        "journal",
        "client.config",
        "client.consumer",
        "client.core",
        "client.logs",
        "client.producer",
        "client.producer_driver",
        "client.records",
        "client.driver",
        "client.share_consumer",
        "client.share_config",
        "client.transports",
        "client.workload",
    ),
    "client.commands": ("protocol", "journal", "client"),
    # The broker assigns tasks; what its assignor would do needs no broker.
    "client.commands.streams.assigning": ("protocol", "client", "coordinator.core.groups.streams.assignors"),
    # What clients log follows from their events alone.
    "client.log_writer": ("journal.events", "journal.kafka_logs", "client.log_writer"),
    "client": ("protocol", "journal", "client"),
    "simulation": (
        "protocol",
        "journal",
        "transcript",
        "coordinator.core",
        "coordinator.config",
        "client.core",
        *CLIENT_CONFIGS,
        "client.workload.processing_time",
        "simulation",
    ),
    # The kernel knows neither brokers nor consumers, only that events are emitted.
    "simulation.kernel": ("journal.events.base",),
    "simulation.disk": ("protocol", "coordinator.core.effects", "simulation.kernel"),
    # An actor is one of the two cores with its connections; no actor knows what a scenario does to it.
    "simulation.actors": (
        "protocol",
        "journal.events",
        "coordinator.core",
        "coordinator.config",
        "coordinator.leadership.leases",
        "coordinator.leadership.view",
        "client.core",
        "client.assignors",
        *CLIENT_CONFIGS,
        "client.workload.processing_time",
        "simulation.actors",
        "simulation.disk",
        "simulation.simulation",
        "simulation.network",
        "simulation.node_connections",
        "simulation.kernel",
        "simulation.topic_log",
    ),
    "simulation.scenario": (
        "protocol",
        "coordinator.config",
        "coordinator.core.groups.consumer.regex_resolution",
        *("coordinator.core.groups.share.group_settings", "coordinator.core.topics"),
        *("client.assignors.registry", *CLIENT_CONFIGS),
        "client.workload.processing_time",
        "simulation.actors",
        "simulation.simulation",
        "simulation.scenario",
        "simulation.kernel",
        "simulation.explore.exploring",
    ),
    # Every order of a small scenario: a kernel, copies and forms of whole runs; the rules are those of the search.
    "simulation.explore": (
        *(*OBSERVED, *PLAYED, "coordinator.core"),
        *("client.core.consumer", "client.core.inputs", "client.core.share.session"),
        *("simulation.search.checked_simulation", "simulation.search.observations", "simulation.output.transcript"),
        "simulation.explore",
    ),
    # What a scenario says of it, and all that the kernel of a run along a path needs.
    "simulation.explore.exploring": ("simulation.scenario", "simulation.explore.free.spec"),
    "simulation.output": (
        *(
            *OBSERVED,
            *PLAYED,
            "journal.formatting",
            "journal.timeline_lines",
            "pages",
            "transcript",
            "coordinator.core",
            "client.log_writer",
        ),
        *("simulation.output", "simulation.run", "simulation.search.observations"),
    ),
    # It shows what the cores describe of themselves: no file, no socket, no thread.
    "simulation.laboratory": (
        *(*OBSERVED, *PLAYED, "journal.recording", "journal.timeline_lines", "journal.formatting"),
        *(
            "coordinator.core",
            "client.core.group.describe",
            "client.core.inputs",
            *("simulation.laboratory", "simulation.output", "transcript.player"),
        ),
    ),
    "simulation.web": (
        *("pages", "journal", "protocol.validation", "coordinator.service.http"),
        *("simulation.laboratory", "simulation.run", "simulation.scenario", "simulation.web"),
    ),
    "simulation.web.worker": ("simulation.laboratory", "simulation.scenario", "simulation.web.session"),
    # The laboratory shows what the rules of reports find, where they are installed.
    "simulation.commands": (
        *("protocol.printable", "journal.segments", "simulation"),
        *("pipeline.why.journal", "pipeline.drawn.logged_rows", "pipeline.explore", "pipeline.spark"),
    ),
    "simulation.search": (
        *(*OBSERVED, *PLAYED, "transcript", "coordinator.core"),
        *("client.core.consumer", "client.core.inputs", "client.assignors.cooperative_sticky"),
        *("client.core.group.streams.tasks", "simulation.output", "simulation.search", "simulation.node_connections"),
    ),
    # A check says the specification again: it knows states and events.
    "simulation.search.checks": (
        *("protocol", "journal.events", "client.core.consumer"),
        *("coordinator.core.effects", "coordinator.core.snapshots", "coordinator.core.views", *GROUP_STATES),
        "simulation.actors",
        "simulation.kernel",
        "simulation.network",
        "simulation.output",
        "simulation.search.checks",
        "simulation.search.observations",
        "simulation.search.observed_shares",
        "simulation.search.observed_consumer_groups",
        "simulation.search.observed_shares",
        "simulation.search.streaming",
    ),
    "demo": ("demo", "journal", "pipeline.report"),
    **OF_PIPELINE,
    # What plays scripts on brokers knows none of ours: they are asked over sockets, as any other.
    "proxy": (
        *("protocol", "proxy", "client.transports.kafka"),
        *("coordinator.service.defaults", "coordinator.service.kafka.binding", "coordinator.service.logs"),
        # Rules are those of the control API; the journal has the form of Kafka's request log.
        *("coordinator.control.fault_injection", "coordinator.control.errors", "coordinator.core.inputs"),
        *("transcript.steps", "journal.kafka_logs.request_lines"),
    ),
    "proxy.listeners": ("protocol", "proxy", "client.transports.kafka"),
    # They are protected as those of a node.
    "proxy.listeners.client_login": (
        *("protocol", "proxy", "coordinator.config", "coordinator.service.security.authenticator"),
        "coordinator.service.security.listener_security",
    ),
    "proxy.faults": (
        *("protocol", "proxy", "transcript.steps"),
        *("coordinator.control.fault_injection", "coordinator.core.inputs"),
    ),
    "proxy.watch": ("protocol", "proxy", "journal.kafka_logs"),
    # The control API of a proxy is that of a node, over what passes in the place of a node's steps.
    "proxy.control": (
        *("protocol", "proxy", "client.admin", "client.core", "client.transports", "client.security_config"),
        *("coordinator.control", "coordinator.core", "coordinator.pending_reply", "coordinator.service"),
        *("coordinator.config", "transcript.steps"),
    ),
    # The pages are a node's; events are concluded as reports conclude them.
    "proxy.live": (
        *("protocol", "proxy", "client.admin", "client.core", "coordinator.core.views", "coordinator.service"),
        *("journal.envelope", "pipeline.drawn.row_events", "pipeline.event_fields", "pipeline.reading"),
    ),
    "proxy.commands": (
        *("protocol", "proxy", "client.commands.setting_options", "client.transports", "coordinator.service.logs"),
        *("coordinator.service.defaults", "coordinator.service.security.control_token", "coordinator.config"),
        "coordinator.service.security.loopback",
    ),
    "conform": ("protocol", "conform"),
    "conform.commands": (
        *("protocol", "conform", "client.security_config", "client.core.errors", "client.core.inputs"),
        *("client.commands.setting_options", "client.transports.base", "client.transports.security"),
        *("client.transports.kafka.address", "coordinator.testing.coordinator", "coordinator.testing.results"),
        "coordinator.testing.starting",
    ),
    # What judges clients is a broker itself: the one for tests.
    "conform.clients": (
        *("protocol", "conform.clients", "coordinator.control.sent_requests"),
        *("coordinator.testing.coordinator", "coordinator.testing.results", "coordinator.testing.starting"),
    ),
    # A real cluster is asked as its clients and administrators ask it.
    "conform.clients.cluster": (
        *("protocol", "conform.clients", "client.admin", "client.core", "client.producer", "client.transports"),
        *("coordinator.control.sent_requests", "coordinator.core.views", "coordinator.testing"),
    ),
    # It stands between the broker's answers and the client's connections.
    "conform.exploring": (
        *("protocol", "conform.clients", "conform.exploring", "coordinator.control.control"),
        *("coordinator.core.inputs", "coordinator.pending_reply"),
        *("coordinator.testing.coordinator", "coordinator.testing.results", "coordinator.testing.starting"),
    ),
    "conform.recordings": ("conform.recordings",),
    "conform.reports": ("pages", "conform.comparison", "conform.reports"),
    "conform.records": ("protocol", "conform.records"),
    "conform.player": ("protocol", "conform.player", "conform.records"),
    "conform.steps": ("protocol", "conform.player", "conform.steps"),
    "conform.comparison": (
        *("protocol", "conform.player", "conform.records", "conform.recordings.by_release", "conform.comparison"),
    ),
}
"""Package to packages of ours that it may import, all below ``rejoin``. The longest name that fits a module counts."""
