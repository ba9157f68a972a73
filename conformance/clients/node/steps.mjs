// Runs the steps of a client's life, and prints one line of JSON for each.
export const PARTITIONS = 4;
export const RECORDS = 110;
const PATIENCE_MS = 30_000;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function step(name, work) {
  let problem = "";
  let timer;
  try {
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("no end after a minute")), 2 * PATIENCE_MS);
    });
    await Promise.race([work(), late]);
  } catch (error) {
    const causes = (error.errors ?? []).map((each) => each.message).join("; ");
    problem = `${error.message ?? error} ${causes}`.trim() || "failed";
  } finally {
    clearTimeout(timer);
  }
  console.log(JSON.stringify({ step: name, passed: problem === "", problem }));
}

export function expect(what, found, wanted) {
  if (found !== wanted) throw new Error(`${what}: expected ${wanted}, got ${found}`);
}

export async function until(what, condition) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await sleep(20);
  }
}

/** Whether every partition has one owner and every member at least one partition. */
export function shared(assigned, partitions) {
  const all = assigned.flat();
  return assigned.every((mine) => mine.length > 0) && all.length === partitions && new Set(all).size === partitions;
}

export function messages(count, first = 0) {
  return Array.from({ length: count }, (_, index) => ({
    partition: (first + index) % PARTITIONS, key: `key-${index}`, value: `value-${index}`, headers: { number: `${index}` },
  }));
}

/** Prints a record as rejoin conform-client reads it, if the settings have "processed=true". */
export function processed(settings, topic, partition, offset) {
  if (settings.processed === "true") console.log(`processed ${topic} ${partition} ${offset}`);
}

/** The settings of NAME=VALUE words. */
export const settingsOf = (pairs) => Object.fromEntries(pairs.map((pair) => pair.split("=", 2)));
