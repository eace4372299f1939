"use strict";
// The page of one graph: reads the blocks of data that stand below, the last of which may be cut off by a crash.

const make = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "g", "rect", "text", "path", "line", "circle", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(name === "cls" ? "class" : name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

const seconds = (value) =>
  value >= 1 ? `${value.toFixed(2)} s` : value >= 1e-3 ? `${(value * 1e3).toFixed(1)} ms` : `${(value * 1e6).toFixed(0)} µs`;
const amount = (value, unit) => {
  for (const [factor, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (value >= factor) return `${(value / factor).toPrecision(3)} ${prefix}${unit}`;
  return `${value} ${unit}`;
};
const hue = (name) => {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 3600;
  return `hsl(${(hash * 0.61803 * 360) % 360 | 0}, 70%, 86%)`;
};
const base = (path) => path.split("/").pop();

// ---------------------------------------------------------------------------------------------------------- the data

const data = { title: "", columns: [], graphs: [], program: null, error: null, files: new Map() };

function read() {
  for (const element of document.querySelectorAll("script.block")) {
    let block;
    try { block = JSON.parse(element.textContent); } catch { continue; }
    if (block.block === "title") data.title = block.title;
    else if (block.block === "input" || block.block === "pass") data.columns.push({ ...block, verify: 0 });
    else if (block.block === "verify") data.columns.at(-1).verify = block.seconds;
    else if (block.block === "graph") data.graphs.push(block);
    else if (block.block === "program") data.program = block;
    else if (block.block === "error") data.error = block;
    else if (block.block === "source") for (const file of block.files) addSource(file);
  }
  data.columns.forEach((column, number) => {
    column.number = number;
    column.changes = number ? difference(data.columns[number - 1].lines, column.lines) : null;
    column.same = number > 0 && column.changes.every((change) => change[0] === "=");
    column.places = new Map();
    for (const [line, file, at] of column.at) if (!column.places.has(line)) column.places.set(line, [file, at]);
  });
}

function addSource({ file, name, lines }) {
  if (!data.files.has(file)) data.files.set(file, { name, lines: new Map() });
  for (const [number, text] of lines) data.files.get(file).lines.set(number, text);
}

// Lines are equal when they differ only in the numbers of values, which shift whenever an op comes or goes.
const plain = (line) => line.replace(/%(?:\d+|([A-Za-z_][\w.]*?)(?:_\d+)?)(?![\w.])/g, "%$1");

// Myers' greedy algorithm: the shortest list of ["=", i, j], ["-", i], ["+", j]; beyond `most` edits all is changed.
function difference(before, after, most = 1000) {
  const a = before.map(plain), b = after.map(plain);
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const n = a.length - head - tail, m = b.length - head - tail;
  const middle = edits(a.slice(head, head + n), b.slice(head, head + m), most);
  const same = (count, i, j) => Array.from({ length: count }, (_, k) => ["=", i + k, j + k]);
  const shifted = middle.map(([kind, i, j]) => (kind === "=" ? [kind, i + head, j + head] : [kind, i + head]));
  return [...same(head, 0, 0), ...shifted, ...same(tail, head + n, head + m)];
}

function edits(a, b, most) {
  const n = a.length, m = b.length, limit = Math.min(n + m, most), zero = limit + 1, trace = [];
  const front = new Int32Array(2 * limit + 3);
  for (let d = 0; d <= limit; d++) {
    trace.push(front.slice(zero - d - 1, zero + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && front[zero + k - 1] < front[zero + k + 1]);
      let x = down ? front[zero + k + 1] : front[zero + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      front[zero + k] = x;
      if (x >= n && x - k >= m) return walkBack(trace, n, m, d);
    }
  }
  return [...a.map((_, i) => ["-", i]), ...b.map((_, j) => ["+", j])];
}

function walkBack(trace, n, m, d) {
  const result = [];
  let x = n, y = m;
  for (; d >= 0; d--) {
    const front = (k) => trace[d][k + d + 1], k = x - y;
    const down = k === -d || (k !== d && front(k - 1) < front(k + 1));
    const from = down ? k + 1 : k - 1, startX = d ? front(from) + (down ? 0 : 1) : 0;
    while (x > startX) { x--; y--; result.push(["=", x, y]); }
    if (d && down) result.push(["+", --y]);
    else if (d) result.push(["-", --x]);
  }
  return result.reverse();
}

// ----------------------------------------------------------------------------------------------------------- passes

const WORDS = /(%[\w.]+)|(![\w.]+<[^>]*>|\b(?:bf16|f16|f32|f64|i1|i8|i16|i32|i64|index)\b)|\b((?:loop|kernel|host|aten|arith|math|scalar|func|sym|builtin)\.[\w.]+)|(-?\b\d[\d.e+-]*\b)/g;

function coloured(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(WORDS)) {
    parts.push(text.slice(end, match.index));
    const cls = match[1] ? "va" : match[2] ? "ty" : match[3] ? "kw" : "nu";
    parts.push(make("span", { cls }, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

// Columns of small graphs are filled at once, so that the browser's search finds all; those of large ones when seen.
const FEW_LINES = 5000;

function passes() {
  const changed = data.columns.filter((column) => !column.same);
  const small = changed.reduce((sum, column) => sum + column.lines.length, 0) <= FEW_LINES;
  const slowest = Math.max(...data.columns.map((c) => c.seconds + c.verify), 1e-9);
  const list = make("div", { cls: "list" });
  const columns = make("div", { cls: "columns" });
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) fill(entry.target.column, entry.target);
  }, { root: columns, rootMargin: "800px" });
  for (const column of data.columns) {
    const element = make("div", { cls: `column${column.same ? " same" : ""}`, id: `pass-${column.number}` });
    element.column = column;
    element.append(head(column));
    if (column.same) element.addEventListener("click", () => { element.classList.remove("same"); fill(column, element); });
    else if (small) fill(column, element);
    else watcher.observe(element);
    columns.append(element);
    list.append(rowOf(column, slowest, () => {
      element.classList.remove("same");
      fill(column, element);
      element.scrollIntoView({ behavior: "smooth", inline: "start" });
    }));
  }
  return make("section", { id: "tab-passes" }, list, columns);
}

function rowOf(column, slowest, onclick) {
  const time = column.seconds + column.verify;
  const check = make("div", { cls: "check", style: `width:${time ? (100 * column.verify) / time : 0}%` });
  const told = column.remarks.length ? make("span", { cls: "count" }, ` ${column.remarks.length} remark${column.remarks.length > 1 ? "s" : ""}`) : null;
  return make("div", { cls: `row${column.same ? " same" : ""}`, onclick, title: column.spec || "" },
    make("span", { cls: "number" }, String(column.number).padStart(2, "0")),
    make("span", { cls: "name" }, column.name, told),
    make("span", { cls: "time" }, column.number ? seconds(column.seconds) : ""),
    make("div", { cls: "bar", style: `width:${Math.max(0.5, (100 * time) / slowest)}%` }, check));
}

function head(column) {
  const counts = (column.changes || []).reduce((sum, [kind]) => ({ ...sum, [kind]: (sum[kind] || 0) + 1 }), {});
  const change = column.number ? `+${counts["+"] || 0} -${counts["-"] || 0} lines, ` : "";
  const small = `${change}${column.lines.length} in all${column.doc ? `. ${column.doc}` : ""}`;
  return make("div", { cls: "head", title: column.spec || "" }, `${column.number} ${column.name}`, make("small", {}, small));
}

function fill(column, element) {
  if (element.querySelector(".text")) return;
  const gone = column.remarks.filter((remark) => remark.line === null);
  if (gone.length) element.append(make("div", { cls: "gone" }, ...gone.map((remark) => remarkOf(remark, true))));
  const text = make("div", { cls: "text" });
  const beside = new Map();
  for (const remark of column.remarks)
    if (remark.line !== null) beside.set(remark.line, [...(beside.get(remark.line) || []), remark]);
  const previous = column.number ? data.columns[column.number - 1].lines : [];
  const changes = column.changes || column.lines.map((_, line) => ["=", line, line]);
  for (const [kind, i, j] of changes) {
    if (kind === "-") { text.append(lineOf(previous[i], "", "removed", null)); continue; }
    const line = kind === "=" ? j : i;
    text.append(lineOf(column.lines[line], line + 1, kind === "+" ? "added" : "", column.places.get(line)));
    for (const remark of beside.get(line) || []) text.append(remarkOf(remark, false));
  }
  element.append(text);
}

function lineOf(text, number, cls, place) {
  const link = place ? make("a", { cls: "at", onclick: () => showSource(place) }, placeName(place)) : null;
  const attributes = { cls: `l ${cls}`, "data-at": place ? place.join(":") : null };
  return make("div", attributes, make("span", { cls: "n" }, String(number)), ...coloured(text), link);
}

function remarkOf(remark, withPlace) {
  const figures = Object.entries(remark.figures).map(([name, value]) => `${name} ${value}`).join(", ");
  const hint = remark.suggestion ? ` (${remark.suggestion})` : "";
  const where = withPlace && remark.location ? ` at ${base(remark.location)}` : "";
  const what = withPlace ? ` ${remark.op}:` : "";
  return make("div", { cls: `remark ${remark.kind}` }, make("b", {}, `${remark.kind}:`),
    `${what} ${remark.reason}${hint}${figures ? `; ${figures}` : ""}${where}`);
}

const placeName = ([file, line]) => `${base(data.files.get(file)?.name || "?")}:${line}`;

// ------------------------------------------------------------------------------------------------------------ graph

function kernelsAt(places) {
  const wanted = new Set(places.map((place) => place.join(":")));
  return (data.program?.kernels || []).filter((kernel) => kernel.at.some((place) => wanted.has(place.join(":"))));
}

// Layers by the longest path from the inputs; within a layer nodes stand below the middle of what they read.
function layout(nodes) {
  const depth = nodes.map(() => 0);
  nodes.forEach((node, k) => { depth[k] = Math.max(0, ...node.inputs.map((i) => depth[i] + 1)); });
  const firstUse = nodes.map(() => Infinity);
  nodes.forEach((node, k) => node.inputs.forEach((i) => { firstUse[i] = Math.min(firstUse[i], depth[k]); }));
  nodes.forEach((node, k) => { if (node.kind === "argument" && firstUse[k] < Infinity) depth[k] = firstUse[k] - 1; });
  const layers = [];
  nodes.forEach((_, k) => (layers[depth[k]] ||= []).push(k));
  const middle = nodes.map(() => 0), width = nodes.map((node) => 18 + 7 * Math.max(node.label.length, node.type.length * 0.9));
  for (const layer of layers.filter(Boolean)) {
    const wish = (k) => { const i = nodes[k].inputs; return i.length ? i.reduce((s, n) => s + middle[n], 0) / i.length : 0; };
    layer.sort((p, q) => wish(p) - wish(q));
    const total = layer.reduce((sum, k) => sum + width[k] + 16, -16);
    let x = layer.reduce((sum, k) => sum + wish(k), 0) / layer.length - total / 2;
    for (const k of layer) { middle[k] = x + width[k] / 2; x += width[k] + 16; }
  }
  const left = Math.min(...middle.map((x, k) => x - width[k] / 2)) - 10;
  return nodes.map((_, k) => ({ x: middle[k] - left, y: 24 + 74 * depth[k], width: width[k] }));
}

function picture({ name, nodes }, level) {
  if (!nodes.length) return make("div", {}, "nothing to draw");
  const boxes = layout(nodes);
  const right = Math.max(...boxes.map((b) => b.x + b.width / 2)) + 10, bottom = Math.max(...boxes.map((b) => b.y)) + 60;
  const svg = make("svg", { width: right, height: bottom, viewBox: `0 0 ${right} ${bottom}` });
  nodes.forEach((node, k) => node.inputs.forEach((i) => {
    const from = boxes[i], to = boxes[k], bend = Math.max(20, (to.y - from.y - 40) / 2);
    const d = `M${from.x} ${from.y + 40} C${from.x} ${from.y + 40 + bend} ${to.x} ${to.y - bend} ${to.x} ${to.y}`;
    svg.append(make("path", { cls: "edge", d, "data-from": i, "data-to": k }));
  }));
  nodes.forEach((node, k) => svg.append(nodeOf(node, k, boxes[k], svg, level)));
  return make("div", { cls: "graph", title: `@${name}` }, svg);
}

function nodeOf(node, number, box, svg, level) {
  const called = (data.program?.calls || []).some((call) => call.name === node.label);
  const computed = level === "input" && node.kind === "op" && !called;
  const kernels = node.kind === "kernel" ? [{ name: node.label }] : computed ? kernelsAt(node.at) : [];
  const fill = node.kind === "argument" || node.kind === "return" ? "#eef1f4" : kernels.length ? hue(kernels[0].name) : "#ffffff";
  const told = [node.label, node.type, ...node.at.map(placeName), ...kernels.map((k) => `kernel ${k.name}`)].join("\n");
  const group = make("g", { cls: "node", transform: `translate(${box.x - box.width / 2} ${box.y})`, onclick: () => {
    for (const on of svg.querySelectorAll(".on")) on.classList.remove("on");
    group.classList.add("on");
    for (const edge of svg.querySelectorAll(`[data-from="${number}"], [data-to="${number}"]`)) edge.classList.add("on");
    if (node.kind === "kernel") showKernel(node.label);
    else if (node.at.length) showSource(node.at[0]);
  } }, make("title", {}, told), make("rect", { width: box.width, height: 40, fill, "stroke-dasharray": node.kind === "view" ? "4 3" : null }),
    make("text", { x: 9, y: 17 }, node.label), make("text", { x: 9, y: 32, cls: "type" }, node.type));
  return group;
}

function graphs() {
  const titles = { input: "The graph as it came; colours are kernels of the same line, white is called, dashed is a view", program: "The program: kernels and calls" };
  const panels = data.graphs.flatMap((graph) => graph.functions.map((f) =>
    make("div", { cls: "panel" }, make("h2", {}, `${titles[graph.level] || graph.level} (@${f.name}, ${f.nodes.length} nodes)`), picture(f, graph.level))));
  return make("section", { id: "tab-graph" }, ...panels);
}

// ---------------------------------------------------------------------------------------------------------- kernels

function kernels() {
  const section = make("section", { id: "tab-kernels" });
  const { program } = data;
  if (!program) { section.append(make("div", { cls: "panel" }, make("div", { cls: "body" }, "Nothing was emitted."))); return section; }
  const rows = [...program.kernels, ...program.calls];
  const titles = ["", "times", "read", "written", "operations", `at least, on ${program.machine.name}`];
  section.append(make("div", { cls: "panel" }, make("h2", {}, "Kernels and calls"), make("div", { cls: "body" },
    make("table", {}, make("tr", {}, ...titles.map((t) => make("th", {}, t))), ...rows.map(costRow)))));
  for (const kernel of program.kernels) section.append(kernelPanel(kernel));
  for (const [name, text] of Object.entries(program.sources)) {
    const body = make("pre", {}, text);
    section.append(make("div", { cls: "panel" }, make("h2", {}, `${name}, as compiled`),
      make("details", { cls: "body" }, make("summary", {}, `${text.split("\n").length} lines`), body)));
  }
  return section;
}

function costRow(row) {
  const name = row.code !== undefined ? make("a", { onclick: () => showKernel(row.name) }, row.name) : row.name;
  const cells = [name, row.times, amount(row.read, "B"), amount(row.written, "B"), amount(row.operations, ""), seconds(row.seconds)];
  return make("tr", { cls: "row" }, ...cells.map((cell) => make("td", {}, typeof cell === "number" ? String(cell) : cell)));
}

function kernelPanel(kernel) {
  const places = kernel.at.map((place) => make("a", { onclick: () => showSource(place) }, placeName(place)));
  const from = places.flatMap((place, k) => (k ? [", ", place] : [place]));
  const colour = make("span", { cls: "chip", style: `background:${hue(kernel.name)}` }, kernel.name);
  return make("div", { cls: "panel", id: `kernel-${kernel.name}` },
    make("h2", {}, colour, make("span", { cls: "faint" }, ` launched ${kernel.times === 1 ? "once" : `${kernel.times} times`}, from `), ...from),
    make("div", { cls: "body two" }, make("pre", {}, ...kernel.ir.split("\n").flatMap((line) => [...coloured(line), "\n"])),
      make("pre", {}, kernel.code || "no code was found for it")));
}

// ----------------------------------------------------------------------------------------------------------- source

function source() {
  const section = make("section", { id: "tab-source" });
  const used = new Map();
  const note = (place, name, click) => {
    const key = place.join(":");
    if (!used.has(key)) used.set(key, new Map());
    used.get(key).set(name, click);
  };
  const input = data.columns[0];
  for (const place of input ? input.places.values() : []) note(place, "IR", () => showLine(place));
  for (const kernel of data.program?.kernels || [])
    for (const place of kernel.at) note(place, kernel.name, () => showKernel(kernel.name));
  for (const [file, { name, lines }] of data.files) {
    const rows = [...lines].sort((a, b) => a[0] - b[0]).map(([number, text]) => {
      const found = used.get(`${file}:${number}`);
      const chips = found ? [...found].map(([label, click]) =>
        make("span", { cls: "chip", style: `background:${label === "IR" ? "#eef1f4" : hue(label)}`, onclick: click }, label)) : [];
      return make("div", { cls: `src${found ? " used" : ""}`, id: `src-${file}-${number}` },
        make("span", { cls: "n" }, String(number)), text, make("span", { cls: "chips" }, ...chips));
    });
    section.append(make("div", { cls: "panel" }, make("h2", {}, name), make("div", { cls: "body" }, ...rows)));
  }
  if (!data.files.size) section.append(make("div", { cls: "panel" }, make("div", { cls: "body" }, "No op says which line it comes from.")));
  return section;
}

// --------------------------------------------------------------------------------------------------------- roofline

function roofline() {
  const section = make("section", { id: "tab-roofline" });
  const { program } = data;
  const rows = program ? [...program.kernels, ...program.calls].filter((row) => row.read + row.written > 0) : [];
  if (!rows.length) { section.append(make("div", { cls: "panel" }, make("div", { cls: "body" }, "No kernel moves anything."))); return section; }
  const { name, bandwidth, operations } = program.machine, ridge = operations / bandwidth;
  const W = 1100, H = 460, L = 70, B = 50;
  const intensity = (row) => Math.max(row.operations / (row.read + row.written), 0.01);
  const xs = [...rows.map(intensity), ridge];
  const x0 = Math.log10(Math.min(...xs)) - 0.5, x1 = Math.log10(Math.max(...xs)) + 0.7;
  const y1 = Math.log10(operations) + 0.6, y0 = Math.log10(10 ** x0 * bandwidth);
  const X = (v) => L + ((Math.log10(v) - x0) / (x1 - x0)) * (W - L - 20), Y = (v) => H - B - ((Math.log10(v) - y0) / (y1 - y0)) * (H - B - 20);
  const svg = make("svg", { cls: "roof", width: W, height: H });
  for (let k = Math.ceil(x0); k <= x1; k++) svg.append(make("line", { cls: "grid", x1: X(10 ** k), x2: X(10 ** k), y1: 20, y2: H - B }), make("text", { x: X(10 ** k) - 10, y: H - B + 16 }, k < 0 ? (10 ** k).toFixed(-k) : String(10 ** k)));
  for (let k = Math.ceil(y0); k <= y1; k++) svg.append(make("line", { cls: "grid", x1: L, x2: W - 20, y1: Y(10 ** k), y2: Y(10 ** k) }), make("text", { x: 8, y: Y(10 ** k) + 4 }, amount(10 ** k, "/s")));
  svg.append(make("path", { cls: "limit", d: `M${X(10 ** x0)} ${Y(10 ** x0 * bandwidth)} L${X(ridge)} ${Y(operations)} L${X(10 ** x1)} ${Y(operations)}` }));
  const most = Math.max(...rows.map((row) => (row.read + row.written) * row.times)), labels = [], names = [];
  for (const row of rows.sort((p, q) => intensity(p) - intensity(q))) {
    const at = intensity(row), r = 4 + 14 * Math.sqrt(((row.read + row.written) * row.times) / most);
    const y = Y(Math.min(at * bandwidth, operations));
    // names stand below the slope and above the roof, where no line runs through them
    const wide = 6.3 * row.name.length, onRoof = at >= ridge, fits = X(at) + r + 3 + wide < W;
    const left = fits ? X(at) + r + 3 : X(at) - r - 3 - wide;
    let up = onRoof ? y - r - 4 : y + 4;
    while (labels.some(([from, to, other]) => from < left + wide && left < to && Math.abs(other - up) < 12)) up += onRoof ? -12 : 12;
    labels.push([left, left + wide, up]);
    const told = `${row.name}: ${amount(row.read + row.written, "B")}, ${amount(row.operations, "operations")}, at least ${seconds(row.seconds)}, ${row.times} times`;
    const open = { onclick: () => row.code !== undefined && showKernel(row.name), style: "cursor:pointer" };
    svg.append(make("g", open, make("title", {}, told), make("circle", { cx: X(at), cy: y, r, fill: hue(row.name), stroke: "#5c6f82" })));
    names.push(make("g", open, make("title", {}, told), make("text", { x: fits ? left : left + wide, y: up, "text-anchor": fits ? "start" : "end" }, row.name)));
  }
  svg.append(...names); // in front of all circles
  svg.append(make("text", { x: W / 2 - 60, y: H - 10 }, "operations per byte"));
  const words = `What ${name} allows: ${amount(bandwidth, "B/s")}, ${amount(operations, "operations/s")}. Each kernel stands where its bytes and operations put it; its area is the bytes that it moves. Read from the IR, not measured.`;
  section.append(make("div", { cls: "panel" }, make("h2", {}, "Roofline"), make("div", { cls: "body" }, make("p", { cls: "faint" }, words), svg)));
  return section;
}

// ------------------------------------------------------------------------------------------------------------- page

const TABS = [["passes", "Passes", passes], ["graph", "Graph", graphs], ["kernels", "Kernels", kernels], ["source", "Source", source], ["roofline", "Roofline", roofline]];

function show(id) {
  for (const element of document.querySelectorAll("main > section, nav a"))
    element.classList.toggle("on", element.id === `tab-${id}` || element.dataset.tab === id);
}
function reveal(element) {
  if (!element) return;
  for (const old of document.querySelectorAll(".hit")) old.classList.remove("hit");
  element.classList.add("hit");
  element.scrollIntoView({ block: "center", behavior: "instant" });
}
function go(hash) { location.hash = hash; }
function showKernel(name) { go(`kernels/${name}`); }
function showSource([file, line]) { go(`source/${file}:${line}`); }
function showLine([file, line]) { go(`passes/${file}:${line}`); }

function follow() {
  const [tab, rest] = (location.hash.slice(1) || "passes").split("/");
  show(TABS.some(([id]) => id === tab) ? tab : "passes");
  if (!rest) return;
  if (tab === "kernels") reveal(document.getElementById(`kernel-${decodeURIComponent(rest)}`));
  else if (tab === "source") reveal(document.getElementById(`src-${rest.replace(":", "-")}`));
  else if (tab === "passes") {
    fill(data.columns[0], document.getElementById("pass-0"));
    reveal(document.querySelector(`#pass-0 [data-at="${rest}"]`));
  }
}

document.addEventListener("DOMContentLoaded", () => {
  read();
  const total = data.columns.reduce((sum, c) => sum + c.seconds + c.verify, 0);
  const facts = [`${Math.max(data.columns.length - 1, 0)} passes in ${seconds(total)}`];
  if (data.program) facts.push(`${data.program.kernels.length} kernels, ${data.program.kernels.reduce((s, k) => s + k.times, 0)} launches`, `${data.program.calls.reduce((s, c) => s + c.times, 0)} calls`);
  const app = document.getElementById("app");
  app.append(make("header", {}, make("h1", {}, data.title), make("div", { cls: "facts" }, facts.join(" · ")),
    make("nav", {}, ...TABS.map(([id, label]) => make("a", { "data-tab": id, href: `#${id}` }, label)))));
  if (data.error) app.append(make("div", { cls: "error" }, make("b", {}, `${data.error.name} failed`), make("pre", {}, data.error.message)));
  app.append(make("main", {}, ...TABS.map(([, , build]) => build())));
  window.addEventListener("hashchange", follow);
  follow();
  document.body.dataset.ready = "true";
});
