// A consumer with @confluentinc/kafka-javascript: node confluent-member.mjs TOPIC NAME=VALUE ..., until SIGTERM.
import confluent from "@confluentinc/kafka-javascript";

const [topic, ...pairs] = process.argv.slice(2);
const { processed, ...settings } = Object.fromEntries(pairs.map((pair) => pair.split("=", 2)));
const consumer = new confluent.KafkaJS.Kafka({}).consumer(settings);
process.on("SIGTERM", async () => {
  await consumer.disconnect();
  process.exit(0);
});
await consumer.connect();
await consumer.subscribe({ topics: [topic] });
await consumer.run({
  eachMessage: async ({ partition, message }) => {
    if (processed === "true") console.log(`processed ${topic} ${partition} ${message.offset}`);
  },
});
