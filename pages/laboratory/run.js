// One run: its scenario, what the page has of it so far, and which instant of it is drawn.

import { Recording } from "./recording.js";
import { clock } from "./time.js";

export class Run {
  /** `begin`: the instant to show first, or null for one that the run chooses. A run without a scenario is empty. */
  constructor(scenario = null, text = "", begin = null) {
    Object.assign(this, { scenario, text, begin });
    this.seed = scenario?.seed ?? "";
    this.id = scenario?.run ?? null;
    this.recording = new Recording();
    this.reached = false;
    this.following = false;
    this.forgetDrawn();
  }

  /** `shown` is the state that is drawn, `line` the index of the newest event in the list; null before they are drawn. */
  forgetDrawn() { Object.assign(this, { shown: null, line: null }); }

  get isRecorded() { return !!this.scenario && !!this.scenario.recorded; }

  get isBeingPlayed() { return !!this.scenario && !this.isRecorded && !this.recording.done; }

  /** The start of the first rebalance, or 0. */
  get firstRebalance() { return (this.recording.rebalances[0] || { start: 0 }).start; }

  /** The instant to show first, or null while that is not known: `begin`, the first action, the first rebalance. */
  get firstInstant() {
    if (this.begin !== null) return this.begin;
    const action = this.recording.lines.find(each => each.kind === "ScenarioAction");
    return action ? action.at : this.recording.done ? this.firstRebalance : null;
  }

  /** What the header says while the run is played: how far it is, and which instant is shown next. */
  get progress() {
    const next = this.following ? ", then the end is shown" : this.begin !== null && !this.reached ? `, then ${clock(this.begin)} is shown` : "";
    return `playing… ${clock(this.recording.until)}${next}`;
  }
}
