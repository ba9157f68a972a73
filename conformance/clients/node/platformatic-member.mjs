// A consumer with @platformatic/kafka: node platformatic-member.mjs TOPIC NAME=VALUE ..., until SIGTERM.
import { Consumer } from "@platformatic/kafka";
import { processed, settingsOf } from "./steps.mjs";

const [topic, ...pairs] = process.argv.slice(2);
const settings = settingsOf(pairs);
const groupProtocol = settings["group.protocol"] ?? "classic";
const ofClassic = {
  sessionTimeout: Number(settings["session.timeout.ms"]),
  heartbeatInterval: Number(settings["heartbeat.interval.ms"]),
};
const consumer = new Consumer({
  clientId: settings["client.id"],
  bootstrapBrokers: settings["bootstrap.servers"].split(","),
  groupId: settings["group.id"],
  groupProtocol,
  ...(settings["group.instance.id"] ? { groupInstanceId: settings["group.instance.id"] } : {}),
  ...(groupProtocol === "classic" ? ofClassic : {}),
  rebalanceTimeout: Number(settings["max.poll.interval.ms"]),
  metadataMaxAge: Number(settings["metadata.max.age.ms"]),
  maxWaitTime: 200,
});
process.on("SIGTERM", async () => {
  await consumer.close(true);
  process.exit(0);
});
const autocommit = Number(settings["auto.commit.interval.ms"]);
const stream = await consumer.consume({ topics: [topic], mode: "committed", fallbackMode: "earliest", autocommit });
stream.on("data", (message) => processed(settings, message.topic, message.partition, message.offset));
stream.on("error", (error) => console.error(error));
