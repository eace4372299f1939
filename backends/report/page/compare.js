// Two graphs beside each other: what an option, another version or a change of the model made of one.

const compare = { chosen: null };

function compareTab() {
  compare.place = make("div", { cls: "page" });
  compare.place.addEventListener("dragover", (event) => event.preventDefault());
  compare.place.addEventListener("drop", (event) => { event.preventDefault(); loadOther(event.dataTransfer.files[0]); });
  drawCompare();
  return compare.place;
}

async function loadOther(file) {
  if (!file) return;
  const blocks = blocksOf(new DOMParser().parseFromString(await file.text(), "text/html"), "block");
  if (!blocks.length) { compare.place.append(make("p", { cls: "error" }, `${file.name} is no page of a graph.`)); return; }
  other = new Graph(blocks);
  compare.chosen = null;
  drawCompare();
}

function drawCompare() {
  const choose = make("input", { type: "file", accept: ".html", id: "other", onchange: (event) => loadOther(event.target.files[0]) });
  const picker = make("p", {}, make("label", { for: "other" }, other ? "Another page: " : "Page to compare with (index.html of another trace; dropping it here works too): "), choose);
  if (!other) {
    compare.place.replaceChildren(panel("Compare", picker, make("p", { cls: "faint" }, "`inductile-report BEFORE AFTER -o page.html` makes one page of two traces.")));
    return;
  }
  compare.stages = make("div", { cls: "comparing" });
  compare.place.replaceChildren(panel(make("span", {}, "before: ", make("b", {}, data.title), " · after: ", make("b", {}, other.title)), factsTable(), figuresTable(), picker),
    panel("Kernels and calls", make("div", { cls: "scroll" }, kernelsTable())), panel("Stages", compare.stages));
  drawStagesOf();
}

function factsTable() {
  const names = [...new Set([...Object.keys(data.facts), ...Object.keys(other.facts)])];
  const rows = names.filter((name) => data.facts[name] !== other.facts[name]);
  if (!rows.length) return faint("The same options and versions.");
  return make("table", { cls: "plain" }, make("tr", {}, ...["", "before", "after"].map((t) => make("th", {}, t))),
    ...rows.map((name) => make("tr", { cls: "row" }, make("td", {}, name), make("td", {}, data.facts[name] ?? "–"), make("td", {}, other.facts[name] ?? "–"))));
}

const change = (before, after) => {
  if (before === after) return faint("=");
  const text = before ? `${after > before ? "+" : "−"}${Math.abs(100 * (after / before - 1)).toFixed(after / before > 10 ? 0 : 1)} %` : "new";
  return make("span", { cls: after > before ? "worse" : "better" }, text);
};

function figuresTable() {
  const [before, after] = [figuresOf(data), figuresOf(other)];
  return make("table", { id: "compare-figures" }, make("tr", {}, ...["", "before", "after", "change"].map((title) => make("th", {}, title))),
    ...Object.keys(before).map((name) => make("tr", { cls: "row" }, make("td", {}, name), make("td", {}, figure(name, before[name])), make("td", {}, figure(name, after[name])), make("td", {}, change(before[name], after[name])))));
}

// Kernels with the same text are one, then those with the same name.
function paired(before, after) {
  const rest = new Set(after), found = [];
  const text = (row) => (row.ir === undefined ? `${row.name} ${row.read} ${row.written} ${row.operations}` : plain(row.ir).replace(/@[\w.]+/, ""));
  const take = (fits) => { for (const each of rest) if (fits(each)) { rest.delete(each); return each; } return null; };
  const exact = before.map((row) => take((each) => text(each) === text(row)));
  before.forEach((row, k) => found.push([row, exact[k] || take((each) => each.name === row.name), exact[k] !== null]));
  return [...found, ...[...rest].map((each) => [null, each, false])];
}

function kernelsTable() {
  const rows = paired([...data.kernels, ...data.calls], [...other.kernels, ...other.calls]);
  const state = ([before, after, same]) => (!before ? "only after" : !after ? "only before" : same ? "same" : "changed");
  const order = ["changed", "only before", "only after", "same"];
  rows.sort((p, q) => order.indexOf(state(p)) - order.indexOf(state(q)));
  const both = (p, q, text) => make("td", {}, p && q && text(p) === text(q) ? text(p) : `${p ? text(p) : "–"} → ${q ? text(q) : "–"}`);
  const moved = (row) => amount(row.read + row.written, "B");
  return make("table", { id: "compare-kernels" }, make("tr", {}, ...["kernel or call", "state", "times", "moved", "operations", "at least, in all", "change"].map((title) => make("th", {}, title))),
    ...rows.map((row) => {
      const [before, after] = row, name = before && after && before.name !== after.name ? `${before.name} → ${after.name}` : (before || after).name;
      const total = (each) => (each ? each.seconds * each.times : 0);
      return make("tr", { cls: `row ${state(row).replace(" ", "-")}` }, make("td", {}, make("code", {}, name)), make("td", {}, state(row)), both(before, after, (each) => String(each.times)), both(before, after, moved),
        both(before, after, (each) => amount(each.operations, "")), both(before, after, (each) => seconds(total(each))), make("td", {}, change(total(before), total(after))));
    }));
}

// Passes of both in one order.
function alignedStages() {
  const number = new Map(), key = (column) => { if (!number.has(column.name)) number.set(column.name, number.size); return number.get(column.name); };
  return difference(data.columns.map(key), other.columns.map(key)).map(([kind, i, j]) =>
    (kind === "=" ? [data.columns[i], other.columns[j]] : kind === "-" ? [data.columns[i], null] : [null, other.columns[i]]));
}

function differs([before, after]) {
  return Boolean(before && after) && changesBetween(data, before, other, after).some(([kind]) => kind !== "=");
}

function drawStagesOf() {
  const rows = alignedStages(), unlike = rows.map(differs);
  const changed = (row) => !row[0] || !row[1] || !row[0].same || !row[1].same;
  if (compare.chosen === null) compare.chosen = Math.max(0, unlike.lastIndexOf(true));
  const options = rows.map((row, k) => {
    const [before, after] = row, name = (before || after).name;
    const told = !before ? "only after" : !after ? "only before" : unlike[k] ? "differs" : "same";
    return changed(row) || k === compare.chosen ? make("option", { value: String(k), selected: k === compare.chosen, disabled: !before || !after }, `${String((before || after).number).padStart(2, "0")} ${name}: ${told}`) : null;
  });
  const first = unlike.indexOf(true);
  const select = make("select", { "aria-label": "stage", onchange: (event) => { compare.chosen = Number(event.target.value); drawStagesOf(); } }, ...options);
  const jump = button("first that differs", () => { compare.chosen = first; drawStagesOf(); }, { disabled: first < 0 });
  const [before, after] = rows[compare.chosen] || [];
  const tools = make("div", { cls: "tools" }, select, jump);
  if (!before || !after) { compare.stages.replaceChildren(tools); return; }
  const shown = beside(data, before, other, after, [`before: ${data.title}`, `after: ${other.title}`]);
  const counts = countsOf(shown.changes);
  tools.append(make("span", {}, make("span", { cls: "plus" }, `+${counts["+"]}`), " ", make("span", { cls: "minus" }, `−${counts["-"]}`)));
  compare.stages.replaceChildren(tools, shown.element);
  shown.show();
  if (shown.starts.length) for (const pane of shown.panes) pane.reveal(shown.starts[0]);
}
