// A Kafka broker for tests with node:test or Jest: started or found, reset before each test, driven over its control API.
// Copy this file beside your tests; it needs Node.js 18 or newer and no package. Its documentation is helpers/README.md of Rejoin.
//
//   import { startRejoin } from "./rejoin.mjs";
//   const rejoin = await startRejoin({ clock: "virtual", topics: { orders: 3 } });
//   test("a member joins", rejoin.test(async (rejoin) => {
//     const consumer = ...;                                          // of any client, at rejoin.bootstrapServers
//     await rejoin.waitForGroup("orders-app", { waiting: 1 });
//     await rejoin.advance(3_000);                                   // the initial rebalance delay
//     await rejoin.waitForGroup("orders-app", { state: "Stable", members: 1 });
//   }));

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, openSync, closeSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const START_MS = 120_000; // uvx may have to download it
const ANSWER_MS = 60_000; // beyond the time that a call may wait by itself
const WHY_MS = 60_000;
const TRANSCRIPT_LINES = 40;
const MOST_GROUPS = 3;
const COMMANDS = ["rejoin", "uvx --from rejoin-kafka rejoin"];

/** The awaited state was not reached in time; the message has the last state. */
export class NotReached extends Error {
  name = "NotReached";
}

/** The broker cannot be reached, or refuses an operation; the message has the reason. */
export class OperationRefused extends Error {
  name = "OperationRefused";
}

/**
 * @typedef {object} Options
 * @property {string} [clock] "real", "virtual" or "fast:5"; "real" unless given
 * @property {Record<string, number>} [topics] partition counts by name
 * @property {Record<string, string | number | boolean>} [settings] settings by their dotted names
 */
/**
 * @typedef {object} Conditions
 * @property {string} [state]
 * @property {number} [members] exactly this many members
 * @property {number} [assigned] exactly this many assigned partitions
 * @property {number} [generation] this generation or a later one
 * @property {number} [waiting] at least this many JoinGroups and SyncGroups that wait for their answer
 * @property {number} [timeout_ms] 10,000 unless given, in real time
 */
/** @typedef {{member?: string, instance?: string, client_id?: string}} MemberKey */
/** @typedef {{now_ms: number, advanced_ms: number, reached: boolean, fired: object[], events: object[]}} ClockAdvance */
/** @typedef {{topic: string, partition: number, offset: number}} CommittedOffset */

/**
 * The broker of REJOIN_URL, or else one that is started by REJOIN_COMMAND, rejoin or uvx.
 * @param {Options} [options]
 * @returns {Promise<Rejoin>}
 */
export async function startRejoin(options = {}) {
  for (const name of Object.keys(options)) {
    if (!["clock", "topics", "settings"].includes(name)) {
      throw new OperationRefused(`startRejoin: unknown option ${name}; expected clock, topics or settings`);
    }
  }
  const url = process.env.REJOIN_URL;
  return url ? find(url.replace(/\/+$/, ""), options) : start(options);
}

async function find(url, { clock, topics = {}, settings = {} }) {
  const rejoin = new Rejoin(url, topics);
  const found = await rejoin.control("GET", "/control");
  if (clock && found.clock !== clock) {
    throw new OperationRefused(`REJOIN_URL ${url}: its clock is ${found.clock}; start it with --clock ${clock}`);
  }
  const [setting] = Object.entries(settings);
  if (setting) {
    const option = `-c ${setting.join("=")}`;
    throw new OperationRefused(`REJOIN_URL ${url}: a running broker takes no settings; start it with ${option}`);
  }
  rejoin.bootstrapServers = process.env.BOOTSTRAP_SERVERS || found.bootstrap_servers;
  return rejoin;
}

