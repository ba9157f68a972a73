// A client's life with @platformatic/kafka: node platformatic.mjs HOST:PORT.
import {
  Admin, ConfigResourceTypes, Consumer, IncrementalAlterConfigOperationTypes, Producer, stringDeserializers, stringSerializers,
} from "@platformatic/kafka";
import { expect, messages, PARTITIONS, RECORDS, shared, sleep, step, until } from "./steps.mjs";

const topic = "platformatic-life";
const groupId = "platformatic-group";
const options = { clientId: "platformatic", bootstrapBrokers: process.argv[2].split(",") };
const admin = new Admin(options);
const members = [];
let middle;

async function partitionCount() {
  const metadata = await admin.metadata({ topics: [topic], forceUpdate: true });
  return metadata.topics.get(topic).partitions.length;
}

async function produce(idempotent, batches) {
  const producer = new Producer({ ...options, serializers: stringSerializers, idempotent, strict: true });
  for (const batch of batches) {
    const acks = -1;
    await producer.send({ messages: batch.map((each) => ({ ...each, topic })), acks, compression: idempotent ? "gzip" : "none" });
    await sleep(5);
    middle ??= Date.now();
    await sleep(5);
  }
  await producer.close();
}

async function newMember() {
  const consumer = new Consumer({
    ...options, groupId, deserializers: stringDeserializers, sessionTimeout: 10_000, rebalanceTimeout: 10_000,
    heartbeatInterval: 200, autocommit: false, maxWaitTime: 100,
  });
  const member = { consumer, read: new Map() };
  members.push(member);
  const stream = await consumer.consume({ topics: [topic], mode: "committed", fallbackMode: "earliest" });
  stream.on("data", (message) => {
    if (message.headers.get("number")) member.read.set(`${message.partition}/${message.offset}`, message);
  });
  stream.on("error", () => {});
}

const assigned = (member) => (member.consumer.assignments ?? []).flatMap((each) => each.partitions);
const settled = () => until("every partition has one member", () => shared(members.map(assigned), PARTITIONS));
const read = () => new Set(members.flatMap((each) => [...each.read.keys()])).size;

async function join(count) {
  while (members.length < count) await newMember();
  await settled();
}

const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic };

async function retention(wanted) {
  const [found] = await admin.describeConfigs({ resources: [{ ...resource, configurationKeys: ["retention.ms"] }] });
  expect("retention.ms", found.configs[0].value, wanted);
}

async function offset(timestamp) {
  const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }] });
  return Number(found.partitions[0].offset);
}

await step("create a topic", async () => {
  await admin.createTopics({ topics: [topic], partitions: PARTITIONS, replicas: 1 });
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
  await members.pop().consumer.close(true);
  await settled();
});
await step("commit", async () => {
  for (const { consumer } of members) {
    const ends = await consumer.listOffsets({ topics: [topic] });
    const offsets = consumer.assignments[0].partitions.map((partition) => ({
      topic, partition, offset: ends.get(topic)[partition], leaderEpoch: -1,
    }));
    await consumer.commit({ offsets });
  }
});
await step("committed offsets", async () => {
  const [found] = await admin.listConsumerGroupOffsets({ groups: [groupId] });
  const sum = found.topics[0].partitions.reduce((total, each) => total + Number(each.committedOffset), 0);
  expect("the sum of the committed offsets", sum, RECORDS);
});
await step("offsets by time", async () => {
  expect("the earliest offset", await offset(-2n), 0);
  expect("the latest offset", await offset(-1n), 28);
  expect("the offset of a time", await offset(BigInt(middle)), 13);
});
await step("describe a group", async () => {
  const found = (await admin.describeGroups({ groups: [groupId] })).get(groupId);
  expect("state", found.state, "STABLE");
  expect("members", found.members.size, 2);
});
await step("list groups", async () => expect("listed", (await admin.listGroups()).has(groupId), true));
await step("describe configs", () => retention("604800000"));
await step("alter configs", async () => {
  const configOperation = IncrementalAlterConfigOperationTypes.SET;
  const configs = [{ name: "retention.ms", configOperation, value: "86400000" }];
  await admin.incrementalAlterConfigs({ resources: [{ ...resource, configs }] });
  await retention("86400000");
});
await step("add partitions", async () => {
  await admin.createPartitions({ topics: [{ name: topic, count: PARTITIONS + 2, assignments: null }] });
  expect("partitions", await partitionCount(), PARTITIONS + 2);
});
await step("delete records", async () => {
  const partitions = [{ partition: 0, offset: 10n }];
  const [found] = await admin.deleteRecords({ topics: [{ name: topic, partitions }] });
  expect("the low watermark", Number(found.partitions[0].lowWatermark), 10);
});
await step("delete a group", async () => {
  for (const member of members) await member.consumer.close(true);
  await admin.deleteGroups({ groups: [groupId] });
  expect("listed", (await admin.listGroups()).has(groupId), false);
});
await step("delete a topic", async () => {
  await admin.deleteTopics({ topics: [topic] });
  await until("the topic is gone", async () => !(await admin.listTopics()).includes(topic));
});

