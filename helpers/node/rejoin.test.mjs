// The helper with a member of its own and without a Kafka client: node --test, with REJOIN_COMMAND or rejoin on the path.
import assert from "node:assert";
import { createServer } from "node:http";
import test, { after } from "node:test";
import { NotReached, OperationRefused, startRejoin } from "./rejoin.mjs";

const rejoin = await startRejoin({ clock: "virtual", topics: { orders: 3 } });
after(() => rejoin.close());

async function join(memberId = "") {
  const answer = await fetch(`${rejoin.url}/v1/join-group`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Kafka-Client-Id": "one" },
    body: JSON.stringify({
      groupId: "orders-app", sessionTimeoutMs: 45_000, rebalanceTimeoutMs: 300_000, memberId, groupInstanceId: null,
      protocolType: "consumer", protocols: [{ name: "range", metadata: "AAAAAAABAAZvcmRlcnP/////" }], reason: null,
    }),
  });
  return answer.json();
}

/** A member that has joined: its answer comes after the initial rebalance delay. */
async function member() {
  const { memberId } = await join();
  const joined = join(memberId);
  await rejoin.waitForGroup("orders-app", { waiting: 1 });
  const { fired } = await rejoin.advance(3_000);
  assert.deepEqual(fired.map((each) => each.timer), ["join"]);
  return joined;
}

test("a member is removed when its session has passed", rejoin.test(async (rejoin, t) => {
  assert.equal(typeof t.name, "string");
  assert.equal((await member()).generationId, 1);
  assert.equal((await rejoin.waitForGroup("orders-app", { state: "CompletingRebalance" })).members.length, 1);
  const before = await rejoin.nowMs();
  await rejoin.advanceUntilIdle();
  assert.ok((await rejoin.nowMs()) > before);
  await rejoin.waitForGroup("orders-app", { state: "Empty", members: 0 });
}));

test("each test begins without groups, records and faults", rejoin.test(async (rejoin) => {
  await assert.rejects(rejoin.waitForGroup("orders-app", { timeout_ms: 1 }), NotReached);
  assert.deepEqual(await rejoin.records("orders"), []);
  assert.deepEqual((await rejoin.control("GET", "/control/faults")).faults, []);
}));

test("a share group that has no records to hold is not reached", rejoin.test(async (rejoin) => {
  const wanted = { members: 1, acquired: 2, available: 0, topic: "orders", timeout_ms: 1 };
  await assert.rejects(rejoin.waitForShareGroup("orders-share", wanted), NotReached);
  await assert.rejects(rejoin.waitForShareGroup("orders-share", { acquired: "two" }), OperationRefused);
}));

test("a streams group that is not there is not reached", rejoin.test(async (rejoin) => {
  await assert.rejects(rejoin.waitForStreamsGroup("words", { state: "Stable", tasks: 6, timeout_ms: 1 }), NotReached);
  await rejoin.setTopic("lines", 1);
  await rejoin.deleteTopic("lines");
  await assert.rejects(rejoin.deleteTopic("lines"), OperationRefused);
}));

test("faults are applied, awaited and removed", rejoin.test(async (rejoin) => {
  const fault = await rejoin.addFault({ keys: "JoinGroup", error: "COORDINATOR_NOT_AVAILABLE" });
  assert.equal((await join()).errorCode, 15);
  await fault.wait();
  assert.equal(await fault.hits(), 1);
  await fault.remove();
  const paused = await rejoin.addFault({ keys: "JoinGroup", pause: true });
  const held = join();
  await paused.wait();
  await paused.release();
  assert.equal((await held).errorCode, 79);
  await rejoin.clearFaults();
  assert.equal((await rejoin.requests({ api: "JoinGroup", client_id: "one" })).length, 2);
  assert.match(await rejoin.transcript(), /JoinGroup/);
}));

test("topics grow, and have records", rejoin.test(async (rejoin) => {
  assert.equal((await rejoin.setTopic("orders", 4)).partitions, 4);
  await rejoin.produce("orders", 0, ["a", ["k", "b"]]);
  await rejoin.produce("orders", null, 1);
  assert.deepEqual((await rejoin.records("orders")).slice(0, 2).map((each) => [each.key, each.value]), [[null, "a"], ["k", "b"]]);
  await assert.rejects(rejoin.compact("orders"), OperationRefused);
}));

