// A consumer loses its session and comes back. Usage: node lost_session.mjs http://127.0.0.1:9095
// The coordinator runs with --control --clock virtual --topic orders:3.
const url = process.argv[2];
if (!url) fail("usage: node lost_session.mjs http://127.0.0.1:9095");
const group = "orders-app";

const subscription = "AAAAAAABAAZvcmRlcnP/////"; // ConsumerProtocol: topics [orders]
const assignment = "AAAAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAAC/////w=="; // orders 0, 1, 2

function fail(why) {
  console.error(why);
  process.exit(1);
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json", "Kafka-Client-Id": "app" };
  const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) })
    .catch((error) => fail(`${url}${path}: ${error.cause?.message ?? error.message}`));
  const json = await answer.json();
  if (!answer.ok) fail(`${path}: ${json.detail}`);
  return json;
}

function expect(what, found, wanted) {
  if (found !== wanted) fail(`${what}: expected ${wanted}, got ${found}`);
  console.log(`${what}: ${found}`);
}

const join = (memberId) =>
  post("/v1/join-group", {
    groupId: group, sessionTimeoutMs: 45_000, rebalanceTimeoutMs: 300_000, memberId, groupInstanceId: null,
    protocolType: "consumer", protocols: [{ name: "range", metadata: subscription }], reason: null,
  });

const heartbeat = async (memberId, generationId) =>
  (await post("/v1/heartbeat", { groupId: group, generationId, memberId, groupInstanceId: null })).errorCode;

async function becomeStable(generation) {
  const { memberId } = await join("");
  const joining = join(memberId);
  await post("/control/groups/wait", { group, waiting: 1 });
  await post("/control/clock", { advance_ms: 3_000 }); // the initial rebalance delay
  expect("generation", (await joining).generationId, generation);
  await post("/v1/sync-group", {
    groupId: group, generationId: generation, memberId, groupInstanceId: null, protocolType: "consumer",
    protocolName: "range", assignments: [{ memberId, assignment }],
  });
  await post("/control/groups/wait", { group, state: "Stable", members: 1, assigned: 3 });
  return memberId;
}

const first = await becomeStable(1);
expect("heartbeat in time", await heartbeat(first, 1), 0);

const { fired } = await post("/control/clock", { advance_ms: 45_000 }); // and no heartbeat comes
expect("what fired", fired.map((each) => each.timer).join(), "session");
expect("heartbeat too late (25 is UNKNOWN_MEMBER_ID)", await heartbeat(first, 1), 25);

const second = await becomeStable(3); // generation 2 was the one without members
expect("heartbeat of the new member", await heartbeat(second, 3), 0);
await post("/control/reset", {}); // nothing is left for the next test
console.log("it came back");
