// The settings of a group as sliders and choices: each move becomes another value in the scenario.

import { breakable, make } from "./panel.js";
import { span } from "./time.js";

const STEPS = 200;
const FIRST = 100;

/** Sliders are logarithmic, with 0 at the very beginning where a setting may be 0. */
function valueAt(position, { least, most }) {
  if (position <= 0) return least;
  if (position >= STEPS) return most;
  const from = Math.max(FIRST, least), exact = from * (most / from) ** (position / STEPS);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(exact)) - 1);
  return Math.min(most, Math.max(least, Math.round(exact / unit) * unit));
}

function positionOf(value, { least, most }) {
  const from = Math.max(FIRST, least);
  if (value <= from) return value <= least ? 0 : 1;
  return Math.round(Math.log(value / from) / Math.log(most / from) * STEPS);
}

/** A length of time as a scenario has it. */
function written(ms, unit) {
  if (unit === "ms") return String(ms);
  for (const [size, name] of [[60000, "m"], [1000, "s"]]) if (ms && ms % size === 0) return `${ms / size}${name}`;
  return `${ms}ms`;
}

function slider(control, change) {
  const input = make("input"), shown = make("output", "", span(control.value));
  Object.assign(input, { type: "range", min: 0, max: STEPS, step: 1, value: positionOf(control.value, control) });
  const wanted = () => (Number(input.value) === positionOf(control.value, control) ? control.value : valueAt(Number(input.value), control));
  const show = () => { shown.textContent = span(wanted()); input.setAttribute("aria-valuetext", span(wanted())); };
  input.addEventListener("input", show);
  input.addEventListener("change", () => { if (wanted() !== control.value) change(control, written(wanted(), control.unit)); });
  show();
  return [input, shown];
}

function choice(control, change) {
  const select = make("select");
  select.append(...control.among.map(name => make("option", "", name)));
  select.value = control.value;
  select.addEventListener("change", () => change(control, select.value));
  return [select];
}

function flag(control, change) {
  const box = make("input");
  Object.assign(box, { type: "checkbox", checked: control.value });
  box.addEventListener("change", () => change(control, String(box.checked)));
  return [box];
}

const KINDS = { duration: slider, choice, flag };

/** Fill an element with the controls of a group. `change` gets a control and its new value as a scenario has it. */
export function drawSettings(element, controls, change) {
  element.replaceChildren(...controls.map(control => {
    const row = make("label", `setting ${control.kind}`, make("span", "", ...breakable(control.label)), ...KINDS[control.kind](control, change));
    row.dataset.key = control.path[control.path.length - 1];
    return row;
  }));
}
