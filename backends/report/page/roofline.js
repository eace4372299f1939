// Kernels by operations per byte, under what the machine allows.

const MOST_NAMES = 24; // of those that take longest; the others say it when they are pointed at

function roofline(open) {
  const rows = [...data.kernels, ...data.calls].filter((row) => row.read + row.written > 0);
  if (!rows.length) return panel("Roofline", faint("No kernel moves anything."));
  const { name, bandwidth, operations } = data.program.machine, ridge = operations / bandwidth;
  const W = 1100, H = 360, L = 78, B = 48;
  const xs = [...rows.map(intensity), ridge];
  const x0 = Math.log10(most(xs.map((x) => -x), -Infinity) * -1) - 0.5, x1 = Math.log10(most(xs, 0)) + 0.7;
  const y1 = Math.log10(operations) + 0.6, y0 = Math.log10(10 ** x0 * bandwidth);
  const X = (v) => L + ((Math.log10(v) - x0) / (x1 - x0)) * (W - L - 20), Y = (v) => H - B - ((Math.log10(v) - y0) / (y1 - y0)) * (H - B - 20);
  const svg = make("svg", { cls: "roof", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "roofline of the kernels" });
  for (let k = Math.ceil(x0); k <= x1; k++) svg.append(make("line", { cls: "grid", x1: X(10 ** k), x2: X(10 ** k), y1: 20, y2: H - B }), make("text", { x: X(10 ** k), y: H - B + 16, "text-anchor": "middle" }, k < 0 ? (10 ** k).toFixed(-k) : String(10 ** k)));
  for (let k = Math.ceil(y0); k <= y1; k++) svg.append(make("line", { cls: "grid", x1: L, x2: W - 20, y1: Y(10 ** k), y2: Y(10 ** k) }), make("text", { x: 8, y: Y(10 ** k) + 4 }, amount(10 ** k, "/s")));
  svg.append(make("path", { cls: "limit", d: `M${X(10 ** x0)} ${Y(10 ** x0 * bandwidth)} L${X(ridge)} ${Y(operations)} L${X(10 ** x1)} ${Y(operations)}` }));
  const heaviest = most(rows.map((row) => (row.read + row.written) * row.times), 1), labels = [], names = [];
  const named = new Set([...rows].sort((p, q) => q.seconds * q.times - p.seconds * p.times).slice(0, MOST_NAMES));
  const radius = (row) => 4 + 14 * Math.sqrt(((row.read + row.written) * row.times) / heaviest);
  const circles = rows.map((row) => ({ row, x: X(intensity(row)), y: Y(Math.min(intensity(row) * bandwidth, operations)), r: radius(row) }));
  for (const row of [...rows].sort((p, q) => intensity(p) - intensity(q))) {
    const at = intensity(row), r = radius(row);
    const y = Y(Math.min(at * bandwidth, operations));
    // names stand below the slope and above the roof, where no line runs through them
    const wide = 6.3 * row.name.length, onRoof = at >= ridge, fits = X(at) + r + 3 + wide < W;
    const left = fits ? X(at) + r + 3 : X(at) - r - 3 - wide;
    let up = onRoof ? y - r - 4 : y + 4;
    const taken = () => labels.some(([from, to, other]) => from < left + wide && left < to && Math.abs(other - up) < 12)
      || circles.some((each) => each.row !== row && each.x - each.r < left + wide && left < each.x + each.r && Math.abs(each.y + 4 - up) < each.r + 6);
    for (let tries = 0; tries < 40 && taken(); tries++) up += onRoof ? -12 : 12;
    const told = `${row.name}: ${amount(row.read + row.written, "B")}, ${amount(row.operations, "operations")}, at least ${seconds(row.seconds)}, ${plural(row.times, "time")}`;
    const attributes = row.code === undefined ? {} : { onclick: () => open(row.name), cls: "open" };
    svg.append(make("g", attributes, make("title", {}, told), make("circle", { cx: X(at), cy: y, r, style: `fill:${hue(row.name)}` })));
    if (!named.has(row)) continue;
    labels.push([left, left + wide, up]);
    names.push(make("g", attributes, make("title", {}, told), make("text", { x: fits ? left : left + wide, y: up, "text-anchor": fits ? "start" : "end" }, row.name)));
  }
  svg.append(...names, make("text", { x: W / 2, y: H - 10, "text-anchor": "middle" }, "operations per byte")); // names in front of all circles
  const words = `What ${name} allows: ${amount(bandwidth, "B/s")}, ${amount(operations, "operations/s")}. Each kernel stands where its bytes and operations put it; its area is the bytes that it moves. Read from the IR, not measured.`;
  return panel("Roofline", make("p", { cls: "faint" }, words), svg);
}

const intensity = (row) => Math.max(row.operations / Math.max(row.read + row.written, 1), 0.01);
