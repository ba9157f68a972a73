// A consumer with KafkaJS: node kafkajs-member.mjs TOPIC NAME=VALUE ... "sleep 20" on standard input makes it slow.
import { createInterface } from "node:readline";
import kafkajs from "kafkajs";
import { processed, settingsOf, sleep } from "./steps.mjs";

const [topic, ...pairs] = process.argv.slice(2);
const settings = settingsOf(pairs);
const auto = settings["enable.auto.commit"] === "true";
const sleeps = [];
createInterface({ input: process.stdin }).on("line", (line) => sleeps.push(1000 * Number(line.split(" ")[1])));
const kafka = new kafkajs.Kafka({ brokers: settings["bootstrap.servers"].split(","), clientId: settings["client.id"] });
const consumer = kafka.consumer({
  groupId: settings["group.id"],
  sessionTimeout: Number(settings["session.timeout.ms"]),
  heartbeatInterval: Number(settings["heartbeat.interval.ms"]),
  rebalanceTimeout: Number(settings["max.poll.interval.ms"]),
  metadataMaxAge: Number(settings["metadata.max.age.ms"]),
  maxWaitTimeInMs: 200,
});
process.on("SIGTERM", async () => {
  await consumer.disconnect();
  process.exit(0);
});
await consumer.connect();
await consumer.subscribe({ topics: [topic], fromBeginning: true });
await consumer.run({
  autoCommit: auto,
  autoCommitInterval: settings["auto.commit.interval.ms"] ? Number(settings["auto.commit.interval.ms"]) : null,
  eachMessage: async ({ partition, message }) => {
    processed(settings, topic, partition, message.offset);
    if (sleeps.length) await sleep(sleeps.shift());
    if (!auto) await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }]);
  },
});
