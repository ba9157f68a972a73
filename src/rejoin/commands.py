"""The subcommands of ``rejoin``: where each is defined, its line of help, its examples and its exit codes.

Nothing of a subcommand is imported here: each is loaded when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cyclopts import App

EXTRAS: Final = {
    "mcp": ("mcp",),
    "tables": ("pyarrow", "numpy"),
    "pipeline": ("pyspark", "py4j", "pandas", "pyarrow", "numpy"),
    "postgres": ("asyncpg",),
    "security": ("cryptography", "jwt"),
    "telemetry": ("opentelemetry", "google"),
}
"""Each extra of the distribution with the packages that it brings; the first one stands for all."""

_WRONG_INPUT: Final = "the options or the input are wrong"
_STOPPED: Final = {130: "stopped by Ctrl-C"}


class Command(NamedTuple):
    """A subcommand: its target, its line of help, the group that lists it, its examples and its exit codes."""

    target: str
    help: str
    group: str
    examples: tuple[str, ...]
    exit_codes: dict[int, str]
    extra: str | None = None
    """The extra without which it cannot be imported."""

    @property
    def epilogue(self) -> str:
        """What the help shows below the options."""
        codes = "\n".join(f"  {code:<4} {meaning}" for code, meaning in self.exit_codes.items())
        return "\n".join(["Examples:", *(f"  {example}" for example in self.examples), "", f"Exit codes:\n{codes}"])


COMMANDS: Final = {
    "demo": Command(
        "demo.command:app",
        "Show a group forming, growing, crashing and restarting.",
        "Run",
        ("rejoin demo", "rejoin demo --out out/demo"),
        {0: "every scene came to its end", 1: "a scene did not", 2: "the directory cannot be used", **_STOPPED},
    ),
    "serve": Command(
        "coordinator.commands.serve_parser:run",
        "Run a coordinator; with -- COMMAND for as long as a program runs.",
        "Run",
        (
            "rejoin serve --topic orders:12:5",
            "rejoin serve --data out/data --journal out/journal -c num.partitions=6",
            "rejoin serve --control --clock virtual --port 0 --ready-file out/ready.json",
            "rejoin serve --port 0 --topic orders:3 -- pytest tests",
        ),
        {
            0: "stopped by SIGTERM or SIGINT",
            2: "an option, a setting, the address or the store cannot be used",
            126: "COMMAND cannot be started; other codes are its own",
            127: "COMMAND was not found",
        },
    ),
    "credentials": Command(
        "coordinator.commands.credentials:run",
        "Print the entry of a user for a users file, from a password.",
        "Run",
        ("rejoin credentials alice", "rejoin credentials alice --iterations 8192"),
        {0: "printed", 2: "the name, the iterations or the password cannot be used"},
    ),
    "consume": Command(
        "client.commands.consume:app",
        "Run consumers of a group.",
        "Run",
        (
            "rejoin consume --group orders-app --topic orders --consumers 3",
            "rejoin consume --group orders-app --topic orders --processes 3 --static",
            "rejoin consume --group orders-app --topic orders -c max.poll.records=50",
        ),
        {
            0: "stopped, and every consumer closed",
            1: "a consumer failed, or no coordinator answered in time",
            2: "an option or a setting is wrong",
        },
    ),
    "produce": Command(
        "client.commands.produce:app",
        "Write lines to a topic, one record for each.",
        "Run",
        (
            "rejoin produce --topic orders --rate 100",
            "rejoin produce --topic orders --file orders.txt --key-separator :",
            "rejoin produce --topic orders --bootstrap-server localhost:9092 --acks 1",
        ),
        {
            0: "all records are stored",
            1: "a record or a line failed",
            2: "an option, a setting or the partition is wrong",
        },
    ),
    "groups": Command(
        "client.commands.groups.command:app",
        "List, describe, delete and reset groups, as kafka-consumer-groups.sh does.",
        "Run",
        (
            "rejoin groups --list",
            "rejoin groups --describe orders-app --members --verbose",
            "rejoin groups --reset-offsets orders-app --all-topics --to-latest --dry-run",
        ),
        {
            0: "done; or refused by the coordinator, as the output says",
            1: "no coordinator answered",
            2: "the options are wrong",
        },
    ),
    "share-groups": Command(
        "client.commands.share_groups.command:app",
        "List, describe, delete and reset share groups, as kafka-share-groups.sh does.",
        "Run",
        (
            "rejoin share-groups --list --state",
            "rejoin share-groups --describe workers --members --verbose",
            "rejoin share-groups --reset-offsets workers --to-earliest --dry-run",
        ),
        {
            0: "done",
            1: "refused by the coordinator, or no coordinator answered",
            2: "the options are wrong",
        },
    ),
    "streams": Command(
        "client.commands.streams_groups.command:app",
        "List, describe, delete and reset streams groups, as kafka-streams-groups.sh does.",
        "Run",
        (
            "rejoin streams --list --state",
            "rejoin streams --describe word-count --members --verbose",
            "rejoin streams --reset-offsets word-count --all-input-topics --to-earliest --dry-run",
        ),
        {
            0: "done; or refused by the coordinator, as the output says",
            1: "the group is unknown or no coordinator answered",
            2: "the options are wrong",
        },
    ),
    "topics": Command(
        "client.commands.topics.command:app",
        "List, create, describe, alter and delete topics, as kafka-topics.sh does.",
        "Run",
        (
            "rejoin topics --list",
            "rejoin topics --create --topic orders --partitions 12 --config retention.ms=60000",
            "rejoin topics --bootstrap-server localhost:9092 --describe --topic orders",
        ),
        {0: "done", 1: "the cluster refused, or no node answered", 2: "the options are wrong"},
    ),
    "acls": Command(
        "client.commands.acls.command:app",
        "Add, list and remove ACLs, as kafka-acls.sh does.",
        "Run",
        (
            "rejoin acls --list",
            "rejoin acls --add --allow-principal User:billing --operation Read --group billing",
            "rejoin acls --remove --force --topic orders",
        ),
        {0: "done", 1: "the cluster refused, or no node answered", 2: "the options are wrong"},
    ),
    "quotas": Command(
        "client.commands.entity_configs.command:quotas_app",
        "Show and change quotas of users, client ids and addresses, as kafka-configs.sh does.",
        "Run",
        (
            "rejoin quotas --describe",
            "rejoin quotas --alter --user alice --add-config producer_byte_rate=1000000",
            "rejoin quotas --alter --user alice --delete-config producer_byte_rate",
        ),
        {0: "done", 1: "the cluster refused, or no node answered", 2: "the options are wrong"},
    ),
    "users": Command(
        "client.commands.entity_configs.command:users_app",
        "Show and change the users of SCRAM, as kafka-configs.sh does.",
        "Run",
        (
            "rejoin users --describe",
            "rejoin users --alter --user carol --add-config-file carol.properties",
            "rejoin users --alter --user carol --delete-config SCRAM-SHA-256",
        ),
        {0: "done", 1: "the cluster refused, or no node answered", 2: "the options are wrong"},
    ),
    "reassign": Command(
        "client.commands.replicas.command:reassign_app",
        "Move replicas of partitions, as kafka-reassign-partitions.sh does.",
        "Run",
        (
            "rejoin reassign --generate --topics-to-move-json-file topics.json --broker-list 2,3",
            "rejoin reassign --execute --reassignment-json-file moves.json",
            "rejoin reassign --list",
        ),
        {0: "done", 1: "the cluster refused, or no node answered", 2: "the options or a file are wrong"},
    ),
    "elect": Command(
        "client.commands.replicas.command:elect_app",
        "Elect leaders of partitions, as kafka-leader-election.sh does.",
        "Run",
        (
            "rejoin elect --election-type preferred --all-topic-partitions",
            "rejoin elect --election-type unclean --topic orders --partition 0",
        ),
        {
            0: "elected, or there was no need",
            1: "a leader could not be elected, the cluster refused, or no node answered",
            2: "the options or a file are wrong",
        },
    ),
    "simulate": Command(
        "simulation.commands.parser:run",
        "Play a scenario on a virtual clock.",
        "Simulate",
        (
            "rejoin simulate eager_scale_out",
            "rejoin simulate eager_scale_out --compare assignor=range,cooperative-sticky",
            "rejoin simulate scenario.yaml --html out/run.html --journal out/journal",
        ),
        {0: "played to its end", 1: "a coordinator or a consumer raised an exception", 2: _WRONG_INPUT},
    ),
    "lab": Command(
        "simulation.commands.parser:lab",
        "Open the laboratory in the browser.",
        "Simulate",
        ("rejoin lab", "rejoin lab flapping_consumer", "rejoin lab scenario.yaml --seed 7 --port 8080 --no-browser"),
        {0: "stopped by Ctrl-C", 2: "the scenario cannot be read, or the port cannot be used"},
    ),
    "gallery": Command(
        "simulation.commands.parser:gallery_app",
        "Show the scenarios that come with Rejoin.",
        "Simulate",
        ("rejoin gallery list", "rejoin gallery answer flapping_consumer", "rejoin gallery show flapping_consumer"),
        {0: "shown", 2: "there is no such scenario"},
    ),
    "search": Command(
        "simulation.commands.parser:search",
        "Play random scenarios with random faults, and check every invariant.",
        "Simulate",
        ("rejoin search --seeds 0:1000", "rejoin search --schedule failovers --minutes 10 --into out/search"),
        {0: "no invariant was violated", 1: "a violation was found and is printed", 2: _WRONG_INPUT},
    ),
    "explore": Command(
        "simulation.commands.parser:explore",
        "Take every step that could come next in a small world, and check every invariant.",
        "Simulate",
        ("rejoin explore two_members_and_a_crash", "rejoin explore world.yaml --depth 30 --into out/explore"),
        {
            0: "nothing broke",
            1: "a counterexample was found and is printed",
            2: "the world cannot be read",
            **_STOPPED,
        },
    ),
    "assign": Command(
        "client.commands.assign:app",
        "Show what an assignor assigns, and what moves when the group changes.",
        "Simulate",
        (
            "rejoin assign --topics orders:12,clicks:6 --members a,b,c --then leave:b",
            "rejoin assign --topics orders:12 --members a,b --then join:c --compare",
            "rejoin assign --topics orders:12 --members a,b --assignor mine:MyAssignor",
        ),
        {0: "assigned", 2: "the options are wrong, or the assignor failed"},
    ),
    "proxy": Command(
        "proxy.commands.proxy:run",
        "Stand between clients and a real Kafka, and pass on what they say.",
        "Run",
        (
            "rejoin proxy --bootstrap-server kafka:9092",
            "rejoin proxy --bootstrap-server kafka:9092 --listen 127.0.0.1:19092",
            "rejoin proxy --bootstrap-server kafka:9093 --command-config client.properties",
        ),
        {0: "stopped by a signal", 2: "an option is wrong, or the port is taken"},
    ),
    "conform": Command(
        "conform.commands.conform:run",
        "Judge a broker by the answers of a real Kafka.",
        "Explain",
        (
            "rejoin conform --bootstrap-server localhost:9092",
            "rejoin conform --bootstrap-server localhost:9092 --set groups",
            "rejoin conform --bootstrap-server localhost:9092 --baseline known.json",
        ),
        {
            0: "every answer is Kafka's, but for known differences",
            1: "there are differences",
            2: "an option is wrong, or the broker cannot be judged",
            **_STOPPED,
        },
    ),
    "conform-client": Command(
        "conform.commands.conform_client:run",
        "Judge a consumer of any language by its requests in trouble.",
        "Explain",
        (
            "rejoin conform-client -- python consumer.py",
            "rejoin conform-client --only removed -- ./consumer {BOOTSTRAP_SERVERS}",
            "rejoin conform-client --list",
        ),
        {
            0: "no trouble failed",
            1: "a trouble failed",
            2: "an option is wrong, or a trouble could not be played",
            **_STOPPED,
        },
    ),
    "explore-client": Command(
        "conform.commands.explore_client:run",
        "Release the answers to a consumer in many orders, and look for records that are lost or doubled.",
        "Explain",
        (
            "rejoin explore-client --seeds 0:20 -- python consumer.py",
            "rejoin explore-client --seeds 7 --into out/orders -- ./consumer",
            "rejoin explore-client --order seed-7.order -- python consumer.py",
        ),
        {
            0: "no play failed",
            1: "a record was lost or doubled, or the program ended",
            2: "an option is wrong, or nothing could be played",
            **_STOPPED,
        },
    ),
    "report": Command(
        "pipeline.commands.parser:report",
        "Explain rebalances from logs of consumers and brokers, and from journals.",
        "Explain",
        (
            "rejoin report consumer-*.log --out out/why",
            "rejoin report /var/log/kafka --out out/why --timezone Europe/Berlin",
            "rejoin report out/journal --out out/why --group orders-app",
        ),
        {
            0: "written",
            2: "an option is wrong, there is nothing to read, or Spark failed",
            130: "stopped by Ctrl-C or SIGTERM",
        },
        "tables",
    ),
    "watch": Command(
        "pipeline.commands.parser:watch",
        "Explain rebalances as they happen.",
        "Explain",
        (
            "rejoin watch --from http://127.0.0.1:9095",
            "rejoin watch --from http://127.0.0.1:9095 --out out/watch --once",
            "rejoin watch --journal out/journal --out out/watch",
            "rejoin watch --bootstrap-server localhost:9092 --out out/watch",
        ),
        {
            0: "stopped by Ctrl-C, or done with --once",
            1: "with --once: there were no events",
            2: "an option is wrong, or a service, the folder or Spark cannot be used",
        },
    ),
    "why": Command(
        "pipeline.commands.parser:why",
        "Say in ten lines why a group rebalances.",
        "Explain",
        (
            "rejoin why orders-app out/why",
            "rejoin why orders-app out/why --at 14:02",
            "rejoin why orders-app --bootstrap-server http://127.0.0.1:9095",
            "rejoin why orders-app --bootstrap-server localhost:9092",
        ),
        {0: "explained", 2: "an option is wrong, there is no such group, or the source cannot be read"},
    ),
    "mcp": Command(
        "pipeline.commands.parser:mcp",
        "Serve groups and findings over the Model Context Protocol.",
        "Explain",
        ("rejoin mcp out/why", "rejoin mcp --bootstrap-server localhost:9092"),
        {0: "the client closed the connection", 2: "an option is wrong, or the source cannot be read", **_STOPPED},
        "mcp",
    ),
    "sweep": Command(
        "pipeline.commands.parser:sweep",
        "Simulate a grid of settings and seeds, and rank the settings.",
        "Explain",
        (
            "rejoin sweep examples/sweeps/rolling_deploy.yaml",
            "rejoin sweep examples/sweeps/rolling_deploy.yaml --seeds 5 --out out/sweep",
        ),
        {0: "every run ended", 1: "a run failed; its row has the error", 2: _WRONG_INPUT, **_STOPPED},
        "pipeline",
    ),
    "account": Command(
        "client.commands.account:app",
        "Count records processed twice or never, from journals.",
        "Explain",
        ("rejoin account out/journal", "rejoin account out/journal --group orders-app --json"),
        {0: "counted", 2: "no journal of consumers was found, or it cannot be read"},
    ),
    "log": Command(
        "coordinator.commands.log.command:app",
        "Read, check, copy and fill an offsets log, offline.",
        "Inspect",
        (
            "rejoin log dump --data out/data --only offsets",
            "rejoin log verify --data out/data",
            "rejoin log export --data out/data --out out/log.jsonl",
            "rejoin log import out/log.jsonl --data out/other",
        ),
        {0: "done", 1: "the log is damaged", 2: "not done: the options, the file or the store cannot be used"},
    ),
    "transcript": Command(
        "transcript.commands:app",
        "Play transcripts against a fresh node.",
        "Inspect",
        ("rejoin transcript play out/failed.txt", "rejoin transcript language"),
        {0: "the output is as expected", 1: "the output differs, or the node failed", 2: _WRONG_INPUT},
    ),
    "journal-schema": Command(
        "coordinator.commands.journal_schema:print_journal_schema",
        "Print the JSON Schema of the journal's rows.",
        "Inspect",
        ("rejoin journal-schema > journal.schema.json",),
        {0: "printed", 2: "an option is wrong"},
    ),
}
"""Each subcommand, in the order in which the help shows them."""


def build(called: str = "", *, importable_only: bool = False) -> App:
    """The command line, with the help of the subcommand that is called.

    With ``importable_only`` it has no subcommands whose extra is not installed.
    """
    from importlib.util import find_spec  # noqa: PLC0415

    from cyclopts import App, Group, Parameter  # noqa: PLC0415

    from rejoin.help_text import HelpText, stated_default  # noqa: PLC0415
    from rejoin.release import release  # noqa: PLC0415

    app = App(
        name="rejoin",
        help="Emulate Kafka's group coordinator, simulate groups on a virtual clock, and explain rebalances.",
        version=release,
        help_format="plaintext",
        help_epilogue=COMMANDS[called].epilogue if called in COMMANDS else None,
        help_formatter=HelpText(),
        default_parameter=Parameter(show_default=stated_default),
    )
    groups = {command.group: Group.create_ordered(command.group) for command in COMMANDS.values()}
    for order, (name, command) in enumerate(COMMANDS.items()):
        if importable_only and command.extra is not None and find_spec(EXTRAS[command.extra][0]) is None:
            continue
        app.command(
            f"rejoin.{command.target}",
            name=name,
            help=command.help,
            group=groups[command.group],
            sort_key=order,
        )
    app.command(
        "rejoin.completion:install_completion", name="--install-completion", help="Install completion for your shell."
    )
    return app
