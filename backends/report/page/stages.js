// The IR behind each pass: a list of passes, and one stage beside or over the one before.

const stages = { number: 0, mode: "changes", all: false, open: new Set(), rows: null, starts: [], rowOfLine: new Map() };
const CONTEXT = 3, FEW = 8;

function stagesTab() {
  stages.list = make("nav", { cls: "list", "aria-label": "passes" });
  stages.view = make("div", { cls: "stage" });
  const last = data.columns.findLastIndex((column) => !column.same);
  stages.number = Math.max(0, Math.min(last, data.columns.findIndex((column) => column.name.startsWith("lower-"))));
  drawList();
  drawStage();
  whenIdle(() => drawCounts());
  return make("div", { cls: "stages" }, stages.list, stages.view);
}

const whenIdle = (work) => (window.requestIdleCallback ? requestIdleCallback(work, { timeout: 500 }) : setTimeout(work, 20));

// How many lines each pass changed; a few passes at a time, so that the page answers.
function drawCounts(from = 1) {
  const end = performance.now() + 12;
  let number = from;
  for (; number < data.columns.length && performance.now() < end; number++) {
    const column = data.columns[number], place = document.getElementById(`count-${number}`);
    if (!place || column.same) continue;
    const counts = countsOf(changesBetween(data, data.columns[number - 1], data, column));
    place.replaceChildren(make("span", { cls: "plus" }, `+${counts["+"]}`), " ", make("span", { cls: "minus" }, `−${counts["-"]}`));
  }
  if (number < data.columns.length) whenIdle(() => drawCounts(number));
  else document.body.dataset.counted = "true";
}

function drawList() {
  const slowest = most(data.columns.map((c) => c.seconds + c.verify), 1e-9), idle = data.columns.filter((column) => column.same).length;
  const rows = [];
  let level = null;
  for (const column of data.columns) {
    if (column.same && !stages.all && column.number !== stages.number) continue;
    const own = column.number ? column.level || "other" : "";
    if (own !== level) { if (own) rows.push(make("div", { cls: "level" }, own)); level = own; }
    rows.push(stageLink(column, slowest));
  }
  const toggle = button(stages.all ? "leave out passes that changed nothing" : `show ${plural(idle, "pass").replace("passs", "passes")} that changed nothing`,
    () => { stages.all = !stages.all; drawList(); drawCounts(); }, { cls: "quiet", "aria-pressed": String(stages.all) });
  stages.list.replaceChildren(...rows, idle ? toggle : "");
}

function stageLink(column, slowest) {
  const time = column.seconds + column.verify;
  const attributes = { cls: `entry${column.same ? " same" : ""}`, id: `pass-${column.number}`, title: column.doc || column.spec || "", "aria-current": column.number === stages.number ? "true" : null };
  return link(`stages/${column.number}`, attributes,
    make("span", { cls: "number" }, String(column.number).padStart(2, "0")), make("span", { cls: "name" }, column.name),
    make("span", { cls: "time" }, column.number ? seconds(column.seconds) : ""),
    make("span", { cls: "count" }, make("span", { id: `count-${column.number}` }), column.remarks.length ? ` ${plural(column.remarks.length, "remark")}` : ""),
    column.number ? bar(time / slowest, column.verify / (time || 1)) : null);
}

function openStage(number, line = null) {
  if (!data.columns[number]) return;
  const old = stages.number;
  stages.number = number;
  stages.open.clear();
  if (data.columns[number].same || data.columns[old]?.same) { drawList(); drawCounts(); }
  for (const entry of stages.list.querySelectorAll(".entry"))
    entry.toggleAttribute("aria-current", entry.id === `pass-${number}`);
  stages.list.querySelector(`#pass-${number}`)?.scrollIntoView({ block: "nearest" });
  drawStage(line);
}

function drawStage(line = null) {
  const column = data.columns[stages.number];
  if (!column) { stages.view.replaceChildren(make("p", { cls: "faint" }, "No pass ran.")); return; }
  const gone = column.remarks.filter((remark) => remark.line === null);
  const before = data.columns[column.number - 1];
  const body = make("div", { cls: "text" });
  stages.view.replaceChildren(stageHead(column), gone.length ? make("details", { cls: "gone", open: gone.length <= 4 },
    make("summary", {}, `${plural(gone.length, "remark")} on ops that are no longer there`), ...gone.map((remark) => remarkRow(remark, true))) : "", body);
  if (stages.mode === "beside" && before) {
    const { element, panes, starts, rows, show } = beside(data, before, data, column);
    body.append(element);
    show();
    stages.rows = panes[1];
    stages.starts = starts;
    stages.rowOfLine = new Map(rows.map(([, j], k) => [j, k]));
  } else {
    stages.rows = new Rows();
    body.append(stages.rows.element);
    drawRows(column, before, line);
  }
  stages.rows.element.addEventListener("click", pick);
  if (line !== null) showLine(line);
  else if (stages.mode !== "whole" && stages.starts.length) stages.rows.reveal(stages.starts[0]);
}

