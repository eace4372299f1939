// Lines of IR and of code, coloured; and two texts beside each other.

const WORDS = /(%[\w.]+)|(![\w.]+<[^>]*>|\b(?:bf16|f16|f32|f64|i1|i8|i16|i32|i64|index)\b)|(@[\w.]+)|\b((?:loop|kernel|host|aten|arith|math|scalar|func|sym|builtin)\.[\w.]+)|(-?\b\d[\d.e+-]*\b)/g;
const KINDS = ["va", "ty", "fn", "kw", "nu"];
const CODE = /(\/\/.*|#(?!include|pragma|define).*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(for|if|else|return|const|void|float|double|int|int64_t|int32_t|bool|static|inline|extern|template|def|import|from|in|as|while|and|or|not|with|del|None|True|False|tl|triton|auto)\b|(#(?:include|pragma|define).*)|(\b\d[\w.]*\b)/g;
const CODE_KINDS = ["cm", "st", "kw", "fn", "nu"];

let picked = ""; // a value whose uses are marked

function coloured(text, words = WORDS, kinds = KINDS) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(words)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const kind = kinds[match.slice(1).findIndex((group) => group !== undefined)];
    parts.push(make("span", { cls: kind === "va" && match[0] === picked ? "va picked" : kind }, match[0]));
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

const code = (text, words = CODE, kinds = CODE_KINDS) =>
  make("pre", { tabindex: "0" }, ...text.split("\n").flatMap((line) => [...coloured(line, words, kinds), "\n"]));
const irText = (text) => code(text, WORDS, KINDS);

// A row of a stage: { text, number, cls, place, length }
function lineRow(graph, item) {
  const source = item.place ? link(`source/${item.place.join(":")}`, { cls: "at" }, graph.nameOf(item.place)) : null;
  const sign = item.cls.includes("added") ? "+" : item.cls.includes("removed") ? "−" : "";
  return make("div", { cls: `l ${item.cls}` }, make("span", { cls: "n" }, String(item.number)), make("span", { cls: "sign" }, sign), ...coloured(item.text), source);
}

function lineItem(graph, column, line, cls) {
  const place = graph.place(column, line);
  const text = graph.text(column, line);
  return { kind: "line", text, number: line + 1, line, cls, place, length: text.length + (place ? 30 : 0) };
}

const remarkText = (remark, placed) => {
  const figures = Object.entries(remark.figures).map(([name, value]) => `${name} ${value}`).join(", ");
  const hint = remark.suggestion ? ` (${remark.suggestion})` : "";
  const at = placed && remark.location ? `, ${base(remark.location)}` : "";
  return `${remark.op && placed ? `${remark.op}: ` : ""}${remark.reason}${hint}${figures ? `; ${figures}` : ""}${at}`;
};
const remarkRow = (remark, placed = false) =>
  make("div", { cls: `remark ${remark.kind}` }, make("b", {}, `${remark.kind}:`), ` ${remarkText(remark, placed)}`);

// Pairs of rows, removed lines beside the added ones that follow them; nothing stands beside the others.
function pairs(changes) {
  const found = [], gone = [], come = [];
  const flush = () => {
    for (let k = 0; k < Math.max(gone.length, come.length); k++) found.push([gone[k] ?? null, come[k] ?? null, false]);
    gone.length = come.length = 0;
  };
  for (const [kind, i, j] of changes) {
    if (kind === "-") gone.push(i);
    else if (kind === "+") come.push(i);
    else { flush(); found.push([i, j, true]); }
  }
  flush();
  return found;
}

// Two stages beside each other; the first row of each change, for going from one to the next.
function beside(left, before, right, after, note = null) {
  const changes = changesBetween(left, before, right, after);
  const rows = pairs(changes), starts = [];
  rows.forEach(([, , same], k) => { if (!same && (k === 0 || rows[k - 1][2])) starts.push(k); });
  const item = (graph, column, line, same, cls) =>
    line === null ? { kind: "none", length: 0 } : lineItem(graph, column, line, same ? "" : cls);
  const panes = [new Rows("left"), new Rows("right")];
  const draw = (graph) => (each) => (each.kind === "none" ? make("div", { cls: "l nothing" }) : lineRow(graph, each));
  const show = () => {
    panes[0].show(rows.map(([i, , same]) => item(left, before, i, same, "removed")), draw(left));
    panes[1].show(rows.map(([, j, same]) => item(right, after, j, same, "added")), draw(right));
  };
  together(...panes);
  const head = note ? make("div", { cls: "heads" }, ...note.map((each) => make("div", {}, each))) : null;
  const element = make("div", { cls: "beside" }, head, make("div", { cls: "panes" }, panes[0].element, panes[1].element));
  return { element, panes, starts, rows, changes, show };
}
