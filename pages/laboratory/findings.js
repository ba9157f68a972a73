// What the rules of reports find in a run, asked for when its end is shown.

import { make } from "./panel.js";

/** Asks once for each run and group. */
export class Findings {
  constructor(ask, onNews) {
    this.ask = ask;
    this.onNews = onNews;
    this.known = new Map();
  }

  /** The findings of a run about a group; none until they have come, or where the rules are not at hand. */
  of(run, group) {
    const key = `${run} ${group}`;
    if (!this.known.has(key)) {
      this.known.set(key, null);
      this.ask(run, group).then(found => { this.known.set(key, found); this.onNews(); }).catch(() => {});
    }
    return this.known.get(key);
  }
}

/** What rules found, under its own heading. */
export function findingsList(found) {
  const list = make("ul", "findings", ...found.map(each => make("li", "", make("span", `chip ${each.severity}`, each.severity), ` ${each.title}`,
    each.advice ? make("p", "soft", `${each.setting ? `${each.setting}: ` : ""}${each.advice}`) : null)));
  return make("div", "", make("h3", "", "What rejoin report finds in this run"), found.length ? list : make("p", "soft", "Nothing that a setting would change."));
}
