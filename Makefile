# Everything is installed into .venv, in the versions of constraints.txt; nothing else on the machine is touched.
PYTHON ?= python3.11
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check --quiet

# The tests start hundreds of processes. Without compiled modules each of them takes twice the CPU to start.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup test check quick lint demo bench bench-long bench-day bench-protocols search search-failovers search-producers search-transactions search-consumer search-share search-streams idle-seeds table-seeds step-seeds incident-seeds fuzz fuzz-frames same-bytes executors kill kill-produce kill-share kill-transform kill-watch bank failover client-failover record record-members record-security record-telemetry record-client-logs incident conform conform-mutations clients client-logins clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Installing into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --constraint constraints.txt pip setuptools
	@$(PIP) install --constraint constraints.txt --no-build-isolation --group dev --editable ".[fast,mcp,postgres,pipeline,security,telemetry]" \
	  2> $(VENV)/install.log || (cat $(VENV)/install.log; exit 1)
	@touch $@

# The packages of the quick tests alone, into the same environment; `make setup` adds the others.
$(VENV)/.installed-for-quick: pyproject.toml constraints.txt
	@echo "Installing what the quick tests need into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --constraint constraints.txt pip setuptools
	@$(PIP) install --constraint constraints.txt --no-build-isolation --group quick --editable . \
	  2> $(VENV)/install.log || (cat $(VENV)/install.log; exit 1)
	@touch $@

# Spark's classes as a JVM has them in memory: all JVMs of the tests start from them. Java versions that cannot, need not.
$(VENV)/spark-classes: $(VENV)/.installed
	@REJOIN_SPARK_CLASSES=$(abspath $@) $(RUN) -m rejoin.pipeline.commands.class_archive || true
	@mkdir -p $@ && touch $@

# Chromium and Node.js, with which tests look at the pages: Debian's, where make runs as root.
.PHONY: browser
browser:
	@tests/install_browser.sh

# The tests and the checks that go with them; at the end, the CPU that all their processes took.
# The tests wait for sockets and processes now and then, so lint and types cost hardly any time beside them.
# In a fresh clone one process compiles all modules first: else each of the four does, at the same time.
test: setup browser $(VENV)/spark-classes
	@$(MAKE) --no-print-directory lint > $(VENV)/lint.log 2>&1 & lint=$$!; \
	test -d tests/__pycache__ || $(RUN) -m pytest --collect-only -qq > $(VENV)/collected.log 2>&1; \
	$(RUN) -m tests.cpu $(RUN) -m pytest -n 4 --dist loadgroup; tests=$$?; \
	wait $$lint; linted=$$?; cat $(VENV)/lint.log; exit $$((tests || linted))

# While editing: lint, types, and the tests that need no socket, process or Spark. Types take one core, so tests run beside.
check: setup
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint tests-without-sockets

WITHOUT_SOCKETS := tests/test_*.py tests/protocol tests/journal tests/transcript tests/coordinator/core tests/coordinator/control \
  tests/client/core tests/client/assignors tests/conformance
.PHONY: tests-without-sockets
tests-without-sockets: setup
	$(RUN) -m pytest -n 2 --dist loadgroup $(WITHOUT_SOCKETS)

# The first green tests after a clone: messages, journal, assignors and the documents. Where `make setup` has installed all
# packages, these are used, and else the few that the tests need.
QUICK := tests/docs/test_contributing.py tests/test_documents.py tests/test_layers.py tests/test_sizes.py \
  tests/protocol/test_*.py tests/protocol/brokers tests/journal/test_journal.py tests/journal/test_renames.py \
  tests/transcript tests/client/assignors/test_golden.py tests/client/assignors/test_registry.py
quick: $(if $(wildcard $(VENV)/.installed),setup,$(VENV)/.installed-for-quick)
	$(RUN) -m pytest -n 2 --dist loadgroup $(QUICK)

lint: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# A group lives through joining, crashing and restarting, live in the terminal.
demo: setup
	@$(RUN) -m rejoin demo

# The release, built and checked, then installed outside the clone by pip, pipx, uv tool and uvx on each Python found.
.PHONY: installs
installs: setup
	$(RUN) -m tests.packaging.every_python

# The steps of the Dockerfile and its container, without Docker: as root on Linux, with the package registry.
.PHONY: image
image: setup
	unshare --mount $(RUN) -m tests.packaging.image

