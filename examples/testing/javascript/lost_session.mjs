// Shared by the tests of both clients: records that were read, and conditions to wait for.

/** Options of the broker: a group is stable at once. */
export const OPTIONS = { topics: { orders: 3 }, settings: { "group.initial.rebalance.delay.ms": 0 } };
export const STABLE = { state: "Stable", members: 1, assigned: 3, timeout_ms: 30_000 };

/** Counts values, and those that came more than once. */
export class Values {
  seen = new Set();
  duplicates = 0;

  add(value) {
    if (this.seen.has(value)) this.duplicates++;
    this.seen.add(value);
  }

  reach(count) {
    return until(`${count} records`, () => this.seen.size === count);
  }
}

export async function until(what, condition) {
  const end = Date.now() + 30_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The member joins, and its group is stable after the initial rebalance delay of a virtual clock. */
export async function joined(rejoin) {
  await rejoin.waitForGroup("orders-app", { waiting: 1, timeout_ms: 30_000 });
  await rejoin.advance(3_000);
  await rejoin.waitForGroup("orders-app", STABLE);
}

/** The coordinator's 45 seconds pass at once, with no heartbeat. The consumer's own timers stay in real time. */
export async function loseSession(rejoin) {
  const silence = await rejoin.addFault({ keys: "Heartbeat", pause: true, count: -1 });
  await silence.wait();
  await rejoin.advance(45_000);
  await rejoin.waitForGroup("orders-app", { state: "Empty" });
  await silence.remove();
}
