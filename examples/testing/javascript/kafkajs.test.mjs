// A consumer loses its session and comes back, with KafkaJS.
import assert from "node:assert";
import test from "node:test";
import kafkajs from "kafkajs";
import { BOOTSTRAP, expire, messages, PARTITIONS, until, Values } from "./lost_session.mjs";

test("a consumer comes back after its session", async () => {
  const kafka = new kafkajs.Kafka({ clientId: "one", brokers: [BOOTSTRAP], logLevel: kafkajs.logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: "orders", numPartitions: PARTITIONS }] });
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await producer.connect();
  await producer.send({ topic: "orders", messages: messages(0, 10) });

  const values = new Values();
  const timing = { sessionTimeout: 45_000, heartbeatInterval: 100, maxWaitTimeInMs: 100 };
  const consumer = kafka.consumer({ groupId: "orders-app", ...timing });
  let joins = 0;
  consumer.on(consumer.events.GROUP_JOIN, () => joins++);
  await consumer.connect();
  await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
  await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => values.add(message.value.toString()) });
  await values.reach(30);
  await consumer.commitOffsets([0, 1, 2].map((partition) => ({ topic: "orders", partition, offset: "6" })));

  await expire("orders-app", "one"); // as if no heartbeat had come for 45 seconds
  await until("it joins again", () => joins === 2);
  await producer.send({ topic: "orders", messages: messages(10, 11) });
  await values.reach(33);
  assert.equal(values.duplicates, 12); // four of each partition came after the commit

  await Promise.all([consumer.disconnect(), producer.disconnect(), admin.disconnect()]);
});
