// A consumer loses its session and comes back, with @platformatic/kafka.
import assert from "node:assert";
import test from "node:test";
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";
import { BOOTSTRAP, expire, messages, PARTITIONS, until, Values } from "./lost_session.mjs";

test("a consumer comes back after its session", async () => {
  const options = { clientId: "one", bootstrapBrokers: [BOOTSTRAP] };
  const admin = new Admin(options);
  await admin.createTopics({ topics: ["orders"], partitions: PARTITIONS, replicas: 1 });
  const producer = new Producer({ ...options, serializers: stringSerializers });
  const produce = (first, end) =>
    producer.send({ messages: messages(first, end).map((each) => ({ ...each, topic: "orders" })), acks: -1 });
  await produce(0, 10);

  const values = new Values();
  const consumer = new Consumer({
    ...options, groupId: "orders-app", deserializers: stringDeserializers, autocommit: false,
    sessionTimeout: 45_000, rebalanceTimeout: 45_000, heartbeatInterval: 100, maxWaitTime: 100,
  });
  let joins = 0;
  consumer.on("consumer:group:join", () => joins++);
  const stream = await consumer.consume({ topics: ["orders"], mode: "committed", fallbackMode: "earliest" });
  stream.on("data", (message) => values.add(message.value));
  await values.reach(30);
  const six = { topic: "orders", offset: 6n, leaderEpoch: -1 };
  await consumer.commit({ offsets: [0, 1, 2].map((partition) => ({ ...six, partition })) });

  await expire("orders-app", "one"); // as if no heartbeat had come for 45 seconds
  await until("four of each partition, which came after the commit, come again", () => values.duplicates === 12);
  await produce(10, 11);
  await values.reach(33);
  assert.deepEqual([joins, values.duplicates], [2, 12]);

  await consumer.close(true);
  await Promise.all([producer.close(), admin.close()]);
});
