// Which lines of two texts are the same: the longest run of lines that both have once, and Myers' algorithm between them.

// Lines count as equal when they differ in the numbers of values alone, which shift whenever an op comes or goes.
const plain = (line) => line.replace(/%(?:\d+|([A-Za-z_][\w.]*?)(?:_\d+)?)(?![\w.])/g, "%$1");

class Plain {
  constructor() { this.numbers = new Map(); }
  of(text) {
    const key = plain(text);
    if (!this.numbers.has(key)) this.numbers.set(key, this.numbers.size);
    return this.numbers.get(key);
  }
}

const MOST_EDITS = 400;

// [["=", i, j], ["-", i], ["+", j], ...] for two lists of numbers
function difference(a, b) {
  const found = [];
  between(a, b, 0, a.length, 0, b.length, found);
  return found;
}

function between(a, b, from, to, start, end, found) {
  while (from < to && start < end && a[from] === b[start]) found.push(["=", from++, start++]);
  const tail = [];
  while (from < to && start < end && a[to - 1] === b[end - 1]) tail.push(["=", --to, --end]);
  if (from === to || start === end) {
    for (let i = from; i < to; i++) found.push(["-", i]);
    for (let j = start; j < end; j++) found.push(["+", j]);
  } else {
    const anchors = anchorsOf(a, b, from, to, start, end);
    if (anchors.length) {
      let [i, j] = [from, start];
      for (const [x, y] of anchors) {
        between(a, b, i, x, j, y, found);
        found.push(["=", x, y]);
        [i, j] = [x + 1, y + 1];
      }
      between(a, b, i, to, j, end, found);
    } else {
      for (const [kind, i, j] of edits(a.slice(from, to), b.slice(start, end)))
        found.push(kind === "=" ? [kind, i + from, j + start] : [kind, i + (kind === "-" ? from : start)]);
    }
  }
  for (const each of tail.reverse()) found.push(each);
}

// Lines that stand once in each part, in the longest order that both agree on.
function anchorsOf(a, b, from, to, start, end) {
  const once = new Map();
  for (let i = from; i < to; i++) once.set(a[i], once.has(a[i]) ? -1 : i);
  const there = new Map();
  for (let j = start; j < end; j++) there.set(b[j], there.has(b[j]) ? -1 : j);
  const pairs = [];
  for (const [line, i] of once) {
    const j = there.get(line);
    if (i >= 0 && j !== undefined && j >= 0) pairs.push([i, j]);
  }
  const ends = [], before = new Array(pairs.length);
  pairs.forEach(([, j], k) => {
    let low = 0, high = ends.length;
    while (low < high) { const middle = (low + high) >> 1; if (pairs[ends[middle]][1] < j) low = middle + 1; else high = middle; }
    before[k] = low ? ends[low - 1] : -1;
    ends[low] = k;
  });
  const chain = [];
  for (let k = ends.length ? ends.at(-1) : -1; k >= 0; k = before[k]) chain.push(pairs[k]);
  return chain.reverse();
}

// Myers' greedy algorithm; beyond MOST_EDITS edits all is changed.
function edits(a, b) {
  const n = a.length, m = b.length, limit = Math.min(n + m, MOST_EDITS), zero = limit + 1, trace = [];
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

// The changes from one stage to another, maybe of another page; kept, as they are asked for again.
const plains = new Plain();
const known = new WeakMap();

function changesBetween(graph, before, next, after) {
  const key = known.get(after.lines) || new Map();
  known.set(after.lines, key);
  if (!key.has(before.lines)) {
    const numbers = (owner, column) => column.lines.map((number) => plainNumber(owner, number));
    key.set(before.lines, difference(numbers(graph, before), numbers(next, after)));
  }
  return key.get(before.lines);
}

function plainNumber(graph, number) {
  graph.plain ||= [];
  return (graph.plain[number] ??= plains.of(graph.lines[number]));
}

function countsOf(changes) {
  const counts = { "+": 0, "-": 0 };
  for (const [kind] of changes) if (kind !== "=") counts[kind]++;
  return counts;
}
