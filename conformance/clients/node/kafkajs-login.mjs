// Logs in with KafkaJS: node kafkajs-login.mjs FILE.
import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";
import { step } from "./steps.mjs";

const topic = "logins";
const read = (file) => readFileSync(file, "utf8");

function saslOf({ mechanism, user, password, token }) {
  if (mechanism === "OAUTHBEARER") return { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: token }) };
  return { mechanism: mechanism.toLowerCase(), username: user, password };
}

async function live(login) {
  const ssl = login.protocol.endsWith("SSL") && {
    ca: [read(login.ca)], servername: "localhost",
    ...(login.certificate && { cert: read(login.certificate), key: read(login.key) }),
  };
  const kafka = new kafkajs.Kafka({
    brokers: [login.server], logLevel: kafkajs.logLevel.NOTHING, ssl, retry: { retries: 1 },
    ...(login.mechanism && { sasl: saslOf(login) }),
  });
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await producer.connect();
  await producer.send({ topic, messages: [{ value: "value" }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: `logins-${login.name.replaceAll(" ", "-")}` });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({ eachMessage: async () => resolve() });
  });
  await consumer.disconnect();
}

for (const login of JSON.parse(read(process.argv[2]))) await step(login.name, () => live(login));
process.exit(0);
