#!/usr/bin/env bash
# The steps of the GitHub Action: install, start, run, explain. All files are below $RUNNER_TEMP/rejoin.
set -euo pipefail

home=$RUNNER_TEMP/rejoin
python=$home/venv/bin/python
ready=$home/ready.json
log=$home/rejoin.log
verdict=$home/verdict
evidence=$home/evidence

die() {
  echo "::error title=Rejoin::$1"
  exit "${2:-1}"
}

field() {
  "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$ready" "$1"
}

# The options of the node, in the array `options`. INPUT_OPTIONS is split as a shell would split it, without expansions.
read_options() {
  local topic more
  options=(--port 0)
  for topic in ${INPUT_TOPICS:-}; do options+=(--topic "$topic"); done
  more=$("$python" -c 'import os, shlex; print(*shlex.split(os.environ.get("INPUT_OPTIONS", "")), sep="\n")' 2> /dev/null) \
    || die "options: a quote is not closed in: ${INPUT_OPTIONS}"
  if [[ -n $more ]]; then
    mapfile -t -O "${#options[@]}" options <<< "$more"
  fi
}

install() {
  mkdir -p "$home"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    || die "expected python3 of 3.11 or newer: put actions/setup-python before this step"
  python3 -m venv "$home/venv"
  "$python" -m pip --disable-pip-version-check --quiet install "rejoin-kafka${INPUT_VERSION:+==$INPUT_VERSION}"
}

# Starts a broker for the later steps. The broker runs beside a command that waits for the verdict of `explain`, since
# `rejoin serve -- COMMAND` takes evidence of a command that fails.
start() {
  read_options
  mkdir -p "$home"
  rm -f "$ready" "$verdict"
  mkfifo "$verdict"
  nohup "$python" -m rejoin serve "${options[@]}" --ready-file "$ready" --evidence "$evidence" \
    -- bash -c 'read -r code < "$0"; exit "$code"' "$verdict" > /dev/null 2> "$log" < /dev/null &
  local node=$! servers url
  until [[ -e $ready ]]; do
    kill -0 "$node" 2> /dev/null || die "the broker did not start: $(tail -n 1 "$log")"
    sleep 0.05
  done
  servers=$(field bootstrap_servers) url=$(field url)
  printf 'BOOTSTRAP_SERVERS=%s\nREJOIN_URL=%s\n' "$servers" "$url" >> "$GITHUB_ENV"
  printf 'bootstrap-servers=%s\nurl=%s\n' "$servers" "$url" >> "$GITHUB_OUTPUT"
  echo "Kafka clients connect to $servers, the control API is at $url/control"
}

# Runs a command beside a broker, and ends with the command's exit code.
run() {
  read_options
  local code=0
  "$python" -m rejoin serve "${options[@]}" --evidence "$evidence" -- bash -eo pipefail -c "$INPUT_RUN" || code=$?
  if ((code)); then summarize; fi
  exit "$code"
}

# Ends the broker of `start` as one whose command failed.
explain() {
  [[ -e $ready ]] || die "there is no broker: the step that starts Rejoin comes first"
  local node
  node=$(field pid)
  kill -0 "$node" 2> /dev/null || die "the broker has ended: $(tail -n 1 "$log")"
  echo 1 > "$verdict"
  while kill -0 "$node" 2> /dev/null; do sleep 0.05; done
  summarize
}

# Adds the report to the evidence, and writes the reasons of the rebalances into the summary of the job.
summarize() {
  compgen -G "$evidence/*/why.txt" > /dev/null || return 0
  "$python" -c 'import pyarrow' 2> /dev/null \
    || "$python" -m pip --disable-pip-version-check --quiet install "rejoin-kafka[tables]${INPUT_VERSION:+==$INPUT_VERSION}"
  if "$python" -m rejoin report "$evidence"/*/journal --out "$home/report" > /dev/null; then
    mv "$home/report/report.html" "$evidence/report.html"
  else
    echo "::warning title=Rejoin::there is no report.html; the journal is among the evidence"
  fi
  {
    echo "### Why did the groups rebalance?"
    echo '```'
    cat "$evidence"/*/why.txt
    echo '```'
  } >> "$GITHUB_STEP_SUMMARY"
}

case ${1:-} in
  install | start | run | explain) "$1" ;;
  *) die "expected install, start, run or explain, not '${1:-}'" 2 ;;
esac