# Ratios taken in one run; machines differ, ratios travel. The whole takes less than fifteen minutes.
bench: setup
	$(RUN) -m benchmarks --quick

# A heartbeat and a Produce with no ACL and no quota beside the last commit without either, from git: within 3 %.
.PHONY: bench-limits
bench-limits: setup
	$(RUN) -m benchmarks.kafka.before_limits

# The benchmarks that take longer than a few minutes each.
bench-long: setup
	$(RUN) -m benchmarks --long

# Thousands of random scenarios with random faults; SEEDS=A:B.
SEEDS ?= 0:5000
search: setup
	$(RUN) -m rejoin search --seeds $(SEEDS)

# The same, with nodes that lose what they lead, over and over.
search-failovers: setup
	$(RUN) -m rejoin search --schedule failovers --seeds $(SEEDS)

# The same, with idempotent producers: each record once, and in order.
search-producers: setup
	$(RUN) -m rejoin search --schedule producers --seeds $(SEEDS)

# The same, with consumers that transform in transactions: all or nothing, once and in order.
search-transactions: setup
	$(RUN) -m rejoin search --schedule transactions --seeds $(SEEDS)

# The same, with groups of the consumer protocol, and groups that move from one protocol to the other.
search-consumer: setup
	$(RUN) -m rejoin search --schedule consumer --seeds $(SEEDS)

# The same, with share groups whose members, leaders and share coordinators fail.
search-share: setup
	$(RUN) -m rejoin search --schedule share --seeds $(SEEDS)

# Streams groups, whose threads lie and crash while topics grow and coordinators move.
search-streams: setup
	$(RUN) -m rejoin search --schedule streams --seeds $(SEEDS)

# The same seed, the same bytes in every Python that is found.
same-bytes: setup
	$(RUN) -m tests.simulation.same_bytes

# A day of 1,000 consumers with a deploy every hour, and whether the skipping of idle time changes an event in it.
bench-day: setup
	$(RUN) -m benchmarks.simulation --day
	$(RUN) -m benchmarks.simulation --same

# 24 hours of 1,000 consumers for both protocols: rebalances, who stopped, what was unowned, late and twice, and the CPU.
bench-protocols: setup
	$(RUN) -m benchmarks.simulation --protocols

# A thousand scenarios with and without the skipping of idle time: the events must be equal.
idle-seeds: setup
	REJOIN_IDLE_SEEDS=1000 $(RUN) -m pytest tests/simulation/test_same.py -k skipped -n 2

# Many requests at random to every route, with a heartbeat beside them and a look at the memory afterwards, and many files
# with mistakes in them; EXAMPLES=N.
EXAMPLES ?= 5000
fuzz: setup
	REJOIN_FUZZ_EXAMPLES=$(EXAMPLES) $(RUN) -m pytest tests/coordinator/service/test_fuzz.py tests/test_fuzz_files.py -s

# Random, cut and changed frames to the listener of Kafka's protocol, with a group and a log beside them; EXAMPLES=1000000.
fuzz-frames: setup
	REJOIN_FUZZ_FRAMES=$(EXAMPLES) REJOIN_FUZZ_SEED=$(SEED) $(RUN) -m pytest -s tests/coordinator/service/kafka/test_fuzz_frames.py \
		tests/coordinator/core/groups/streams/test_changed_requests.py

# Random and changed frames through a proxy, from clients and from a broker that lies; EXAMPLES=20000 connections.
.PHONY: fuzz-proxy
fuzz-proxy: setup
	REJOIN_FUZZ_FRAMES=$(EXAMPLES) REJOIN_FUZZ_SEED=$(SEED) $(RUN) -m pytest -s tests/proxy/hostile/test_fuzz_proxy.py

# What a Fetch of 100 MB and 2,000 connections cost a proxy in memory, beside a journal on a full disk and SIGTERM.
.PHONY: proxy-bounds
proxy-bounds: setup
	REJOIN_PROXY_FETCH_MB=100 REJOIN_PROXY_CONNECTIONS=2000 $(RUN) -m pytest -s tests/proxy/hostile/test_bounds.py