function drawRows(column, before, wanted) {
  const items = [], beside = groupBy(column.remarks.filter((remark) => remark.line !== null), (remark) => remark.line);
  const changes = before && !column.same ? changesBetween(data, before, data, column) : column.lines.map((_, k) => ["=", k, k]);
  const folds = stages.mode === "changes" && before && !column.same ? foldsOf(changes, beside, wanted) : [];
  stages.starts = [];
  stages.rowOfLine = new Map();
  let fold = 0;
  for (let k = 0; k < changes.length; k++) {
    if (fold < folds.length && folds[fold][0] === k) {
      const [from, to] = folds[fold++];
      items.push({ kind: "fold", from, count: to - from, length: 40 });
      k = to - 1;
      continue;
    }
    const [kind, i, j] = changes[k], line = kind === "=" ? j : i;
    if (kind !== "=" && (k === 0 || changes[k - 1][0] === "=")) stages.starts.push(items.length);
    if (kind === "-") { items.push({ ...lineItem(data, before, i, "removed"), number: "" }); continue; }
    stages.rowOfLine.set(line, items.length);
    items.push(lineItem(data, column, line, kind === "+" ? "added" : ""));
    for (const remark of beside.get(line) || []) items.push({ kind: "remark", remark, length: remarkText(remark).length + 10 });
  }
  stages.rows.show(items, (item) => {
    if (item.kind === "remark") return remarkRow(item.remark);
    if (item.kind === "fold") return button(`⋯ ${item.count} lines that stay`, () => { stages.open.add(item.from); drawRows(column, before, wanted); }, { cls: "fold" });
    return lineRow(data, item);
  });
}

// Stretches of equal lines far from every change and remark: [first, behind the last] positions among the changes.
function foldsOf(changes, remarks, wanted) {
  const near = new Uint8Array(changes.length);
  changes.forEach(([kind, , j], k) => {
    if (kind !== "=" || remarks.has(j) || j === wanted)
      near.fill(1, Math.max(0, k - CONTEXT), k + CONTEXT + 1);
  });
  const folds = [];
  for (let k = 0; k < changes.length; k++) {
    if (near[k]) continue;
    let end = k;
    while (end < changes.length && !near[end]) end++;
    if (end - k >= FEW && !stages.open.has(k)) folds.push([k, end]);
    k = end;
  }
  return folds;
}

function stageHead(column) {
  const before = data.columns[column.number - 1];
  const counts = before ? countsOf(changesBetween(data, before, data, column)) : null;
  const modes = [["changes", "Changes"], ["whole", "Whole text"], ["beside", "Side by side"]].map(([mode, label]) =>
    button(label, () => { stages.mode = mode; drawStage(); }, { "aria-pressed": String(stages.mode === mode), disabled: !before && mode !== "whole" }));
  const step = (label, by, title) => button(label, () => stepChange(by), { title, "aria-label": title, disabled: !before || column.same });
  return make("div", { cls: "head" },
    make("div", { cls: "title" }, make("h2", {}, column.number ? `${column.number} ${column.name}` : column.name), faint(column.doc || "")),
    make("div", { cls: "tools" }, make("span", { cls: "group" }, ...modes), make("span", { cls: "group" }, step("↑", -1, "previous change (p)"), step("↓", 1, "next change (n)")),
      counts ? make("span", {}, make("span", { cls: "plus" }, `+${counts["+"]}`), " ", make("span", { cls: "minus" }, `−${counts["-"]}`)) : null,
      faint(`${column.lines.length} lines`), column.number ? faint(seconds(column.seconds), column.verify ? `, verifier ${seconds(column.verify)}` : "") : null));
}

function stepChange(by) {
  const top = Math.round((stages.rows.element.scrollTop + stages.rows.element.clientHeight / 3) / ROW);
  const next = by > 0 ? stages.starts.find((start) => start > top) : stages.starts.findLast((start) => start < top);
  if (next !== undefined) stages.rows.reveal(next);
}

function stepStage(by) {
  let number = stages.number + by;
  while (data.columns[number]?.same && !stages.all) number += by;
  if (data.columns[number]) go(`stages/${number}`);
}

function showLine(line) {
  const row = stages.rowOfLine.get(line);
  if (row === undefined) return;
  stages.rows.items[row] = { ...stages.rows.items[row], cls: `${stages.rows.items[row].cls} hit` };
  stages.rows.reveal(row);
  stages.rows.refresh();
}

function pick(event) {
  if (!event.target.classList.contains("va")) return;
  picked = picked === event.target.textContent ? "" : event.target.textContent;
  stages.rows.refresh();
}
