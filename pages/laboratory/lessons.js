// Lessons: a scenario with questions. What comes after a question is hidden until it is answered.

import { make } from "./panel.js";
import { after } from "./searching.js";

const $ = id => document.getElementById(id);
const SWEEP_MS = 2500;

export class Lessons {
  /** `page` has what the lessons do to it: open(scenario), goTo(at), show(from, to), redraw(), recording(), groups(). */
  constructor(chapters, page) {
    this.page = page;
    this.all = chapters.flatMap(each => each.lessons.map(lesson => ({ ...lesson, chapter: each.chapter })));
    this.lesson = null;
    this.step = 0;
    this.isOpen = false;
    this.sweeping = 0;
    this.isPlayed = false;
    this.drawIndex(chapters);
    $("lessons-open").addEventListener("click", () => $("lessons").showModal());
    $("lesson-next").addEventListener("click", () => this.next());
    $("lesson-end").addEventListener("click", () => this.leave());
  }

  drawIndex(chapters) {
    let number = 0;
    $("lessons-index").replaceChildren(...chapters.map(each => {
      const items = each.lessons.map(lesson => {
        const at = number++, button = make("button", "", lesson.title);
        button.type = "button";
        button.addEventListener("click", () => { $("lessons").close(); this.begin(at); });
        return make("li", "", button);
      });
      return make("section", "", make("h3", "", each.chapter), make("ol", "", ...items));
    }));
  }

  /** Open a lesson by its number, with its first question. */
  async begin(number) {
    this.stop();
    this.lesson = this.all[number];
    this.number = number;
    this.step = 0;
    this.isOpen = true;
    this.isPlayed = false;
    $("lesson").hidden = false;
    this.draw("");
    await this.page.open(this.lesson.scenario);
    if (this.lesson !== this.all[number] || !this.page.recording().done) return;
    this.isPlayed = true;
    this.ask();
  }

  /** Put the question of the step, at its instant. */
  ask() {
    const step = this.lesson.steps[this.step], answered = this.answeredAt(step), length = Math.max(500, answered - step.at);
    this.isOpen = true;
    this.page.show(step.at - length * 0.6, answered + length * 0.4);
    this.page.goTo(step.at);
    this.draw("");
  }

  /** The instant of the line that has the answer. */
  answeredAt(step) {
    const { lines } = this.page.recording();
    const found = lines.slice(after(lines, step.at - 1, each => each.at)).find(each => each.text.includes(step.until));
    return found ? found.at : step.at;
  }

  next() {
    if (this.lesson === null || this.sweeping || !this.isPlayed) return;
    if (this.isOpen) this.answer();
    else if (this.step + 1 < this.lesson.steps.length) { this.step += 1; this.ask(); }
    else if (this.number + 1 < this.all.length) this.begin(this.number + 1);
    else this.leave();
  }

  /** Let time go on to the answer. */
  answer() {
    const step = this.lesson.steps[this.step], to = this.answeredAt(step), from = step.at, begun = performance.now();
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const frame = now => {
      const share = isStill ? 1 : Math.min(1, (now - begun) / SWEEP_MS);
      this.page.goTo(from + (to - from) * share);
      this.sweeping = share < 1 ? requestAnimationFrame(frame) : 0;
      if (share < 1) return;
      this.isOpen = false;
      this.draw(step.answer);
    };
    this.sweeping = requestAnimationFrame(frame);
  }

  stop() {
    cancelAnimationFrame(this.sweeping);
    this.sweeping = 0;
  }

  leave() {
    this.stop();
    this.lesson = null;
    this.isOpen = false;
    $("lesson").hidden = true;
    this.veil();
  }

  draw(answer) {
    const { lesson, step } = this, isLast = step + 1 >= lesson.steps.length;
    $("lesson-place").textContent = `${lesson.chapter} · lesson ${this.number + 1} of ${this.all.length} · question ${step + 1} of ${lesson.steps.length}`;
    $("lesson-title").textContent = lesson.title;
    $("lesson-belief").textContent = lesson.belief;
    $("lesson-belief").hidden = !lesson.belief;
    $("lesson-ask").textContent = lesson.steps[step].ask;
    $("lesson-answer").textContent = answer;
    $("lesson-numbers").replaceChildren(...(answer && isLast ? [this.numbers()] : []));
    $("lesson-next").disabled = !this.isPlayed;
    $("lesson-next").textContent = !this.isPlayed ? "The run is being played…" : this.isOpen ? "What happens next?" : !isLast ? "Next question" : this.number + 1 < this.all.length ? "Next lesson" : "The end";
    this.veil();
  }

  /** The lesson's numbers, as the run has counted them, for each group. */
  numbers() {
    const { summary } = this.page.recording(), groups = this.page.groups();
    const table = make("table", "", make("tr", "", make("th", "", "in the whole run"), ...groups.map(each => make("th", "", each))));
    for (const name of this.lesson.numbers) {
      const values = groups.map(group => (summary[group] || []).find(row => row[0] === name));
      table.append(make("tr", "", make("th", "", name), ...values.map(row => make("td", "", row ? row[1] : ""))));
    }
    return table;
  }

  /** Hide what is still to come, or show it. */
  veil() {
    document.body.dataset.veiled = this.isOpen ? "yes" : "no";
    this.page.redraw();
  }
}