// Transactions: results and offsets of a group, both or neither.
const results = "platformatic-results";
const orders = "platformatic-orders";
const transformer = "platformatic-transformer";
let transactional;
let reader;
const taken = [];

// Without these it claims to have been producer 0 before, and is fenced where it was not.
const nothingBefore = { producerId: -1n, producerEpoch: -1 };

function transactionalProducer() {
  return new Producer({
    ...options, ...nothingBefore, serializers: stringSerializers, idempotent: true, transactionalId: transformer,
    strict: true, retries: 5,
  });
}

async function transform(value, order, topic = results) {
  const transaction = await transactional.beginTransaction();
  await transaction.addConsumer(reader);
  await transaction.send({ messages: [{ topic, partition: 0, key: "key", value }] });
  await transaction.addOffset(taken[order]);
  return transaction;
}

async function found(isolationLevel, count, topic = results) {
  const consumer = new Consumer({ ...options, groupId: `${topic}-${isolationLevel}-${count}`, deserializers: stringDeserializers, maxWaitTime: 100 });
  const stream = await consumer.consume({ topics: [topic], mode: "earliest", isolationLevel });
  const values = [];
  stream.on("data", (message) => values.push(message.value));
  await until(`${count} results, got ${values}`, () => values.length >= count);
  await consumer.close(true);
  return values.join();
}

async function transformed(wanted) {
  await until(`offset ${wanted}`, async () => {
    const [group] = await admin.listConsumerGroupOffsets({ groups: [transformer] });
    return Number(group.topics[0]?.partitions[0].committedOffset) === wanted;
  });
}

await step("commit a transaction", async () => {
  await admin.createTopics({ topics: [results, orders], partitions: 1, replicas: 1 });
  const producer = new Producer({ ...options, serializers: stringSerializers });
  await producer.send({ messages: ["a", "b", "c", "d"].map((value) => ({ topic: orders, partition: 0, value })), acks: -1 });
  await producer.close();
  reader = new Consumer({ ...options, groupId: transformer, deserializers: stringDeserializers, autocommit: false, maxWaitTime: 100 });
  const stream = await reader.consume({ topics: [orders], mode: "committed", fallbackMode: "earliest" });
  stream.on("data", (message) => taken.push(message));
  await until("all orders", () => taken.length === 4);
  transactional = transactionalProducer();
  await (await transform("one", 0)).commit();
  expect("committed results", await found(1, 1), "one");
  await transformed(1);
});
await step("abort a transaction", async () => {
  await (await transform("aborted", 3)).abort();
  await (await transform("two", 1)).commit();
  expect("committed results", await found(1, 2), "one,two");
  expect("all results", await found(0, 3), "one,aborted,two");
  await transformed(2);
});
await step("fence a zombie", async () => {
  // A topic of its own: of one producer's aborted transactions in one answer, the client skips only the last.
  const fenced = "platformatic-fenced";
  await admin.createTopics({ topics: [fenced], partitions: 1, replicas: 1 });
  const zombie = await transform("of a zombie", 3, fenced);
  transactional = transactionalProducer();
  const last = await transform("three", 2, fenced);
  const codes = (error) => [error.apiId, ...(error.errors ?? []).map(codes)].join();
  const refused = await zombie.commit().then(() => "nothing", (error) => codes(error) || error.message);
  expect("fenced", /FENCED|INVALID_PRODUCER_EPOCH/.test(refused) ? "fenced" : refused, "fenced");
  await last.commit();
  expect("committed results", await found(1, 1, fenced), "three");
  await transformed(3);
  await reader.close(true);
});
process.exit(0);
