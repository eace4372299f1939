// One field for everything: lines of all stages, kernels, remarks, the user's source.

const MOST_FOUND = 40;
const search = { chosen: -1, links: [] };

function searchField() {
  search.field = make("input", { type: "search", placeholder: "Search stages, ops, kernels, source   ( / )", "aria-label": "Search", oninput: later(find), onkeydown: searchKey, onfocus: find });
  search.results = make("div", { cls: "results", hidden: true });
  document.addEventListener("click", (event) => { if (!search.box.contains(event.target)) closeSearch(); });
  search.box = make("div", { cls: "search" }, search.field, search.results);
  return search.box;
}

function later(work) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(work, 60); };
}

function find() {
  const words = search.field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) { closeSearch(); return; }
  const fits = (text) => { const low = text.toLowerCase(); return words.every((word) => low.includes(word)); };
  const groups = [["Passes", passesFound(fits)], ["Kernels and calls", kernelsFound(fits)], ["Source", sourceFound(fits)], ["Remarks", remarksFound(fits)], ["Lines of stages", linesFound(fits)], ["Generated code", codeFound(fits)]];
  const found = groups.filter(([, list]) => list.length);
  search.chosen = -1;
  search.results.hidden = false;
  search.results.replaceChildren(...found.map(([title, list]) => make("div", {}, make("h3", {}, `${title} (${list.length})`),
    ...list.slice(0, MOST_FOUND).map(([hash, label, text]) => link(hash, { cls: "found", onclick: closeSearch, tabindex: "-1" }, make("span", { cls: "label" }, label), make("code", {}, ...marked(text, words)))),
    list.length > MOST_FOUND ? faint(`and ${list.length - MOST_FOUND} more`) : null)));
  if (!found.length) search.results.append(faint("Nothing has all of these words."));
  search.links = [...search.results.querySelectorAll("a")];
}

// The text around the first word, with the words marked.
function marked(text, words) {
  const low = text.toLowerCase(), first = Math.max(0, low.indexOf(words[0])), from = first > 70 ? first - 50 : 0;
  const shown = text.slice(from, from + 170), parts = [];
  const any = new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "gi");
  let end = 0;
  for (const match of shown.matchAll(any)) {
    parts.push(shown.slice(end, match.index), make("mark", {}, match[0]));
    end = match.index + match[0].length;
  }
  return [from ? "…" : "", ...parts, shown.slice(end)];
}

function passesFound(fits) {
  return data.columns.filter((column) => fits(`${column.name} ${column.doc || ""}`)).map((column) => [`stages/${column.number}`, column.name, column.doc || ""]);
}

function kernelsFound(fits) {
  const kernels = data.kernels.filter((kernel) => fits(kernel.name)).map((kernel) => [`kernels/${where(kernel.name)}`, "kernel", kernel.name]);
  const calls = new Set(data.calls.map((call) => call.name).filter(fits));
  return [...kernels, ...[...calls].map((name) => ["kernels", "call", name])];
}

function codeFound(fits) {
  return data.kernels.flatMap((kernel) => kernel.code.split("\n").filter(fits).slice(0, 3).map((line) => [`kernels/${where(kernel.name)}`, kernel.name, line.trim()]));
}

function sourceFound(fits) {
  return [...data.files].flatMap(([number, { name, lines }]) => [...lines].filter(([, text]) => fits(text)).map(([line, text]) => [`source/${number}:${line}`, `${base(name)}:${line}`, text.trim()]));
}

function remarksFound(fits) {
  return data.remarks.filter((remark) => fits(`${remark.pass} ${remark.op} ${remark.reason} ${remark.suggestion}`)).map((remark) =>
    [remark.column ? `stages/${remark.column.number}${remark.line === null ? "" : `/${remark.line}`}` : "overview", `${remark.kind} ${remark.pass}`, `${remark.op} ${remark.reason}`]);
}

// Each different line once, at the first stage that has it.
function linesFound(fits) {
  const wanted = new Set();
  data.lines.forEach((line, number) => { if (fits(line)) wanted.add(number); });
  const first = new Map(), stagesOf = new Map();
  for (const column of data.columns) {
    if (column.same) continue;
    column.lines.forEach((number, line) => {
      if (!wanted.has(number)) return;
      if (!first.has(number)) first.set(number, [column, line]);
      if (!stagesOf.has(number)) stagesOf.set(number, new Set());
      stagesOf.get(number).add(column.number);
    });
  }
  return [...first].map(([number, [column, line]]) => {
    const more = stagesOf.get(number).size - 1;
    return [`stages/${column.number}/${line}`, `${String(column.number).padStart(2, "0")} ${column.name}:${line + 1}${more ? `, and ${plural(more, "stage")} more` : ""}`, data.lines[number].trim()];
  });
}

function searchKey(event) {
  if (event.key === "Escape") { search.field.value = ""; closeSearch(); search.field.blur(); }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (!search.links.length) return;
    search.links[search.chosen]?.classList.remove("on");
    search.chosen = (search.chosen + (event.key === "ArrowDown" ? 1 : -1) + search.links.length) % search.links.length;
    const on = search.links[search.chosen];
    on.classList.add("on");
    on.scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && search.links.length) search.links[Math.max(0, search.chosen)].click();
}

function closeSearch() {
  search.results.hidden = true;
  search.links = [];
}