async function start({ clock = "real", topics = {}, settings = {} }) {
  const folder = mkdtempSync(join(tmpdir(), "rejoin-"));
  const [ready, log] = [join(folder, "ready.json"), join(folder, "log")];
  const options = ["serve", "--control", "--port", "0", "--log-level", "error", "--clock", clock];
  options.push("--ready-file", ready, "--evidence", join(tmpdir(), "rejoin-evidence"));
  for (const [topic, partitions] of Object.entries(topics)) options.push("--topic", `${topic}:${partitions}`);
  for (const [name, value] of Object.entries(settings)) options.push("-c", `${name}=${value}`);
  options.push("--", "cat"); // it ends with its input, and the broker with it: also where this process is killed
  for (const command of commands()) {
    const [program, ...first] = words(command);
    const out = openSync(log, "w");
    const child = spawn(program, [...first, ...options], { stdio: ["pipe", out, out] });
    closeSync(out);
    let ended = null;
    child.on("error", (error) => (ended = error.code ?? error.message)).on("exit", (code) => (ended ??= `exit code ${code}`));
    child.stdin.on("error", () => {}); // the program has ended
    const end = Date.now() + START_MS;
    while (ended === null && Date.now() < end) {
      const addresses = read(ready);
      if (addresses.endsWith("\n")) {
        rmSync(folder, { recursive: true, force: true });
        const { url, bootstrap_servers } = JSON.parse(addresses);
        return Object.assign(new Rejoin(url, {}, child), { bootstrapServers: bootstrap_servers });
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (ended === "ENOENT" && !process.env.REJOIN_COMMAND) continue;
    child.kill("SIGKILL");
    const said = ended === "ENOENT" ? "command not found" : ended ?? `not ready within ${START_MS / 1_000} s`;
    const output = read(log).trim().split("\n").slice(-10).join("\n");
    rmSync(folder, { recursive: true, force: true });
    throw new OperationRefused(`${command} serve: ${said}${output && `:\n${output}`}\nREJOIN_COMMAND may name another command`);
  }
  rmSync(folder, { recursive: true, force: true });
  throw new OperationRefused(`neither rejoin nor uvx was found: pip install rejoin-kafka, or set REJOIN_COMMAND or REJOIN_URL`);
}

function commands() {
  return process.env.REJOIN_COMMAND ? [process.env.REJOIN_COMMAND] : COMMANDS;
}

/** The words of a command line; double quotes keep spaces. */
function words(command) {
  return [...command.matchAll(/"([^"]*)"|\S+/g)].map((each) => each[1] ?? each[0]);
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** A broker. Methods, fields and answers are those of the control API, which GET /control describes. */
export class Rejoin {
  /** The address for Kafka clients, HOST:PORT. @type {string} */
  bootstrapServers = "";
  #topics;
  #child;
  #turn = Promise.resolve();

  constructor(url, topics, child = null) {
    /** The address of the control API. */
    this.url = url;
    this.#topics = topics;
    this.#child = child;
    child?.unref();
    child?.stdin.unref();
  }

  /** Stop a broker that was started here. One that is not closed ends with this process. */
  async close() {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.ref();
    child.stdin.end();
    await ended;
  }

  /**
   * A test that gets this broker, reset, before its other arguments. Tests of one broker run one after another. Where
   * the test fails, its error has what happened.
   * @param {(rejoin: Rejoin, ...others: any[]) => unknown} body
   * @returns {() => Promise<void>}
   */
  test(body) {
    const rejoin = this;
    return function () {
      const others = arguments; // no parameters of its own: Jest takes one as a callback
      const done = rejoin.#turn.then(async () => {
        await rejoin.reset();
        try {
          await body.call(this, rejoin, ...others);
        } catch (error) {
          throw await rejoin.#explained(error);
        }
      });
      rejoin.#turn = done.catch(() => {});
      return done;
    };
  }

  async #explained(error) {
    const found = error instanceof Error ? error : new Error(String(error));
    const [said, stack] = [found.message, found.stack];
    found.message = `${said}\n\n${await this.evidence()}`;
    found.stack = stack.replace(said, () => found.message); // runners print one or the other
    return found;
  }

  /** The last lines of the transcript, and why each group rebalanced. Errors of failed tests have it. */
  async evidence() {
    try {
      const lines = (await this.transcript()).trimEnd().split("\n");
      const kept = lines.slice(-TRANSCRIPT_LINES);
      const left = lines.length > kept.length ? [`(${lines.length - kept.length} earlier lines)`] : [];
      const { groups } = await this.#json("GET", "/groups");
      const shown = groups.slice(0, MOST_GROUPS).map((each) => this.why(each.groupId));
      const why = await Promise.all(shown.map((each) => each.catch((error) => error.message)));
      return ["Rejoin's transcript:", ...left, ...kept, "", ...why].join("\n");
    } catch (error) {
      return `Rejoin's transcript: ${error.message}`;
    }
  }

  /**
   * The output of rejoin why: why a group rebalanced, in ten lines.
   * @param {string} group
   * @returns {Promise<string>}
   */
  async why(group) {
    for (const command of commands()) {
      const [program, ...first] = words(command);
      const said = await new Promise((resolve) => {
        const options = { timeout: WHY_MS };
        execFile(program, [...first, "why", "--bootstrap-server", this.url, "--", group], options, (error, out, problem) =>
          resolve(error?.code === "ENOENT" ? null : out || problem || `rejoin why ${group}: ${error?.message}`),
        );
      });
      if (said !== null) return said.trimEnd();
    }
    return `rejoin why ${group}: ${commands().join(" or ")}: command not found`;
  }

  /** The time on the broker's clock. @returns {Promise<number>} */
  async nowMs() {
    return (await this.control("GET", "/control/clock")).now_ms;
  }

  /**
   * Wait until all conditions hold; returns the group.
   * @param {string} group
   * @param {Conditions} [conditions]
   * @returns {Promise<any>}
   */
  async waitForGroup(group, conditions = {}) {
    return (await this.control("POST", "/control/groups/wait", { group: group, ...conditions })).group;
  }

  /**
   * Move the clock by so many ms; returns the timers that fired and the events.
   * @param {number} millis
   * @returns {Promise<ClockAdvance>}
   */
  advance(millis) {
    return this.control("POST", "/control/clock", { advance_ms: millis });
  }

  /** Move the clock to the next timer. @returns {Promise<ClockAdvance>} */
  advanceToNext() {
    return this.control("POST", "/control/clock", { until: "next" });
  }

  /** Move the clock until only timers are left that always come back. @returns {Promise<ClockAdvance>} */
  advanceUntilIdle() {
    return this.control("POST", "/control/clock", { until: "idle" });
  }

  /**
   * Add a fault rule, such as {keys: "Heartbeat", error: "NOT_COORDINATOR", count: 2}.
   * @param {Record<string, any>} fields
   * @returns {Promise<Fault>}
   */
  async addFault(fields) {
    return new Fault(this, await this.control("POST", "/control/faults", { ...fields }));
  }

  /** Remove every fault rule. */
  async clearFaults() {
    await this.control("DELETE", "/control/faults");
  }

  /** End a member's session now; returns its id. @param {string} group @param {MemberKey} member */
  async expire(group, member) {
    return (await this.control("POST", "/control/groups/expire", { group: group, ...member })).member;
  }

  /** Remove a member as an administrator does; returns its id. @param {string} group @param {MemberKey} member */
  async kick(group, member) {
    return (await this.control("POST", "/control/groups/kick", { group: group, ...member })).member;
  }

  /**
   * Send clients of a listener to another address, such as a mapped port; returns the addresses for clients.
   * @param {string} host @param {number} port @param {string} [listener] the first one, unless given
   */
  async advertise(host, port, listener) {
    return (await this.control("POST", "/control/advertise", { host: host, port: port, listener: listener })).bootstrap_servers;
  }

  /** Take the offsets partition of a group away from the broker; returns its number. @param {string} group */
  async resign(group) {
    return (await this.control("POST", "/control/partitions/resign", { group: group })).partition;
  }

  /** Give the offsets partition of a group back, loaded from the log. @param {string} group */
  async elect(group) {
    return (await this.control("POST", "/control/partitions/elect", { group: group })).partition;
  }

  /** Create a topic, or add partitions. @param {string} topic @param {number} partitions */
  setTopic(topic, partitions) {
    return this.control("POST", "/control/topics", { topic: topic, partitions: partitions });
  }

  /** Delete a topic with its records. @param {string} topic */
  deleteTopic(topic) {
    return this.control("POST", "/control/topics/delete", { topic: topic });
  }

  /**
   * Write records: values, [key, value], or {key, value, headers, timestamp}; or so many, each with a value of its own.
   * @param {string} topic
   * @param {number | null} partition null leaves it to the keys; with a number of records it means every partition
   * @param {number | any[]} records
   */
  produce(topic, partition, records) {
    return this.control("POST", "/control/topics/produce", { topic: topic, partition: partition, records: records });
  }

  /** Compact the logs of a topic now; returns the names of the topics. @param {string} topic */
  async compact(topic) {
    return (await this.control("POST", "/control/topics/compact", { topic: topic })).topics;
  }

  /** The records of a topic, in the order of partitions. @param {string} topic @returns {Promise<any[]>} */
  async records(topic) {
    return (await this.control("GET", "/control/topics/records", { topic: topic })).records;
  }

  /**
   * Requests of clients with their responses: {api, client_id, since} choose some.
   * @param {{api?: string, client_id?: string, since?: number}} [query]
   * @returns {Promise<any[]>}
   */
  async requests(query = {}) {
    return (await this.control("GET", "/control/requests", { ...query })).requests;
  }

  /**
   * Wait until a group has committed these offsets or later ones; returns all that it has committed.
   * @param {string} group
   * @param {CommittedOffset[]} offsets
   * @returns {Promise<any[]>}
   */
  async waitForCommitted(group, offsets) {
    return (await this.control("POST", "/control/offsets/wait", { group: group, offsets: offsets })).offsets;
  }

  /**
   * Wait until a share group has so many members, records that they hold, and records that wait for their next delivery;
   * returns its share-partitions.
   * @param {string} group
   * @param {{members?: number, acquired?: number, available?: number, topic?: string, timeout_ms?: number}} [conditions]
   * @returns {Promise<any[]>}
   */
  async waitForShareGroup(group, conditions = {}) {
    return (await this.control("POST", "/control/share-groups/wait", { group: group, ...conditions })).share_partitions;
  }

  /**
   * Wait until a streams group has a state, so many members, tasks and standbys; returns the group, whose tasks have their
   * members.
   * @param {string} group
   * @param {{state?: string, ready?: boolean, members?: number, tasks?: number, standbys?: number, member?: string,
   *   epoch?: number, timeout_ms?: number}} [conditions]
   * @returns {Promise<any>}
   */
  async waitForStreamsGroup(group, conditions = {}) {
    return (await this.control("POST", "/control/streams-groups/wait", { group: group, ...conditions })).group;
  }

  /** Save the whole state; returns its name. @returns {Promise<string>} */
  async snapshot() {
    return (await this.control("POST", "/control/snapshot")).snapshot;
  }

  /** Restore a snapshot, the time included. @param {string} snapshot */
  async restore(snapshot) {
    await this.control("POST", "/control/restore", { snapshot: snapshot });
  }

  /** Start over: no groups, offsets or faults, and the topics of the start. */
  async reset() {
    await this.control("POST", "/control/reset");
    for (const [topic, partitions] of Object.entries(this.#topics)) await this.setTopic(topic, partitions);
  }

  /** The mark of this moment, for since. @returns {Promise<number>} */
  async mark() {
    return (await this.control("GET", "/control/mark")).mark;
  }

  /** What happened, as a transcript. @param {number} [since] @returns {Promise<string>} */
  transcript(since = 0) {
    return this.control("GET", "/control/transcript", { since: since });
  }

  /**
   * One call of the control API; returns its answer. Fields of a GET are its query.
   * @param {"GET" | "POST" | "DELETE"} method
   * @param {string} path
   * @param {Record<string, any>} [fields]
   * @returns {Promise<any>}
   */
  control(method, path, fields = {}) {
    return this.#json(method, path, fields);
  }

  async #json(method, path, fields = {}) {
    const headers = {};
    if (process.env.REJOIN_CONTROL_TOKEN) headers.Authorization = `Bearer ${process.env.REJOIN_CONTROL_TOKEN}`;
    let [target, body] = [this.url + path, undefined];
    if (method === "POST") {
      headers["Content-Type"] = "application/json";
      body = JSON.stringify(fields);
    } else if (Object.keys(fields).length) {
      target += `?${new URLSearchParams(fields)}`;
    }
    const signal = AbortSignal.timeout((fields.timeout_ms ?? 0) + ANSWER_MS);
    let answer, text;
    try {
      answer = await fetch(target, { method, headers, body, signal });
      text = await answer.text();
    } catch (error) {
      const reason = error.cause?.code ?? error.cause?.message ?? error.message;
      throw new OperationRefused(`${this.url} does not answer (${reason}); expected rejoin serve --control there`);
    }
    const isJson = (answer.headers.get("content-type") ?? "").includes("json");
    if (answer.ok) return isJson ? JSON.parse(text) : text;
    const problem = isJson ? JSON.parse(text) : { detail: `${answer.status} ${text.slice(0, 200)}` };
    if (answer.status === 401) throw new OperationRefused(`${this.url} refuses the token of REJOIN_CONTROL_TOKEN`);
    if (answer.status === 404 && String(problem.type).endsWith(":unknown-route")) {
      throw new OperationRefused(`${target} is not there: ${this.url} must be a node of rejoin serve --control`);
    }
    if (String(problem.type).endsWith(":not-reached")) throw new NotReached(problem.detail);
    throw new OperationRefused(problem.detail);
  }
}

/** A fault rule of a test. */
export class Fault {
  #rejoin;

  constructor(rejoin, { id }) {
    this.#rejoin = rejoin;
    this.id = id;
  }

  /** How many requests it was applied to. @returns {Promise<number>} */
  async hits() {
    return (await this.#rejoin.control("GET", `/control/faults/${this.id}`)).hits;
  }

  /** Wait until it was applied to so many requests. @param {number} [hits] */
  async wait(hits = 1) {
    await this.#rejoin.control("POST", `/control/faults/${this.id}/wait`, { hits: hits });
  }

  /** Let the requests go that a rule with pause holds. */
  async release() {
    await this.#rejoin.control("POST", `/control/faults/${this.id}/release`);
  }

  /** Remove the rule, and let the requests go that it holds. */
  async remove() {
    await this.#rejoin.control("DELETE", `/control/faults/${this.id}`);
  }
}