# Random requests of every version of every API, and what they cost in steps and memory; EXAMPLES=20.
.PHONY: request-costs
request-costs: setup
	REJOIN_COST_EXAMPLES=$(EXAMPLES) $(RUN) -m pytest tests/coordinator/core/costs/test_bounds_of_requests.py -q

# How many frames a second the laboratory's page draws of large runs, in a headless Chromium.
.PHONY: lab-frames
lab-frames: setup
	REJOIN_LAB_FRAMES=1 $(RUN) -m pytest tests/simulation/web/test_scrubbing.py -s

# The laboratory as a folder of files, played by Python in the browser; it needs Node.js, npm and the package index.
.PHONY: lab-site lab-site-test
lab-site: setup
	$(RUN) -m rejoin.simulation.web.site build/lab-site

# The same, opened in a headless Chromium: how long it loads, and whether all journals of the gallery are the same there.
lab-site-test: lab-site
	$(RUN) -m tests.simulation.web.site.in_browser build/lab-site

# The cases and seeds that `make test` leaves out: others of their kind are in every run.
.PHONY: test-long
test-long: setup browser
	REJOIN_LONG=1 $(RUN) -m pytest -n 2 --dist loadgroup `grep -rl --include='test_*.py' 'tests.suite.long_runs' tests`

# The tables of five hundred random runs against what the simulator counted.
table-seeds: setup
	REJOIN_TABLE_SEEDS=500 $(RUN) -m pytest tests/pipeline/tables/test_tables_of_simulations.py

# Tables of a watch, in random steps of random scenarios, against those of a report; STEPS=N.
STEPS ?= 200
step-seeds: setup
	REJOIN_STEP_SEEDS=$(STEPS) $(RUN) -m pytest -n 2 tests/pipeline/incremental -k any_steps -q

# Findings against the ledgers of generated incidents; INCIDENTS=N.
INCIDENTS ?= 60
incident-seeds: setup
	REJOIN_INCIDENT_SEEDS=$(INCIDENTS) $(RUN) -m pytest tests/pipeline/findings/test_generated.py -q

# Windows of the recorded logs in random wrappers: each says the same as without them. SEEDS=A:B.
# Cuts of whole groups, by members, time and order: none says more than the ledger knows.
.PHONY: wrapped-seeds
wrapped-seeds: setup
	WRAPPED_SEEDS=$(SEEDS) CUT_SEEDS=$(SEEDS) $(RUN) -m pytest -n 2 -q tests/pipeline/reading/test_wrapped_recordings.py \
	  tests/pipeline/reading/test_cut_recordings.py

# Logs of clients, written of random lives and read back; SEEDS=N.
.PHONY: client-log-seeds
client-log-seeds: SEEDS ?= 20
client-log-seeds: setup
	REJOIN_CLIENT_LOG_SEEDS=$(SEEDS) $(RUN) -m pytest tests/pipeline/reading/client_logs/test_written.py -q

# Random steps of members, log, share coordinator and leaders on share-partitions: what must hold after each. SEEDS=N.
.PHONY: share-seeds
share-seeds: SEEDS ?= 2000
share-seeds: setup
	REJOIN_SHARE_SEEDS=$(SEEDS) $(RUN) -m pytest tests/coordinator/core/share/test_properties.py -q

# Every table made by executors, which are processes of their own, equals that of one process.
executors: setup
	REJOIN_EXECUTOR_TABLES=all $(RUN) -m pytest tests/pipeline/spark/test_executors.py

# kill -9 of a coordinator under load, again and again; ROUNDS=500, SEED=7 for other moments.
ROUNDS ?= 300
SEED ?= 1
kill: setup
	REJOIN_KILL_ROUNDS=$(ROUNDS) REJOIN_KILL_SEED=$(SEED) $(RUN) -m pytest tests/coordinator/durability/test_kill.py -n 2

# kill -9 under producers and consumers that speak Kafka's protocol, with --data and with PostgreSQL.
kill-produce: setup
	REJOIN_KILL_PRODUCE_ROUNDS=$(ROUNDS) REJOIN_KILL_SEED=$(SEED) $(RUN) -m pytest tests/coordinator/durability/test_kill_produce.py -n 2

# kill -9 under members of a share group, with --data and with PostgreSQL: no record lost, and none beyond its limit.
kill-share: setup
	REJOIN_KILL_SHARE_ROUNDS=$(ROUNDS) REJOIN_KILL_SEED=$(SEED) $(RUN) -m pytest tests/coordinator/durability/share/test_kill_share.py -n 2