test("snapshots take the time back", rejoin.test(async (rejoin) => {
  const saved = await rejoin.snapshot();
  const [now, mark] = [await rejoin.nowMs(), await rejoin.mark()];
  await rejoin.advanceToNext();
  await rejoin.restore(saved);
  assert.equal(await rejoin.nowMs(), now);
  assert.ok(mark >= 1);
}));

test("a member is expired or kicked, and the coordinator moves", rejoin.test(async (rejoin) => {
  await member();
  assert.equal(await rejoin.resign("orders-app"), await rejoin.elect("orders-app"));
  await rejoin.waitForGroup("orders-app");
  await assert.rejects(rejoin.kick("orders-app", { instance: "none" }), OperationRefused);
  await assert.rejects(rejoin.expire("orders-app", { client_id: "two" }), OperationRefused);
  await assert.rejects(rejoin.waitForCommitted("orders-app", []), OperationRefused);
}));

test("clients are sent to an address that is set", rejoin.test(async (rejoin) => {
  const [host, port] = rejoin.bootstrapServers.split(":");
  assert.equal(await rejoin.advertise(host, Number(port)), rejoin.bootstrapServers);
  assert.equal(await rejoin.advertise(host, Number(port), "PLAINTEXT"), rejoin.bootstrapServers);
  await assert.rejects(rejoin.advertise("broker", Number(port), "NONE"), OperationRefused);
}));

test("the error of a failed test has the transcript and why", async () => {
  const failing = rejoin.test(async () => {
    await member();
    await rejoin.waitForGroup("orders-app", { members: 2, timeout_ms: 1 });
  });
  await assert.rejects(failing(), (error) => {
    assert.ok(error instanceof NotReached);
    for (const part of ["orders-app' did not have 2 members", "Rejoin's transcript:", "JoinGroup", "group    orders-app"]) {
      assert.ok(error.message.includes(part), `${part} is missing from ${error.message}`);
    }
    return true;
  });
});

async function refusal(variables, options) {
  const before = { ...process.env };
  try {
    Object.assign(process.env, variables);
    const found = await startRejoin(options);
    await found.reset();
  } catch (error) {
    return error.message;
  } finally {
    for (const name of Object.keys(variables)) {
      if (name in before) process.env[name] = before[name];
      else delete process.env[name];
    }
  }
  return "";
}

test("a refused token is named", async () => {
  let given;
  const server = createServer((request, response) => {
    given = request.headers.authorization;
    response.writeHead(401).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const message = await refusal({ REJOIN_URL: url, REJOIN_CONTROL_TOKEN: "wrong" }, {});
  assert.deepEqual([message, given], [`${url} refuses the token of REJOIN_CONTROL_TOKEN`, "Bearer wrong"]);
  server.closeAllConnections();
  server.close();
});

test("a wrong address, command, clock or setting is named in a sentence", async () => {
  const found = { REJOIN_URL: rejoin.url };
  const cases = [
    [{ REJOIN_URL: "http://127.0.0.1:9" }, {}, "http://127.0.0.1:9 does not answer ("],
    [{ REJOIN_COMMAND: "no-such-command", REJOIN_URL: "" }, {}, "no-such-command serve: command not found"],
    [{ REJOIN_URL: "" }, { clock: "wrong" }, "--clock"],
    [{ REJOIN_URL: `${rejoin.url}/nothing` }, {}, "must be a node of rejoin serve --control"],
    [found, { clock: "real" }, "its clock is virtual; start it with --clock real"],
    [found, { settings: { "group.max.size": 3 } }, "start it with -c group.max.size=3"],
    [found, { topic: "orders" }, "unknown option topic; expected clock, topics or settings"],
    [found, { topics: { "?": 1 } }, "?"],
  ];
  for (const [variables, options, said] of cases) {
    const message = await refusal(variables, options);
    assert.ok(message.includes(said), `${JSON.stringify(variables)}: ${message}`);
  }
  assert.equal(await refusal(found, { clock: "virtual", topics: { orders: 3 } }), "");
});
