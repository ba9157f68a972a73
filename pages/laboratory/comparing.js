// Comparing: the run that is shown is kept below the next one.

import { drawKept } from "./kept.js";
import { page } from "./page.js";
import { describe, showWhole } from "./playing.js";
import { redraw } from "./stage.js";

/** Keep the run that is shown; others are compared with it. */
export function keep() {
  page.kept = page.run;
  drawKept();
  redraw();
}

/** Show the run that was kept, and keep the one that was shown. */
export function swap() {
  [page.run, page.kept] = [page.kept, page.run];
  page.run.forgetDrawn();
  page.run.recording.done = true;
  describe(false);
  showWhole();
}

export function drop() {
  page.kept = null;
  drawKept();
}