# kill -9 of processes that consume, transform and produce: each input becomes one record.
kill-transform: setup
	REJOIN_KILL_TRANSFORM_ROUNDS=$(ROUNDS) REJOIN_KILL_SEED=$(SEED) $(RUN) -m pytest tests/coordinator/durability/test_kill_transform.py

# kill -9 of a process that takes in a stream, between a batch's writing and its commit.
kill-watch: setup
	REJOIN_KILL_WATCH=1 $(RUN) -m pytest tests/pipeline/watch/test_streaming.py -k between_write_and_commit

# Transfers in transactions while processes and brokers are killed: each is booked once and whole.
bank: setup
	REJOIN_BANK_ROUNDS=$(ROUNDS) REJOIN_KILL_SEED=$(SEED) $(RUN) -m pytest tests/coordinator/durability/test_bank.py

# Three coordinators on one PostgreSQL; each failure, and how long groups had no coordinator.
failover: setup
	REJOIN_FAILURES=all $(RUN) -m pytest tests/coordinator/leadership/test_failures.py -s

# Three brokers in one process under each Python client, and how long each failure takes until all is well again.
client-failover: setup
	$(RUN) -m pytest tests/real_clients/test_failover.py -s

# Clients that only the targets below need have an environment of their own. These targets want Maven and Java.
CONFORMANCE := .venv-conformance
$(CONFORMANCE)/.installed: pyproject.toml conformance/constraints.txt
	@echo "Installing into $(CONFORMANCE) ..."
	@$(PYTHON) -m venv $(CONFORMANCE)
	@$(CONFORMANCE)/bin/python -m pip --quiet install --constraint conformance/constraints.txt pip pydantic
	@$(CONFORMANCE)/bin/python -m pip --quiet install --constraint conformance/constraints.txt --group conformance
	@touch $@

# Starts a real Kafka, plays the scripts that are written in steps, and writes tests/golden/kafka-4.x. SETS=name ... for some.
record: $(CONFORMANCE)/.installed
	PYTHONPATH=src $(CONFORMANCE)/bin/python -m conformance.record $(SETS)

# Scripts about producers, transactions, records and consumer groups on a real Kafka; writes tests/golden/transactions/recorded
# and tests/golden/consumer-groups/recorded. SETS=name ... for some.
.PHONY: record-transactions
record-transactions: setup
	$(RUN) -m conformance.transactions.record $(SETS)

# Lives of a group, by Kafka's Java client and by ours on a real Kafka; writes tests/golden/members. LIVES=name for some.
record-members: setup
	$(RUN) -m conformance.members $(LIVES)

# Lives of a producer by both clients: requests, sequences and backoffs; writes tests/golden/producers. LIVES=name for some.
.PHONY: record-producers
record-producers: setup
	$(RUN) -m conformance.producers $(LIVES)

# Logins to a real Kafka: right, wrong and half, over TLS and without; writes tests/golden/security.
record-security: setup
	$(RUN) -m conformance.security.record

# Requests about client metrics to a real Kafka that takes them, and to a stock one; writes tests/golden/telemetry.
record-telemetry: setup
	$(RUN) -m conformance.telemetry.record

# A Java consumer and one of librdkafka push metrics to Rejoin: each is compared with what the client itself reports, and its
# payload goes to tests/golden/telemetry. It wants Maven and Java; a minute.
.PHONY: client-telemetry
client-telemetry: setup
	$(RUN) -m conformance.telemetry.clients

# Connections above the limits of a real Kafka, by number, address, rate and idle time; writes tests/golden/connections.jsonl.
.PHONY: record-connections
record-connections: setup
	$(RUN) -m conformance.connections.record

# Fetches of consumers with racks at three real brokers in two racks; writes tests/golden/follower-reads.jsonl.
.PHONY: record-follower-reads
record-follower-reads: setup
	$(RUN) -m conformance.fetching.record

# Java's consumer and librdkafka's in the rack of a follower of three brokers in one process: bytes by broker.
.PHONY: client-follower-reads
client-follower-reads: $(CONFORMANCE)/.installed
	$(RUN) -m conformance.fetching.clients

