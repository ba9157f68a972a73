function legend(box, title, items, most) {
  if (!items.length) return;
  const line = make("div", "legend");
  line.append(make("b", "", title));
  for (const [name, colour, className] of items.slice(0, most)) {
    const item = make("span", className || ""), swatch = make("i");
    if (colour) swatch.style.background = colour;
    item.append(swatch, name); line.append(item);
  }
  if (items.length > most) line.append(make("span", "soft", `and ${items.length - most} more: point at the chart`));
  box.append(line);
}
const charts = new Map();
function show(section) {
  const index = Number(section.dataset.group);
  if (charts.has(index)) return charts.get(index);
  const group = DATA.groups[index], chart = new Chart(section.querySelector(".chart"), group);
  charts.set(index, chart);
  chart.draw();
  paint(section, chart);
  section.querySelector("[data-all]").addEventListener("click", () => chart.all());
  const list = section.querySelector("[data-rebalances]");
  if (list) list.addEventListener("toggle", () => { if (list.open && !list.dataset.done) { list.dataset.done = 1; table(list, chart); } });
  return chart;
}
function paint(section, chart) {
  const group = chart.group, box = section.querySelector("[data-legend]");
  box.replaceChildren();
  const causes = new Map();
  for (const mark of group.rebalances) causes.set(mark[2], (causes.get(mark[2]) || 0) + 1);
  legend(box, "Causes", [...causes].sort((a, b) => b[1] - a[1]).map(([cause, n]) => [`${CAUSES[cause][2]} ${n}`, causeColour(CAUSES[cause][0])]), 12);
  if (group.partitions.length) legend(box, "Owners", [["no owner", "", "unowned"], ...group.short.map((name, n) => [name, ownerColour(n, dark.matches)])], 25);
  else if (group.members.length) legend(box, "Session ended", [["left or replaced", css("--ink")], ["expired or removed", css("--bad")]], 2);
  if (chart.stopped.length) legend(box, "Stopped", [["owned nothing", css("--bad")], ["kept some", causeColour("static-protocol")]], 2);
}
const CHUNK = 200;
function table(box, chart) {
  const { group } = chart, wide = make("div", "wide"), made = make("table"), body = make("tbody"), head = make("tr");
  for (const [name, number] of [["began", 0], ["cause", 0], ["through", 0], ["outcome", 0], ["took", 1], ["moved", 1], ["taken over", 1], ["stopped", 1]]) head.append(make("th", number ? "n" : "", name));
  const thead = make("thead"); thead.append(head); made.append(thead, body); wide.append(made); box.append(wide);
  let shown = 0; const more = make("button");
  const add = () => {
    for (const mark of group.rebalances.slice(shown, shown + CHUNK)) {
      const row = make("tr"), [from, to, cause, who, outcome, moved, regained, stopped, , reason, , inferred] = mark;
      const link = make("button", "", clock(from, group.simulated, true, true));
      link.addEventListener("click", () => { const room = Math.max(2000, (to - from) * 3); chart.zoom(from - room, to + room); chart.canvas.scrollIntoView({ block: "center" }); });
      const first = make("td"); first.append(link);
      if (inferred) first.append(make("span", "soft", " inferred"));
      row.append(first, make("td", "", CAUSES[cause][1] + (reason >= 0 ? `: ${group.reasons[reason]}` : "")), make("td", "", who < 0 ? "" : group.names[who]),
        make("td", "", outcome === "completed" ? generationOf(mark) : outcome), make("td", "n", chart.length(to - from)),
        make("td", "n", moved ?? ""), make("td", "n", regained ?? ""), make("td", "n", stopped === null ? "" : chart.length(stopped)));
      body.append(row);
    }
    shown = Math.min(shown + CHUNK, group.rebalances.length);
    more.textContent = `${Math.min(CHUNK, group.rebalances.length - shown)} more of ${group.rebalances.length}`;
    more.hidden = shown >= group.rebalances.length;
  };
  more.addEventListener("click", add); add(); box.append(more);
}
const sections = [...document.querySelectorAll("[data-group]")];
const watch = new IntersectionObserver(entries => { for (const entry of entries) if (entry.isIntersecting) { watch.unobserve(entry.target); show(entry.target); } }, { rootMargin: "300px" });
for (const section of sections) watch.observe(section);
for (const button of document.querySelectorAll("[data-show]")) button.addEventListener("click", () => {
  const section = sections.find(each => each.dataset.group === button.dataset.show), chart = show(section);
  const from = Number(button.dataset.from), to = Number(button.dataset.to), room = Math.max(3000, (to - from) * .15);
  chart.zoom(from - room, to + room);
  section.querySelector(".chart").scrollIntoView({ block: "start" });
});
addEventListener("resize", () => { for (const chart of charts.values()) chart.draw(); });
dark.addEventListener("change", () => { for (const section of sections) { const chart = charts.get(Number(section.dataset.group)); if (chart) { chart.draw(); paint(section, chart); } } });
// All are drawn soon, one at a time, so that a page that is saved or photographed in one piece has them.
const rest = [...sections];
const next = () => { if (rest.length) { show(rest.shift()); setTimeout(next); } };
setTimeout(next);
let opened = [];
addEventListener("beforeprint", () => {
  sections.forEach(show);
  opened = [...document.querySelectorAll("details.finding:not([open])")];
  for (const each of opened) each.open = true;
});
addEventListener("afterprint", () => { for (const each of opened) each.open = false; });
document.documentElement.dataset.ready = Math.round(performance.now());
