// The engine behind the page, in a worker of the browser; the names are those of the source that asks a server.

const worker = new Worker("assets/worker.js", { type: "module" });
const waiting = new Map();
let last = 0;

/** Milliseconds: until Python was loaded, to import the laboratory, and to the first piece of a run. */
export const times = {};

worker.onmessage = ({ data }) => {
  if (data.progress) document.getElementById("status").textContent = data.progress;
  else if (data.times) Object.assign(times, data.times, { imported: performance.now() });
  else if (data.broken) for (const { fail } of waiting.values()) fail(new Error(`Python could not be started: ${data.broken}`));
  else waiting.get(data.id)?.take(data);
};

function read(json) {
  const answer = JSON.parse(json);
  if ("value" in answer) return answer.value;
  const error = new Error(answer.problem);
  error.line = answer.line;
  throw error;
}

function ask(question, ...args) {
  const id = ++last;
  return new Promise((done, fail) => {
    const take = data => {
      waiting.delete(id);
      try { done(read(data.answer)); } catch (problem) { fail(problem); }
    };
    waiting.set(id, { take, fail });
    worker.postMessage({ id, question, args: JSON.stringify(args) });
  });
}

export const start = () => ask("start");
export const gallery = () => ask("gallery");
export const lessons = () => ask("lessons");
export const galleryText = name => ask("galleryText", name);
export const stateAt = (run, at) => ask("stateAt", run, Math.round(at));
export const lag = (run, group, from, to, points) => ask("lag", run, group, from, to, points);
export const withValue = (text, path, value) => ask("withValue", text, path, value);
export const withEvent = (text, at, action) => ask("withEvent", text, Math.round(at), action);
/** The rules of reports need libraries that a browser does not have. */
export const findings = async () => null;
export const exported = (run, kind, group) => ask("exported", run, kind, group);

/** Play a scenario. `onHead` gets what the run is, `onPiece` each piece of it. */
export function play(text, seed, onHead, onPiece, signal) {
  const id = ++last;
  return new Promise((done, fail) => {
    const end = (finish, value) => { waiting.delete(id); finish(value); };
    const take = data => {
      try {
        if (data.answer) { onHead(read(data.answer)); return; }
        const piece = read(data.piece);
        if (piece === null) { end(done); return; }
        onPiece(piece);
        times.first_piece_ms ??= performance.now() - times.imported;
      } catch (problem) { end(fail, problem); }
    };
    waiting.set(id, { take, fail });
    signal?.addEventListener("abort", () => {
      worker.postMessage({ stop: id });
      end(fail, new DOMException("stopped", "AbortError"));
    });
    worker.postMessage({ id, question: "play", args: JSON.stringify([text, seed]) });
  });
}