# kafka-client-metrics.sh on a real Kafka and on Rejoin: it must print the same. It wants Maven and Java; two minutes.
.PHONY: client-metrics-tool
client-metrics-tool: setup
	$(RUN) -m conformance.telemetry.tool

# Changes of a real Kafka's users of SCRAM, and logins after them; writes tests/golden/security/scram.jsonl.gz.
.PHONY: record-scram
record-scram: setup
	$(RUN) -m conformance.security.record_scram

# Answers of a real Kafka to five principals while their ACLs change; writes tests/golden/security/acls.jsonl.gz, more-acls.jsonl.gz.
.PHONY: record-acls
record-acls: setup
	$(RUN) -m conformance.security.record_acls
	$(RUN) -m conformance.security.acls.record

# Delegation tokens of a real Kafka, and logins by them; writes tests/golden/security/tokens.jsonl.gz.
.PHONY: record-tokens
record-tokens: setup
	$(RUN) -m conformance.security.record_tokens

# A real Kafka and real clients that are killed, paused, slowed down and redeployed: their logs, and a ledger of what was
# done; writes tests/golden/client-logs. SETS=java ... for some. Wants Go and Node as well.
record-client-logs: $(CONFORMANCE)/.installed
	PYTHONPATH=src $(CONFORMANCE)/bin/python -m conformance.clients.logs $(SETS)

# A real Kafka and real consumers through ten minutes of mixed trouble; writes tests/golden/incidents/NAME with a ledger.
INCIDENT ?= one
incident: $(CONFORMANCE)/.installed
	PYTHONPATH=src $(CONFORMANCE)/bin/python -m conformance.incident.run tests/golden/incidents/$(INCIDENT) \
	  --plan conformance/incident/plans/$(INCIDENT).yaml

# The same with rejoin proxy before the Kafka: its journal, the broker's logs and the clients' logs of one run, in
# out/incidents/NAME; prints what is found of the ledger in each. PROXIED=one for another plan.
.PHONY: incident-proxied
PROXIED ?= proxied
incident-proxied: setup
	$(RUN) -m conformance.incident.proxied out/incidents/$(PROXIED) --plan conformance/incident/plans/$(PROXIED).yaml
	$(RUN) -m conformance.incident.evidence out/incidents/$(PROXIED)

# kill -9 of rejoin proxy under producers, group commits and transactions of four libraries before a real Kafka: nothing
# that was acknowledged is lost, and how long each client stands still. KILLS=20 SEED=7 LIBRARIES='java rdkafka'.
.PHONY: kill-proxy
KILLS ?= 4
kill-proxy: setup
	$(RUN) -m conformance.proxied.kill $(LIBRARIES) --kills $(KILLS) --seed $(SEED)

# Runs rejoin conform on Kafka, this broker, kfake and librdkafka's mock, with the settings of each recording; prints the table
# of docs/conform.md, and writes each one's page to out/conform. It wants Java, Maven and Go. BROKERS='rejoin kfake' for some.
conform: setup
	$(RUN) -m conformance.judged $(BROKERS) --html out/conform

# Runs it on this broker with one rule broken at a time; prints the other table of that page.
conform-mutations: setup
	$(RUN) -m tests.conform.mutations

# Runs rejoin conform-client over real clients; writes conformance/clients/conform/results.jsonl and the table of
# docs/conform-client.md. It wants Java, Maven, Go and Node.js; a client that is not at hand keeps its results.
# CLIENTS='Java sarama' for some. Minutes for each.
.PHONY: client-conformance client-mutations
client-conformance: setup
	$(RUN) -m conformance.clients.conform $(CLIENTS)

# Runs it over this client with one rule broken at a time; prints another table of that page.
client-mutations: setup
	$(RUN) -m tests.conform.clients.mutations

# A life through rejoin proxy before Kafka 3.9 and 4.4, its journal, and conform-client on those clusters. Wants Maven and a JDK.
.PHONY: proxied-kafka
proxied-kafka: setup
	$(RUN) -m conformance.proxied.releases --conform

# Explores worlds with one rule of a core broken at a time; prints the table of docs/explore.md. BROKEN='NAME NAME' for some.
.PHONY: explore-mutations
explore-mutations: setup
	$(RUN) -m tests.simulation.explore.hunting $(BROKEN)

