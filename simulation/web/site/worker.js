// The engine in the browser: Python and the laboratory in a worker of their own, asked by messages.
//
// A message is { id, question, args }, the answer { id, answer } with the worker's JSON. `play` is answered by its head
// and then by { id, piece } for each piece; { stop: id } ends it.

const ENGINE = new URL("../engine/", self.location.href).href;
const began = performance.now();
const stopped = new Set();

/** The bytes of a file that is stored packed. */
async function unpacked(name) {
  const response = await fetch(`${ENGINE}${name}.gz`);
  if (!response.ok) throw new Error(`${name}.gz could not be loaded (${response.status})`);
  return new Response(response.body.pipeThrough(new DecompressionStream("gzip")));
}

const plainFetch = self.fetch;
self.fetch = (address, options) => {
  const name = String(address).split("/").pop();
  return name === "pyodide.asm.wasm"
    ? unpacked(name).then(async packed => new Response(await packed.arrayBuffer(), { headers: { "Content-Type": "application/wasm" } }))
    : plainFetch(address, options);
};

/** The module that runs Python; it is stored packed, too. */
async function pythonModule() {
  const text = await (await unpacked("pyodide.asm.mjs")).blob();
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return (await import(address)).default;
}

async function load() {
  const tell = progress => self.postMessage({ progress });
  tell("loading Python…");
  const archive = plainFetch(`${ENGINE}laboratory.zip`).then(response => response.arrayBuffer());
  const [{ loadPyodide }, module] = await Promise.all([import(`${ENGINE}pyodide.mjs`), pythonModule()]);
  const python = await loadPyodide({
    indexURL: ENGINE, createPyodideModule: module,
    env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0" },
  });
  python.unpackArchive(await archive, "zip", { extractDir: "/lib/python3.14/site-packages" });
  const loaded = performance.now();
  tell("importing the laboratory…");
  const make = python.runPython(`
import warnings
warnings.simplefilter("ignore")
from rejoin.simulation.web.worker import LaboratoryWorker
LaboratoryWorker`);
  const worker = make();
  self.postMessage({ times: { load_ms: loaded - began, import_ms: performance.now() - loaded } });
  return worker;
}

const worker = load();
worker.catch(problem => self.postMessage({ broken: problem.message }));

/** Let messages in that came meanwhile. */
const pause = () => new Promise(done => { const { port1, port2 } = new MessageChannel(); port1.onmessage = done; port2.postMessage(0); });

async function play(python, id, args) {
  const head = python.answer("play", args);
  self.postMessage({ id, answer: head });
  const { value } = JSON.parse(head);
  while (value && !stopped.has(id)) {
    await pause();
    const piece = python.answer("nextPiece", JSON.stringify([value.run]));
    self.postMessage({ id, piece });
    if (piece === '{"value":null}') break;
  }
  stopped.delete(id);
}

self.onmessage = async ({ data: { id, question, args, stop } }) => {
  if (stop !== undefined) { stopped.add(stop); return; }
  const python = await worker;
  try {
    if (question === "play") await play(python, id, args);
    else self.postMessage({ id, answer: python.answer(question, args) });
  } catch (problem) {
    console.error(problem);
    const [said] = problem.message.trim().split("\n").slice(-1);
    self.postMessage({ id, answer: JSON.stringify({ problem: `This should not happen: ${said}`, line: null }) });
  }
};
