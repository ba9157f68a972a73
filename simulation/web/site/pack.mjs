// Runs pack.py in Pyodide under Node.js: pack.mjs PYODIDE STAGE OUT
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, stage, out] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${folder}/` });
for (const [mount, path] of [["/stage", stage], ["/out", out]]) {
  python.FS.mkdirTree(mount);
  python.mountNodeFS(mount, path);
}
// The worker unpacks an archive before it does anything else, so what that needs is among the modules in use.
python.unpackArchive(new Uint8Array(readFileSync(`${stage}/empty.zip`)), "zip", { extractDir: "/tmp/empty" });
python.runPython(readFileSync(new URL("pack.py", import.meta.url), "utf8"));
