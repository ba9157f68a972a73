// A consumer loses its session and comes back, with KafkaJS.
import assert from "node:assert";
import test from "node:test";
import kafkajs from "kafkajs";
import { joined, loseSession, OPTIONS, STABLE, until, Values } from "./lost_session.mjs";
import { startRejoin } from "./rejoin.mjs";

const [broker, still] = await Promise.all([startRejoin(OPTIONS), startRejoin({ clock: "virtual", topics: OPTIONS.topics })]);

async function consuming(rejoin, use) {
  const kafka = new kafkajs.Kafka({ clientId: "one", brokers: [rejoin.bootstrapServers], logLevel: kafkajs.logLevel.NOTHING });
  const timing = { sessionTimeout: 45_000, heartbeatInterval: 100, maxWaitTimeInMs: 100 };
  const consumer = kafka.consumer({ groupId: "orders-app", ...timing });
  const values = new Values();
  let joins = 0;
  consumer.on(consumer.events.GROUP_JOIN, () => joins++);
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
    await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => values.add(message.value.toString()) });
    await use({ consumer, values, joins: () => joins });
  } finally {
    await consumer.disconnect();
  }
}

test("a consumer comes back after its session", broker.test(async (rejoin) => {
  await rejoin.produce("orders", null, 10); // to each partition
  await consuming(rejoin, async ({ consumer, values, joins }) => {
    await values.reach(30);
    await consumer.commitOffsets([0, 1, 2].map((partition) => ({ topic: "orders", partition, offset: "6" })));

    await rejoin.expire("orders-app", { client_id: "one" }); // as if no heartbeat had come for 45 seconds
    await until("it joins again", () => joins() === 2);
    await rejoin.produce("orders", null, 1);
    await values.reach(33);
    assert.equal(values.duplicates, 12); // four of each partition came after the commit
  });
}));

test("a consumer joins although the coordinator is not available at first", broker.test(async (rejoin) => {
  await rejoin.addFault({ keys: "JoinGroup", error: "COORDINATOR_NOT_AVAILABLE", count: 2 });
  await consuming(rejoin, () => rejoin.waitForGroup("orders-app", STABLE));
  assert.ok((await rejoin.requests({ api: "JoinGroup", client_id: "one" })).length > 2);
}));

test("a consumer loses a session of 45 seconds at once", still.test(async (rejoin) => {
  const advancing = joined(rejoin); // run() returns when the member has joined
  await consuming(rejoin, async ({ joins }) => {
    await advancing;
    await loseSession(rejoin);
    await joined(rejoin);
    await until("it joins again", () => joins() === 2);
  });
}));