# Plays the scripts on the newest patch of Kafka 3.9 to 4.3, and on 4.4 as a control; records what differs in
# conform/recordings/releases, and writes docs/releases.md. It wants Maven and Java. RELEASES='4.1.2' plays some again.
.PHONY: releases releases-page
releases: setup
	$(RUN) -m conformance.releases $(RELEASES)

# That page alone, from the recordings.
releases-page: setup
	$(RUN) -m conformance.releases --page

# Explores each world of Rejoin for its share of MINUTES (default 60); prints states, depth, and what they reach of the
# coordinator that the transcripts of the tests do not.
.PHONY: explore-worlds
explore-worlds: setup
	$(RUN) -m tests.simulation.explore.hour $(MINUTES)

# Explores each world of Rejoin to DEPTH (default 6) in one process and on Spark, and compares the counts of states.
.PHONY: explore-spark
explore-spark: setup $(VENV)/spark-classes
	$(RUN) -m tests.pipeline.explore.every_world $(DEPTH)

# Walks the paths of free clients through Kafka's own group coordinator, in process, and compares every answer; it wants
# Maven and a JDK. WORLDS='FILE.yaml' for other worlds than those of conformance/explored/worlds.
.PHONY: explore-kafka
explore-kafka: setup
	$(RUN) -m conformance.explored $(WORLDS)

# Plays orders of answers that show bugs of pinned clients, on the versions with and without each bug; prints a table.
# It wants Node.js. BUGS=batches-lose-records for some.
.PHONY: explore-clients
explore-clients: setup
	$(RUN) -m conformance.clients.orders $(BUGS)

# APIs of a stock Kafka 4.4 and of this broker beside each other; writes docs/api-versions.md. RECORD=--record asks real
# brokers anew, which wants Maven and a JDK.
.PHONY: api-versions
api-versions: setup
	$(RUN) -m conformance.api_versions $(RECORD)

# A real Kafka, followed by rejoin watch --bootstrap-server; it wants Maven and Java.
.PHONY: watch-kafka
watch-kafka: setup
	$(RUN) -m conformance.watched_kafka

# The Grafana dashboard, read with Grafana's own models (grafana-foundation-sdk from PyPI, in a folder of its own).
.PHONY: dashboard dashboard-queries
dashboard: setup
	$(PIP) install --no-deps --target out/grafana --upgrade grafana-foundation-sdk
	PYTHONPATH=out/grafana $(RUN) -m conformance.grafana.schema

# Its queries, evaluated by Prometheus' own engine over five minutes of a coordinator's /metrics. It wants Go.
dashboard-queries: setup
	$(RUN) -m conformance.grafana.queries

# Clients in other languages and Kafka's own tools through a life with topics, records and groups, and those that speak
# the consumer protocol through its groups; writes docs/clients.md. It wants Java, Maven, Go and Node.js.
# CLIENTS='franz-go KafkaJS' for some, without those groups; NODE=data, postgres or 2.8 for other nodes; CLIENTS=Burrow
# with BURROW=PATH for that monitor, built from its source.
NODE ?= memory
clients: setup
	BURROW=$(BURROW) $(RUN) -m conformance.clients --node $(NODE) $(CLIENTS)
	$(if $(CLIENTS),,$(RUN) -m conformance.clients.helpers && $(RUN) -m conformance.clients.consumer_groups && \
	  $(RUN) -m conformance.clients.share_groups && $(RUN) -m conformance.clients.streams_groups)

# The clients log in by each mechanism, over TLS and without; writes its table of docs/clients.md.
client-logins: setup
	$(RUN) -m conformance.clients.logins $(CLIENTS)

# kafka-delegation-tokens, and a console producer and consumer that log in by a token, against this broker: a minute.
.PHONY: client-tokens
client-tokens: setup
	$(RUN) -m conformance.security.token_tools

# The clients that speak the consumer protocol, in groups of it and in one that moves there and back; writes its table.
.PHONY: client-consumer-groups
client-consumer-groups: setup
	$(RUN) -m conformance.clients.consumer_groups $(CLIENTS)

# The clients that have a share consumer, through share groups; writes its table of docs/clients.md.
.PHONY: client-share-groups
client-share-groups: setup
	$(RUN) -m conformance.clients.share_groups $(CLIENTS)

