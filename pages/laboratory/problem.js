// The problem that is shown, if any.

import { markLine } from "./panel.js";

const $ = id => document.getElementById(id);
let saidBy = "";

/** Show a problem, until what it is `by` succeeds. `where`: the line of the scenario. */
export function say(problem, where = null, by = "play") {
  saidBy = by;
  $("problem").textContent = problem;
  $("problem").hidden = !problem;
  if (where) markLine($("yaml"), where);
}

export function unsay(by) { if (saidBy === by) say("", null, by); }
