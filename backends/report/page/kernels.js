// Kernels and ATen calls with their cost, what the compiler made of them, the code, and what a CUDA graph records.

const sorting = { key: null, down: true };

function kernelsTab() {
  const { program } = data;
  if (!program) return make("div", { cls: "page" }, panel("Kernels", faint("Nothing was emitted.")));
  const sources = Object.entries(program.sources).map(([name, text]) => {
    const details = make("details", {}, make("summary", {}, plural(text.split("\n").length, "line")));
    details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(code(text)); });
    return panel(`${name}, as compiled`, details);
  });
  const table = make("div", { cls: "scroll" });
  drawTable(table);
  return make("div", { cls: "page" }, panel("Kernels and calls", table), roofline(showKernel), recordings(),
    ...data.kernels.map(kernelPanel), ...sources);
}

const limitOf = (row, machine) => {
  const memory = (row.read + row.written) / machine.bandwidth, arithmetic = row.operations / machine.operations;
  if (row.seconds > 2 * Math.max(memory, arithmetic)) return "launch";
  return memory >= arithmetic ? "memory" : "arithmetic";
};

// [title, explanation, value to sort by, text]
function columnsOf() {
  const { machine } = data.program, compiled = Object.keys(data.figures).length > 0;
  const own = (key) => [(row) => data.figures[row.name]?.[key] ?? -1, (row) => String(data.figures[row.name]?.[key] ?? "")];
  const found = [
    ["times", "launches or calls of one run", (row) => row.times, (row) => String(row.times)],
    ["read", "bytes that have to be read once", (row) => row.read, (row) => amount(row.read, "B")],
    ["written", "bytes that are written", (row) => row.written, (row) => amount(row.written, "B")],
    ["operations", "scalar operations", (row) => row.operations, (row) => amount(row.operations, "")],
    ["per byte", "operations for each byte moved", intensity, (row) => intensity(row).toFixed(2)],
    ["limit", `what bounds it on ${machine.name}`, (row) => limitOf(row, machine), (row) => limitOf(row, machine)],
    ["at least", `the least time of one on ${machine.name}`, (row) => row.seconds, (row) => seconds(row.seconds)],
    ["in all", "the least time of all of them", (row) => row.seconds * row.times, (row) => seconds(row.seconds * row.times)],
  ];
  if (compiled) {
    for (const [key, told] of [["registers", "registers a thread"], ["spills", "bytes of local memory a thread: registers that did not suffice"], ["shared", "bytes of shared memory a block"], ["warps", "warps a block"]])
      found.push([key, told, ...own(key)]);
  }
  return found;
}

function drawTable(place) {
  const columns = columnsOf(), rows = [...data.kernels, ...data.calls];
  const chosen = columns.find(([title]) => title === sorting.key);
  if (chosen) rows.sort((p, q) => (chosen[2](p) < chosen[2](q) ? -1 : chosen[2](p) > chosen[2](q) ? 1 : 0) * (sorting.down ? -1 : 1));
  const total = sum(rows, (row) => row.seconds * row.times) || 1;
  const head = columns.map(([title, told]) => make("th", { "aria-sort": sorting.key === title ? (sorting.down ? "descending" : "ascending") : null },
    button(title, () => { sorting.down = sorting.key === title ? !sorting.down : true; sorting.key = title; drawTable(place); }, { cls: "quiet", title: told })));
  const line = (row) => make("tr", { cls: "row" }, make("td", {}, row.code === undefined ? make("code", {}, row.name) : link(`kernels/${where(row.name)}`, { cls: "chip", style: `background:${hue(row.name)}` }, row.name)),
    ...columns.map(([, , , text]) => make("td", {}, text(row))), make("td", { cls: "wide" }, bar((row.seconds * row.times) / total)));
  place.replaceChildren(make("table", {}, make("tr", {}, make("th", {}, "kernel or call"), ...head, make("th", {}, "share")), ...rows.map(line)));
}

function kernelPanel(kernel) {
  const places = kernel.at.flatMap((place, k) => [k ? ", " : "", link(`source/${place.join(":")}`, {}, data.nameOf(place))]);
  const chip = make("span", { cls: "chip", style: `background:${hue(kernel.name)}` }, kernel.name);
  const details = make("details", { cls: "kernel", id: `kernel-${kernel.name}` },
    make("summary", {}, chip, faint(` launched ${kernel.times === 1 ? "once" : `${kernel.times} times`}${places.length ? ", from " : ""}`), ...places));
  const fill = () => {
    if (details.children.length > 1) return;
    const made = data.figures[kernel.name];
    const said = made ? make("p", { cls: "faint" }, Object.entries(made).map(([key, value]) => `${key} ${value}`).join(" · ")) : null;
    details.append(make("div", {}, said, make("div", { cls: "two" }, irText(kernel.ir), kernel.code ? code(kernel.code) : make("pre", {}, "no code was found for it"))));
  };
  details.addEventListener("toggle", () => { if (details.open) fill(); });
  if (data.kernels.length <= 3) { details.open = true; fill(); }
  return make("section", { cls: "panel" }, details);
}

function showKernel(name) { go(`kernels/${where(name)}`); }

function openKernel(name) {
  const details = document.getElementById(`kernel-${name}`);
  if (details) details.open = true;
  reveal(details);
}

// What runs between two recordings, and why it cannot be in one.
function recordings() {
  const whole = data.late.filter((remark) => remark.pass === "cudagraphs");
  if (!data.parts.length && !whole.length) return null;
  const step = ([name, reason]) => make("li", {}, make("code", {}, name), reason ? faint(`: ${reason}`) : "");
  const parts = data.parts.map((part) => (part.recorded
    ? make("div", { cls: "part recorded" }, make("b", {}, `recorded: ${part.name}`), faint(` ${sum(part.steps, ([, count]) => count)} launches and calls`),
      make("ul", {}, ...part.steps.map(([name, count]) => make("li", {}, data.kernels.some((each) => each.name === name) ? link(`kernels/${where(name)}`, {}, name) : make("code", {}, name), count > 1 ? ` × ${count}` : ""))))
    : make("div", { cls: "part" }, make("b", {}, "run between"), make("ul", {}, ...part.steps.map(step)))));
  return panel("CUDA graph", ...whole.map((remark) => remarkRow(remark, true)), ...parts);
}