# The same on a real Kafka and on Rejoin: results and requests beside each other. It wants Maven and Java; minutes for each.
.PHONY: client-share-groups-on-kafka
client-share-groups-on-kafka: setup
	$(RUN) -m conformance.clients.share_groups_on_kafka $(CLIENTS)

# Applications of Kafka Streams on streams groups; writes its table. It wants Maven and Java; three minutes. LIVES=name for some.
.PHONY: client-streams-groups
client-streams-groups: setup client-streams-tool
	$(RUN) -m conformance.clients.streams_groups $(LIVES)

# The same on a real Kafka and on Rejoin: results and heartbeats beside each other. LIVES='--record' writes down what Kafka did.
.PHONY: client-streams-groups-on-kafka
client-streams-groups-on-kafka: setup
	$(RUN) -m conformance.clients.streams_groups.on_kafka $(LIVES)

# The test of examples/testing with two instances of a Kafka Streams application. It wants Maven and Java; half a minute.
.PHONY: example-streams
example-streams: setup
	REJOIN_COMMAND="$(CURDIR)/$(RUN) -m rejoin" mvn -q -B -f examples/testing/java/pom.xml test -Dtest=CrashedInstanceTest

# kafka-streams-groups.sh of Kafka 4.4 on a real Kafka and on Rejoin, outputs beside each other; some minutes.
.PHONY: client-streams-tool
client-streams-tool: setup
	$(RUN) -m conformance.clients.streams_tool

# The clients of make clients through rejoin proxy on a real Kafka 4.4; writes the table of docs/proxy.md. Three quarters of an hour;
# CLIENTS='Java "Java, share groups"' for some.
.PHONY: clients-proxied
clients-proxied: setup
	$(RUN) -m conformance.before_kafka.clients $(CLIENTS)

# Producers and consumers of Java and librdkafka on three Kafka brokers whose leaders and coordinators move, brokers that stop
# and die, through rejoin proxy; a row of that table. It wants Maven and a JDK; ten minutes.
.PHONY: moves-proxied
moves-proxied: setup
	$(RUN) -m conformance.before_kafka.moves

# The test suites of aiokafka and kafka-python on a real Kafka, directly and through rejoin proxy; rows of that table.
# AIOKAFKA=FOLDER and KAFKA_PYTHON=FOLDER are copies of their sources, of which only the tests are used.
.PHONY: suites-proxied
suites-proxied: setup
	$(RUN) -m conformance.before_kafka.suites $(if $(AIOKAFKA),--aiokafka $(AIOKAFKA)) $(if $(KAFKA_PYTHON),--kafka-python $(KAFKA_PYTHON))

# kafka-acls.sh and kafka-configs.sh of Kafka 4.4 on Rejoin, outputs beside those on a real Kafka, which RECORD=--record
# starts and records anew. It wants Maven and a JDK; some minutes.
.PHONY: client-security-tools
client-security-tools: setup
	$(RUN) -m conformance.clients.admin.tools $(RECORD)

# Administrators' calls of three clients on a real Kafka and on Rejoin; writes the table of docs/clients.md. It wants Maven, a JDK
# and Go.
.PHONY: client-admin-calls
client-admin-calls: setup
	$(RUN) -m conformance.clients.admin.calls $(CLIENTS)

# Producers of Java and librdkafka with a quota of 1 MB/s on a real Kafka and on Rejoin: how much of it they reach in
# the steady state; writes the table of docs/clients.md.
.PHONY: client-throttling
client-throttling: setup
	$(RUN) -m conformance.clients.admin.throttling

# Kafka's tools for elections, reassignments, directories and the quorum on a real Kafka and on Rejoin; some minutes.
.PHONY: client-cluster-tools
client-cluster-tools: setup
	$(RUN) -m conformance.cluster.tools

# What a real Kafka answers to requests about replicas and the quorum, for tests/golden/cluster; a few minutes.
.PHONY: record-cluster
record-cluster: setup
	$(RUN) -m conformance.cluster.record

# What kafka-reassign-partitions.sh and kafka-leader-election.sh print of a real cluster of three brokers, for
# tests/golden/cluster; some minutes.
.PHONY: record-cluster-commands
record-cluster-commands: setup
	$(RUN) -m conformance.cluster.commands

clean:
	rm -rf $(VENV) $(CONFORMANCE) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
