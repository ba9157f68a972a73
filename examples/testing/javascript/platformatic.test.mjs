// A consumer loses its session and comes back, with @platformatic/kafka.
import assert from "node:assert";
import test from "node:test";
import { Consumer, stringDeserializers } from "@platformatic/kafka";
import { joined, loseSession, OPTIONS, STABLE, until, Values } from "./lost_session.mjs";
import { startRejoin } from "./rejoin.mjs";

const [broker, still] = await Promise.all([startRejoin(OPTIONS), startRejoin({ clock: "virtual", topics: OPTIONS.topics })]);

async function consuming(rejoin, use) {
  const consumer = new Consumer({
    clientId: "one", bootstrapBrokers: [rejoin.bootstrapServers], groupId: "orders-app", deserializers: stringDeserializers,
    autocommit: false, sessionTimeout: 45_000, rebalanceTimeout: 45_000, heartbeatInterval: 100, maxWaitTime: 100,
  });
  const values = new Values();
  let joins = 0;
  consumer.on("consumer:group:join", () => joins++);
  try {
    const stream = await consumer.consume({ topics: ["orders"], mode: "committed", fallbackMode: "earliest" });
    stream.on("data", (message) => values.add(message.value));
    await use({ consumer, values, joins: () => joins });
  } finally {
    await consumer.close(true);
  }
}

test("a consumer comes back after its session", broker.test(async (rejoin) => {
  await rejoin.produce("orders", null, 10); // to each partition
  await consuming(rejoin, async ({ consumer, values, joins }) => {
    await values.reach(30);
    const six = { topic: "orders", offset: 6n, leaderEpoch: -1 };
    await consumer.commit({ offsets: [0, 1, 2].map((partition) => ({ ...six, partition })) });

    await rejoin.expire("orders-app", { client_id: "one" }); // as if no heartbeat had come for 45 seconds
    await until("four of each partition, which came after the commit, come again", () => values.duplicates === 12);
    await rejoin.produce("orders", null, 1);
    await values.reach(33);
    assert.deepEqual([joins(), values.duplicates], [2, 12]);
  });
}));

test("a consumer joins although the coordinator is not available at first", broker.test(async (rejoin) => {
  await rejoin.addFault({ keys: "JoinGroup", error: "COORDINATOR_NOT_AVAILABLE", count: 2 });
  await consuming(rejoin, () => rejoin.waitForGroup("orders-app", STABLE));
  assert.ok((await rejoin.requests({ api: "JoinGroup", client_id: "one" })).length > 2);
}));

test("a consumer loses a session of 45 seconds at once", still.test(async (rejoin) => {
  const advancing = joined(rejoin); // consume() returns when the member has joined
  await consuming(rejoin, async ({ joins }) => {
    await advancing;
    await loseSession(rejoin);
    await joined(rejoin);
    await until("it joins again", () => joins() === 2);
  });
}));
