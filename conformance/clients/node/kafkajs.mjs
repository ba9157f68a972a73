// A client's life with KafkaJS: node kafkajs.mjs HOST:PORT.
import kafkajs from "kafkajs";
import { expect, messages, PARTITIONS, RECORDS, shared, sleep, step, until } from "./steps.mjs";

const topic = "kafkajs-life";
const groupId = "kafkajs-group";
const kafka = new kafkajs.Kafka({ brokers: process.argv[2].split(","), logLevel: kafkajs.logLevel.NOTHING });
const admin = kafka.admin();
const members = [];
let middle;

const partitionCount = async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length;

async function produce(idempotent, batches) {
  const producer = kafka.producer({ idempotent, createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await producer.connect();
  for (const batch of batches) {
    const compression = idempotent ? kafkajs.CompressionTypes.GZIP : kafkajs.CompressionTypes.None;
    await producer.send({ topic, messages: batch, acks: -1, compression });
    await sleep(5);
    middle ??= Date.now();
    await sleep(5);
  }
  await producer.disconnect();
}

async function newMember() {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 10_000, heartbeatInterval: 200, maxWaitTimeInMs: 100 });
  const member = { consumer, assigned: [], keys: new Map() };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => (member.assigned = payload.memberAssignment[topic] ?? []));
  consumer.on(consumer.events.REBALANCING, () => (member.assigned = []));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (message.headers.number) member.keys.set(`${partition}/${message.offset}`, message);
    },
  });
  members.push(member);
}

const settled = () => until("every partition has one member", () => shared(members.map((each) => each.assigned), PARTITIONS));
const read = () => new Set(members.flatMap((each) => [...each.keys.keys()])).size;

async function join(count) {
  while (members.length < count) await newMember();
  await settled();
}

async function retention(wanted) {
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames: ["retention.ms"] }];
  const described = await admin.describeConfigs({ resources, includeSynonyms: false });
  expect("retention.ms", described.resources[0].configEntries[0].configValue, wanted);
}

const listed = async () => (await admin.listGroups()).groups.some((each) => each.groupId === groupId);

await step("create a topic", async () => {
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS }], waitForLeaders: true });
  expect("partitions", await partitionCount(), PARTITIONS);
});
await step("produce", () => produce(false, [messages(52), messages(48, 52)]));
await step("produce idempotently", () => produce(true, [messages(10)]));
await step("consume in a group of two", async () => {
  await join(2);
  await until("all records", () => read() === RECORDS);
});
await step("a third joins", () => join(3));
await step("one leaves", async () => {
  await members.pop().consumer.disconnect();
  await settled();
});
await step("commit", async () => {
  const offsets = await admin.fetchTopicOffsets(topic);
  for (const member of members) {
    const mine = offsets.filter((each) => member.assigned.includes(each.partition));
    await member.consumer.commitOffsets(mine.map(({ partition, offset }) => ({ topic, partition, offset })));
  }
});
await step("committed offsets", async () => {
  const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
  expect("the sum of the committed offsets", found.partitions.reduce((sum, each) => sum + Number(each.offset), 0), RECORDS);
});
await step("offsets by time", async () => {
  const [ends] = await admin.fetchTopicOffsets(topic);
  expect("the earliest offset", ends.low, "0");
  const first = (all) => all.find((each) => each.partition === 0).offset;
  expect("the latest offset", first(await admin.fetchTopicOffsets(topic)), "28");
  expect("the offset of a time", first(await admin.fetchTopicOffsetsByTimestamp(topic, middle)), "13");
});
await step("describe a group", async () => {
  const [found] = (await admin.describeGroups([groupId])).groups;
  expect("state", found.state, "Stable");
  expect("members", found.members.length, 2);
});
await step("list groups", async () => expect("listed", await listed(), true));
await step("describe configs", () => retention("604800000"));
await step("alter configs", async () => {
  const configEntries = [{ name: "retention.ms", value: "86400000" }];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }];
  await admin.alterConfigs({ validateOnly: false, resources });
  await retention("86400000");
});
await step("add partitions", async () => {
  await admin.createPartitions({ topicPartitions: [{ topic, count: PARTITIONS + 2 }] });
  await until("the new partitions", async () => (await partitionCount()) === PARTITIONS + 2);
});
await step("delete records", async () => {
  await admin.fetchTopicOffsets(topic); // KafkaJS deletes at the leaders that it has seen last
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "10" }] });
  const ends = await admin.fetchTopicOffsets(topic);
  expect("the earliest offset", ends.find((each) => each.partition === 0).low, "10");
});
await step("delete a group", async () => {
  for (const member of members) await member.consumer.disconnect();
  await admin.deleteGroups([groupId]);
  expect("listed", await listed(), false);
});
await step("delete a topic", async () => {
  await admin.deleteTopics({ topics: [topic] });
  await until("the topic is gone", async () => !(await admin.listTopics()).includes(topic));
});

