// One graph as the blocks of its page tell it; the last block may be cut off by a crash.

class Graph {
  constructor(blocks) {
    Object.assign(this, { title: "", facts: {}, lines: [], places: [], columns: [], graphs: [], program: null, error: null, files: new Map(), late: [], reached: [], elsewhere: new Map(), figures: {} });
    for (const block of blocks) this.take(block);
    this.columns.forEach((column, number) => { column.number = number; });
  }

  take(block) {
    const { block: kind } = block;
    if (kind === "title") [this.title, this.facts] = [block.title, block.facts || {}];
    else if (kind === "input" || kind === "pass") this.column(block);
    else if (kind === "verify") this.columns.at(-1).verify = block.seconds;
    else if (kind === "graph") this.graphs.push(block);
    else if (kind === "program") this.program = block;
    else if (kind === "compiled") this.figures = block.kernels;
    else if (kind === "error") this.error = block;
    else if (kind === "late") this.late.push(...block.remarks);
    else if (kind === "reached") this.reached.push(...block.at);
    else if (kind === "elsewhere") for (const place of block.at) this.elsewhere.set(place.join(":"), block.name);
    else if (kind === "source") for (const file of block.files) this.source(file);
  }

  // A stage whose text is that of the one before shares its list of lines.
  column({ new: lines, places, lines: numbers, at, ...rest }) {
    for (const line of lines) this.lines.push(line);
    for (const place of places) this.places.push(place);
    const last = this.columns.at(-1);
    const same = last !== undefined && (numbers === undefined || equal(numbers, last.lines));
    this.columns.push({ ...rest, verify: 0, same, lines: same ? last.lines : numbers, at: at || last.at });
  }

  source({ file, name, lines, statements }) {
    if (!this.files.has(file)) this.files.set(file, { name, lines: new Map(), statements: [] });
    const known = this.files.get(file);
    for (const [number, text] of lines) known.lines.set(number, text);
    known.statements.push(...statements);
  }

  // The text of a line of a stage, and the place that it comes from.
  text(column, line) { return this.lines[column.lines[line]]; }
  place(column, line) { return column.at[line] >= 0 ? this.places[column.at[line]] : null; }
  nameOf([file, line]) { return `${base(this.files.get(file)?.name || "?")}:${line}`; }
  get kernels() { return this.program ? this.program.kernels : []; }
  get calls() { return this.program ? this.program.calls : []; }
  get parts() { return this.program ? this.program.parts : []; }
  get remarks() {
    const said = this.columns.flatMap((column) => column.remarks.map((remark) => ({ ...remark, column })));
    return [...said, ...this.late.map((remark) => ({ ...remark, column: null }))];
  }

  // Line of the source, as "file:line" -> kernels and calls there.
  get users() {
    if (!this.known) {
      this.known = new Map();
      const note = (list, kind) => list.forEach((each) => each.at.forEach((place) => {
        const key = place.join(":");
        if (!this.known.has(key)) this.known.set(key, []);
        if (!this.known.get(key).some((known) => known.name === each.name)) this.known.get(key).push({ name: each.name, kind });
      }));
      note(this.kernels, "kernel");
      note(this.calls, "call");
    }
    return this.known;
  }
}

const equal = (a, b) => a.length === b.length && a.every((each, k) => each === b[k]);

function blocksOf(root, kind) {
  const found = [];
  for (const element of root.querySelectorAll(`script.${kind}`)) {
    try { found.push(JSON.parse(element.textContent)); } catch { continue; }
  }
  return found;
}

let data = null; // the graph of this page
let other = null; // one to compare it with
