// What the tests of both clients share: records that were read, and the control API.
export const BOOTSTRAP = process.env.BOOTSTRAP_SERVERS;
if (!BOOTSTRAP || !process.env.CONTROL_URL) {
  console.error("set BOOTSTRAP_SERVERS=127.0.0.1:9092 and CONTROL_URL=http://127.0.0.1:9095");
  process.exit(1);
}
export const PARTITIONS = 3;

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

export function messages(first, end) {
  const numbers = Array.from({ length: end - first }, (_, index) => first + index);
  return [0, 1, 2].flatMap((partition) => numbers.map((number) => ({ partition, value: `${partition}/${number}` })));
}

export async function expire(group, clientId) {
  const answer = await fetch(`${process.env.CONTROL_URL}/control/groups/expire`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ group, client_id: clientId }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}