// Transactions: results and offsets of a group, both or neither.
const results = "kafkajs-results";
const transformer = "kafkajs-transformer";
const input = { topic: "kafkajs-orders", partition: 0 };
let transactional;

async function transactionalProducer() {
  const producer = kafka.producer({ transactionalId: transformer, maxInFlightRequests: 1, idempotent: true, retry: { retries: 3 } });
  await producer.connect();
  return producer;
}

async function transform(value, offset) {
  const transaction = await transactional.transaction();
  await transaction.send({ topic: results, messages: [{ partition: 0, key: "key", value }] });
  const partitions = [{ partition: 0, offset: `${offset}` }];
  await transaction.sendOffsets({ consumerGroupId: transformer, topics: [{ topic: input.topic, partitions }] });
  return transaction;
}

async function found(readUncommitted, count) {
  const consumer = kafka.consumer({ groupId: `${transformer}-${count}-${readUncommitted}`, readUncommitted, maxWaitTimeInMs: 100 });
  const values = [];
  await consumer.connect();
  await consumer.subscribe({ topics: [results], fromBeginning: true });
  await consumer.run({ eachMessage: async ({ message }) => values.push(message.value.toString()) });
  await until(`${count} results, got ${values}`, () => values.length >= count);
  await consumer.disconnect();
  return values.join();
}

async function transformed(wanted) {
  await until(`offset ${wanted}`, async () => {
    const [group] = await admin.fetchOffsets({ groupId: transformer, topics: [input.topic] });
    return group.partitions[0].offset === `${wanted}`;
  });
}

await step("commit a transaction", async () => {
  const topics = [{ topic: results, numPartitions: 1 }, { topic: input.topic, numPartitions: 1 }];
  await admin.createTopics({ topics, waitForLeaders: true });
  transactional = await transactionalProducer();
  await (await transform("one", 1)).commit();
  expect("committed results", await found(false, 1), "one");
  await transformed(1);
});
await step("abort a transaction", async () => {
  await (await transform("aborted", 99)).abort();
  await (await transform("two", 2)).commit();
  expect("committed results", await found(false, 2), "one,two");
  expect("all results", await found(true, 3), "one,aborted,two");
  await transformed(2);
});
await step("fence a zombie", async () => {
  const zombie = await transform("of a zombie", 99);
  const former = transactional;
  transactional = await transactionalProducer();
  const last = await transform("three", 3);
  const refused = await zombie.commit().then(() => "nothing", (error) => error.type ?? error.cause?.type ?? error.message);
  expect("fenced", /FENCED|INVALID_PRODUCER_EPOCH/.test(refused) ? "fenced" : refused, "fenced");
  await last.commit();
  expect("committed results", await found(false, 3), "one,two,three");
  await transformed(3);
  await former.disconnect();
  await transactional.disconnect();
});
process.exit(0);
