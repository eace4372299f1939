// The ops of a function and which of them feed which.

function graphTab() {
  const titles = { input: "The graph as it came", program: "The program" };
  const notes = { input: "Colours are kernels of the same line, white is called, dashed is a view.", program: "Colours are kernels, white is called." };
  const panels = data.graphs.flatMap((graph) => graph.functions.map((f) => {
    const chosen = make("div", { cls: "chosen faint" }, "Choose a node to see what it is and where it comes from.");
    return panel(`${titles[graph.level] || graph.level}: @${f.name}, ${plural(f.nodes.length, "node")}`, make("p", { cls: "faint" }, notes[graph.level] || ""), chosen, picture(f, graph.level, chosen));
  }));
  return make("div", { cls: "page" }, ...panels);
}

function kernelsAt(places) {
  const found = new Set(places.flatMap((place) => data.users.get(place.join(":")) || []).filter(({ kind }) => kind === "kernel").map(({ name }) => name));
  return [...found];
}

// Layers by the longest path from the inputs; within a layer nodes stand below the middle of what they read.
function layout(nodes) {
  const depth = nodes.map(() => 0);
  nodes.forEach((node, k) => { depth[k] = most(node.inputs.map((i) => depth[i] + 1), 0); });
  // what needs nothing but arguments stands right above its first use, and so do arguments
  const firstUse = nodes.map(() => Infinity);
  for (let k = nodes.length - 1; k >= 0; k--) {
    const early = nodes[k].inputs.every((i) => nodes[i].kind === "argument");
    if (early && firstUse[k] < Infinity) depth[k] = firstUse[k] - 1;
    for (const i of nodes[k].inputs) firstUse[i] = Math.min(firstUse[i], depth[k]);
  }
  const layers = [];
  nodes.forEach((_, k) => (layers[depth[k]] ||= []).push(k));
  const middle = nodes.map(() => 0), width = nodes.map((node) => 18 + 7 * Math.max(node.label.length, node.type.length * 0.9));
  for (const layer of layers.filter(Boolean)) {
    const wish = (k) => { const i = nodes[k].inputs; return i.length ? sum(i, (n) => middle[n]) / i.length : 0; };
    layer.sort((p, q) => wish(p) - wish(q));
    const total = sum(layer, (k) => width[k] + 16) - 16;
    let x = sum(layer, wish) / layer.length - total / 2;
    for (const k of layer) { middle[k] = x + width[k] / 2; x += width[k] + 16; }
  }
  const left = -most(middle.map((x, k) => width[k] / 2 - x), -Infinity) - 10;
  return nodes.map((_, k) => ({ x: middle[k] - left, y: 24 + 74 * depth[k], width: width[k] }));
}

function picture({ name, nodes }, level, chosen) {
  if (!nodes.length) return make("div", {}, "nothing to draw");
  const boxes = layout(nodes);
  const right = most(boxes.map((b) => b.x + b.width / 2), 0) + 10, bottom = most(boxes.map((b) => b.y), 0) + 60;
  const svg = make("svg", { width: right, height: bottom, viewBox: `0 0 ${right} ${bottom}` });
  nodes.forEach((node, k) => node.inputs.forEach((i) => {
    const from = boxes[i], to = boxes[k], bend = Math.max(20, (to.y - from.y - 40) / 2);
    const d = `M${from.x} ${from.y + 40} C${from.x} ${from.y + 40 + bend} ${to.x} ${to.y - bend} ${to.x} ${to.y}`;
    svg.append(make("path", { cls: "edge", d, "data-from": i, "data-to": k }));
  }));
  nodes.forEach((node, k) => svg.append(nodeOf(node, k, boxes[k], svg, level, chosen)));
  return make("div", { cls: "graph", title: `@${name}`, tabindex: "0" }, svg);
}

function nodeOf(node, number, box, svg, level, chosen) {
  const called = data.calls.some((call) => call.name === node.label);
  const computed = level === "input" && node.kind === "op" && !called;
  const kernels = node.kind === "kernel" ? [node.label] : computed ? kernelsAt(node.at) : [];
  const fill = node.kind === "argument" || node.kind === "return" ? "var(--ground)" : kernels.length ? hue(kernels[0]) : "var(--paper)";
  const told = [node.label, node.type, ...node.at.map((place) => data.nameOf(place)), ...kernels.map((each) => `kernel ${each}`)].join("\n");
  const choose = () => {
    for (const on of svg.querySelectorAll(".on")) on.classList.remove("on");
    group.classList.add("on");
    for (const edge of svg.querySelectorAll(`[data-from="${number}"], [data-to="${number}"]`)) edge.classList.add("on");
    const links = [...node.at.slice(0, 6).map((place) => link(`source/${place.join(":")}`, {}, data.nameOf(place))), ...kernels.map((each) => link(`kernels/${where(each)}`, {}, `kernel ${each}`))];
    chosen.replaceChildren(make("b", {}, node.label), " ", make("code", {}, node.type), ...links.flatMap((each) => [" · ", each]));
  };
  const group = make("g", { cls: "node", tabindex: "0", role: "button", "aria-label": node.label, transform: `translate(${box.x - box.width / 2} ${box.y})`, onclick: choose, onkeydown: (event) => { if (event.key === "Enter") choose(); } },
    make("title", {}, told), make("rect", { width: box.width, height: 40, style: `fill:${fill}`, "stroke-dasharray": node.kind === "view" ? "4 3" : null }),
    make("text", { x: 9, y: 17 }, node.label), make("text", { x: 9, y: 32, cls: "type" }, node.type));
  return group;
}
