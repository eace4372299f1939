// The user's functions: which kernels and calls each line became, what was simplified away, and what no op came from.

const SITE = /\/(site|dist)-packages\//;

function sourceTab() {
  const files = [...data.files].filter(([, { lines }]) => lines.size).sort((a, b) => SITE.test(a[1].name) - SITE.test(b[1].name));
  const missing = [...data.files.values()].filter(({ lines }) => !lines.size).map(({ name }) => name);
  const input = data.columns[0];
  const marks = { op: new Set((input ? input.at : []).filter((k) => k >= 0).map((k) => data.places[k].join(":"))), call: new Set(data.reached.map((place) => place.join(":"))) };
  if (!files.length) return make("div", { cls: "page" }, panel("Source", faint(missing.length ? `The source is not here: ${missing.join(", ")}` : "No op says which line it comes from.")));
  const legend = make("p", { cls: "legend" }, ...[["used", "became kernels or calls"], ["gone", "its ops were simplified away"], ["into", "calls what became ops"], ["elsewhere", "in another graph"], ["skipped", "skipped: no op came from it"]].map(([cls, told]) =>
    make("span", { cls: `src ${cls}` }, told)));
  return make("div", { cls: "page" }, legend, ...files.map(([number, file]) => filePanel(number, file, marks)),
    missing.length ? panel("Not here", ...missing.map((name) => make("div", {}, name))) : null);
}

function stateOf(key, file, number, marks) {
  if (data.users.has(key)) return "used";
  if (marks.op.has(key)) return data.program ? "gone" : "used";
  if (marks.call.has(key)) return "into";
  if (data.elsewhere.has(key)) return "elsewhere";
  return null;
}

function filePanel(number, file, marks) {
  const states = new Map();
  for (const line of file.lines.keys()) states.set(line, stateOf(`${number}:${line}`, file, line, marks));
  const counts = { skipped: 0, reached: 0 };
  for (const [first, last] of file.statements) {
    const lines = Array.from({ length: last - first + 1 }, (_, k) => first + k);
    const reached = lines.some((line) => states.get(line));
    counts[reached ? "reached" : "skipped"]++;
    if (!reached) for (const line of lines) if (states.has(line)) states.set(line, "skipped");
  }
  const sorted = [...file.lines].sort((a, b) => a[0] - b[0]), rows = [];
  sorted.forEach(([line, text], k) => {
    if (k && sorted[k - 1][0] !== line - 1) rows.push(make("div", { cls: "src gap" }, "⋯"));
    rows.push(sourceRow(number, line, text, states.get(line)));
  });
  const told = file.statements.length ? faint(` ${plural(counts.reached, "statement")} in the graph, ${counts.skipped} skipped`) : null;
  const short = file.name.replace(/^.*\/(?:site|dist)-packages\//, "");
  return panel(make("span", { title: file.name }, short, told), make("div", { cls: "code", tabindex: "0" }, ...rows));
}

function sourceRow(file, line, text, state) {
  const users = data.users.get(`${file}:${line}`) || [];
  const chips = users.slice(0, 4).map(({ name, kind }) => (kind === "kernel"
    ? link(`kernels/${where(name)}`, { cls: "chip", style: `background:${hue(name)}` }, name)
    : make("span", { cls: "chip call" }, name)));
  const rest = users.length > 4 ? make("span", { cls: "chip call", title: users.slice(4).map(({ name }) => name).join(", ") }, `and ${users.length - 4} more`) : null;
  const graph = state === "elsewhere" ? data.elsewhere.get(`${file}:${line}`) : null;
  if (graph) chips.push(make("a", { cls: "chip call", href: `../${where(graph)}/index.html#source` }, graph));
  const ir = state === "used" || state === "gone" ? button("IR", () => go(`stages/0/${lineOfPlace(file, line)}`), { cls: "quiet", title: "the line's ops as they came" }) : null;
  return make("div", { cls: `src ${state || ""}`, id: `src-${file}-${line}` }, make("span", { cls: "n" }, String(line)), ...coloured(text, PYTHON, PYTHON_KINDS), make("span", { cls: "chips" }, ir, ...chips, rest));
}

const PYTHON = /(#.*)|("""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|class|return|if|elif|else|for|while|in|is|not|and|or|with|as|import|from|None|True|False|lambda|raise|try|except|finally|pass|yield|assert|self)\b|(\b\d[\w.]*\b)/g;
const PYTHON_KINDS = ["cm", "st", "kw", "nu"];

function lineOfPlace(file, line) {
  const { at } = data.columns[0];
  return at.findIndex((k) => k >= 0 && data.places[k][0] === file && data.places[k][1] === line);
}
