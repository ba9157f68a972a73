// Logs in with @platformatic/kafka: node platformatic-login.mjs FILE.
import { readFileSync } from "node:fs";
import { Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";
import { step } from "./steps.mjs";

const topic = "logins";
const read = (file) => readFileSync(file, "utf8");

function saslOf({ mechanism, user, password, token }) {
  return mechanism === "OAUTHBEARER" ? { mechanism, token } : { mechanism, username: user, password };
}

async function live(login) {
  const options = {
    clientId: "platformatic", bootstrapBrokers: [login.server], retries: 1,
    ...(login.protocol.endsWith("SSL") && {
      tls: {
        ca: read(login.ca), servername: "localhost",
        ...(login.certificate && { cert: read(login.certificate), key: read(login.key) }),
      },
    }),
    ...(login.mechanism && { sasl: saslOf(login) }),
  };
  const producer = new Producer({ ...options, serializers: stringSerializers });
  await producer.send({ messages: [{ topic, value: "value" }] });
  await producer.close();
  const consumer = new Consumer({ ...options, groupId: `logins-${login.name.replaceAll(" ", "-")}`, deserializers: stringDeserializers });
  const stream = await consumer.consume({ topics: [topic], mode: "earliest" });
  await new Promise((resolve, reject) => stream.once("data", resolve).once("error", reject));
  await stream.close();
  await consumer.close();
}

for (const login of JSON.parse(read(process.argv[2]))) await step(login.name, () => live(login));
process.exit(0);
