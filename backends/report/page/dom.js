"use strict";
// Elements, numbers and colours. Text of the data reaches the document as text only, never as markup.

const SVG = new Set(["svg", "g", "rect", "text", "path", "line", "circle", "title"]);

const make = (tag, attributes = {}, ...children) => {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name === "cls" ? "class" : name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
};

const panel = (title, ...children) =>
  make("section", { cls: "panel" }, make("h2", {}, title), make("div", { cls: "body" }, ...children));
const faint = (...children) => make("span", { cls: "faint" }, ...children);

// What leads somewhere is a link, what does something is a button: both take the keyboard without more.
const link = (hash, attributes, ...children) => make("a", { ...attributes, href: `#${hash}` }, ...children);
const button = (label, onclick, attributes = {}) => make("button", { type: "button", ...attributes, onclick }, label);

const seconds = (value) =>
  value >= 1 ? `${value.toFixed(2)} s` : value >= 1e-3 ? `${(value * 1e3).toFixed(1)} ms` : `${(value * 1e6).toFixed(value < 1e-5 ? 1 : 0)} µs`;
const amount = (value, unit) => {
  for (const [factor, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (value >= factor) return `${(value / factor).toPrecision(3)} ${prefix}${unit}`;
  return unit ? `${value} ${unit}` : String(value);
};
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const hue = (name) => {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 3600;
  const angle = (hash * 0.61803 * 360) % 360 | 0;
  return `light-dark(hsl(${angle}, 70%, 88%), hsl(${angle}, 40%, 27%))`;
};
const base = (path) => path.split("/").pop();
const where = (name) => encodeURIComponent(name);
const sum = (list, value) => list.reduce((total, each) => total + value(each), 0);
const most = (list, least) => list.reduce((found, each) => (each > found ? each : found), least);

function groupBy(list, key) {
  const groups = new Map();
  for (const each of list) {
    const name = key(each);
    if (groups.has(name)) groups.get(name).push(each);
    else groups.set(name, [each]);
  }
  return groups;
}
