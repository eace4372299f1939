// What came of the graph, what was not done and why, and where the time of the compile went.

function figuresOf(graph) {
  const { program } = graph;
  const rows = program ? [...graph.kernels, ...graph.calls] : [];
  const total = (key) => sum(rows, (row) => row[key] * row.times);
  const compile = sum(graph.columns, (column) => column.seconds + column.verify);
  return {
    "kernels": graph.kernels.length, "launches": sum(graph.kernels, (each) => each.times), "ATen calls": sum(graph.calls, (each) => each.times),
    "bytes read": total("read"), "bytes written": total("written"), "operations": total("operations"),
    "least time": total("seconds"), "passes": Math.max(graph.columns.length - 1, 0), "time in passes": compile,
  };
}

function figure(name, value) {
  if (name.startsWith("bytes")) return amount(value, "B");
  return name.includes("time") ? seconds(value) : amount(value, "");
}

function overview() {
  const figures = figuresOf(data), missed = data.remarks.filter((remark) => remark.kind === "missed" || remark.kind === "failure");
  const hidden = data.program ? [] : ["kernels", "launches", "ATen calls", "bytes read", "bytes written", "operations", "least time"];
  const cards = Object.entries(figures).filter(([name]) => !hidden.includes(name)).map(([name, value]) =>
    make("div", { cls: "card" }, make("div", { cls: "value" }, figure(name, value)), make("div", { cls: "faint" }, name === "least time" ? `least time, on ${data.program.machine.name}` : name)));
  const facts = Object.entries(data.facts).map(([name, value]) => make("tr", {}, make("td", {}, name), make("td", {}, String(value))));
  return make("div", { cls: "page" }, make("div", { cls: "cards" }, ...cards),
    facts.length ? panel("Said about this graph", make("table", { cls: "plain" }, ...facts)) : null,
    panel(`What was not done, and why (${missed.length})`, remarkTable(missed)),
    panel("Where the time of the passes went", phases()),
    remarksPanel());
}

function phases() {
  const groups = [...groupBy(data.columns.slice(1), (column) => column.level || "other")];
  const rows = groups.map(([level, columns]) => [level, sum(columns, (c) => c.seconds), sum(columns, (c) => c.verify), columns.length]);
  const longest = most(rows.map((row) => row[1] + row[2]), 1e-9);
  return make("table", {}, make("tr", {}, ...["level", "passes", "time", "verifier", ""].map((title) => make("th", {}, title))),
    ...rows.map(([level, time, check, count]) => make("tr", { cls: "row" }, make("td", {}, level), make("td", {}, String(count)), make("td", {}, seconds(time)), make("td", {}, seconds(check)),
      make("td", { cls: "wide" }, bar((time + check) / longest, check / (time + check || 1))))));
}

const bar = (share, rest = 0) =>
  make("div", { cls: "bar", style: `width:${Math.max(0.5, 100 * share)}%` }, make("div", { cls: "check", style: `width:${100 * rest}%` }));

// Equal words about many ops are one row.
function remarkTable(remarks) {
  if (!remarks.length) return faint("Nothing.");
  const groups = [...groupBy(remarks, (remark) => `${remark.kind} ${remark.pass} ${remark.op} ${remark.reason}`).values()];
  groups.sort((a, b) => b.length - a.length);
  return make("table", { cls: "plain remarks" }, ...groups.map((group) => {
    const [first] = group, places = new Map(group.filter((r) => r.location).map((r) => [r.location, r]));
    return make("tr", { cls: "row" }, make("td", {}, make("b", { cls: first.kind }, first.kind)), make("td", {}, group.length > 1 ? `${group.length} ×` : ""),
      make("td", {}, first.column ? link(`stages/${first.column.number}${first.line === null ? "" : `/${first.line}`}`, {}, first.pass) : first.pass),
      make("td", {}, `${first.op ? `${first.op}: ` : ""}${first.reason}`, first.suggestion ? faint(` (${first.suggestion})`) : null),
      make("td", {}, ...[...places.keys()].slice(0, 3).flatMap((location) => [placeLink(location), " "]), places.size > 3 ? faint(`and ${places.size - 3} more`) : null));
  }));
}

function placeLink(location) {
  const match = /^(.*):(\d+)$/.exec(location);
  const file = match && [...data.files].find(([, each]) => each.name === match[1]);
  return file ? link(`source/${file[0]}:${match[2]}`, {}, base(location)) : faint(base(location));
}

function remarksPanel() {
  const rest = data.remarks.filter((remark) => remark.kind === "passed" || remark.kind === "analysis");
  const details = make("details", {}, make("summary", {}, `${plural(rest.length, "remark")} on what was done`));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(remarkTable(rest)); });
  return rest.length ? panel("What was done", details) : null;
}
