// Groups of the consumer protocol with @platformatic/kafka. It has no regular expressions, and a static member leaves for
// good when it closes. No group is moved: its classic members say version 1 in subscriptions that lack what this version has,
// which Kafka cannot read then, and their streams end with the first offset fetch that is refused in a rebalance.
import { fork } from "node:child_process";
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";
import { shared, step, until } from "./steps.mjs";

const [orders, growing] = ["orders", "growing"].map((name) => `platformatic-${name}`);
const bootstrapBrokers = [process.argv[2]];
const admin = new Admin({ clientId: "admin", bootstrapBrokers });
const producer = new Producer({ clientId: "producer", bootstrapBrokers, serializers: stringSerializers });
const members = new Map();
const seen = new Map();
let written = 0;

async function join(name, groupId) {
  const consumer = new Consumer({
    clientId: name, bootstrapBrokers, groupId, groupProtocol: "consumer", deserializers: stringDeserializers, autocommit: false,
    maxWaitTime: 100, metadataMaxAge: 1_000,
  });
  members.set(name, consumer);
  const stream = await consumer.consume({ topics: [groupId], mode: "committed", fallbackMode: "earliest" });
  stream.on("data", async (message) => {
    seen.set(message.value, (seen.get(message.value) ?? 0) + 1);
    await Promise.resolve(message.commit()).catch(() => {});
  });
  stream.on("error", () => {});
}

const leave = async (name) => {
  const consumer = members.get(name);
  members.delete(name);
  await consumer.close(true);
};

async function leaveAll() {
  for (const name of [...members.keys()]) await leave(name);
}

async function produce(topic, count) {
  const messages = Array.from({ length: count }, () => ({ topic, key: `key-${written}`, value: `${written++}` }));
  await producer.send({ messages, acks: -1 });
}

const assigned = (consumer) => (consumer.assignments ?? []).flatMap((each) => each.partitions);
const listed = async (groupId) => (await admin.listGroups({ types: ["classic", "consumer"] })).get(groupId);
const everything = () => until("all records", () => seen.size === written);

async function settled(groupId, partitions) {
  await until("every partition has one member", async () => {
    const group = await listed(groupId);
    return group?.state.toUpperCase() === "STABLE" && shared([...members.values()].map(assigned), partitions);
  });
}

if (process.argv[3] === "victim") {
  await join("victim", orders);
  await until("it has partitions", () => assigned(members.get("victim")).length > 0);
  process.send("joined");
  await new Promise(() => {});
}

await step("three members", async () => {
  await admin.createTopics({ topics: [orders], partitions: 8, replicas: 1 });
  await produce(orders, 40);
  for (const name of ["one", "two", "three"]) await join(name, orders);
  await settled(orders, 8);
  await everything();
});
await step("a fourth joins", async () => {
  await join("four", orders);
  await settled(orders, 8);
});
await step("one is killed", async () => {
  const victim = fork(process.argv[1], [bootstrapBrokers[0], "victim"]);
  await new Promise((resolve) => victim.on("message", resolve));
  const ended = new Promise((resolve) => victim.on("exit", resolve));
  victim.kill("SIGKILL");
  await ended;
  await settled(orders, 8);
  await produce(orders, 20);
  await everything();
  await leaveAll();
});
await step("a topic grows", async () => {
  await admin.createTopics({ topics: [growing], partitions: 2, replicas: 1 });
  for (const name of ["one", "two"]) await join(name, growing);
  await settled(growing, 2);
  await admin.createPartitions({ topics: [{ name: growing, count: 6, assignments: null }] });
  await settled(growing, 6);
  await leaveAll();
});
process.exit(0);
