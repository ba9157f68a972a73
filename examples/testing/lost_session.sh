#!/bin/sh
# A consumer loses its session and comes back. Usage: sh lost_session.sh http://127.0.0.1:9095
# The coordinator runs with --control --clock virtual --topic orders:3.
set -eu
url=${1:?"the address is missing. Usage: sh lost_session.sh http://127.0.0.1:9095"}
curl -sS --fail-with-body -o /dev/null "$url/control"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

subscription='AAAAAAABAAZvcmRlcnP/////'                      # ConsumerProtocol: topics [orders]
assignment='AAAAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAAC/////w=='  # orders 0, 1, 2

post() { curl -sS --fail-with-body -H 'Content-Type: application/json' -H 'Kafka-Client-Id: app' "$url$1" -d "$2"; }
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
expect() { [ "$2" = "$3" ] || { echo "$1: expected $3, got $2" >&2; exit 1; }; echo "$1: $2"; }

join() {  # a member id, or nothing
    post /v1/join-group "{\"groupId\": \"orders-app\", \"sessionTimeoutMs\": 45000, \"rebalanceTimeoutMs\": 300000,
        \"memberId\": \"$1\", \"groupInstanceId\": null, \"protocolType\": \"consumer\", \"reason\": null,
        \"protocols\": [{\"name\": \"range\", \"metadata\": \"$subscription\"}]}"
}

become_stable() {  # in this generation
    member=$(join "" | field memberId)
    join "$member" > "$work/joined" &
    joining=$!
    post /control/groups/wait '{"group": "orders-app", "waiting": 1}' > /dev/null
    post /control/clock '{"advance_ms": 3000}' > /dev/null        # the initial rebalance delay
    wait $joining
    expect "generation" "$(field generationId < "$work/joined")" "$1"
    post /v1/sync-group "{\"groupId\": \"orders-app\", \"generationId\": $1, \"memberId\": \"$member\",
        \"groupInstanceId\": null, \"protocolType\": \"consumer\", \"protocolName\": \"range\",
        \"assignments\": [{\"memberId\": \"$member\", \"assignment\": \"$assignment\"}]}" > /dev/null
    post /control/groups/wait '{"group": "orders-app", "state": "Stable", "members": 1, "assigned": 3}' > /dev/null
}

heartbeat() {
    post /v1/heartbeat "{\"groupId\": \"orders-app\", \"generationId\": $1, \"memberId\": \"$member\",
        \"groupInstanceId\": null}" | field errorCode
}

become_stable 1
expect "heartbeat in time" "$(heartbeat 1)" 0

fired=$(post /control/clock '{"advance_ms": 45000}' | field timer)   # and no heartbeat comes
expect "what fired" "$fired" session
expect "heartbeat too late (25 is UNKNOWN_MEMBER_ID)" "$(heartbeat 1)" 25

become_stable 3                                                      # generation 2 was the one without members
expect "heartbeat of the new member" "$(heartbeat 3)" 0
post /control/reset '{}' > /dev/null                                 # nothing is left for the next test
echo "it came back"
