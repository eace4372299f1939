// The page: tabs, which are built when they are first seen, the address, and keys.

const TABS = [["overview", "Overview", overview], ["stages", "Stages", stagesTab], ["graph", "Graph", graphTab], ["kernels", "Kernels", kernelsTab], ["source", "Source", sourceTab], ["compare", "Compare", compareTab]];
const KEYS = "/ search · 1 to 6 tabs · j and k next and previous stage · n and p next and previous change";

function go(hash) { location.hash = hash; }

function reveal(element) {
  if (!element) return;
  for (const old of document.querySelectorAll(".hit")) old.classList.remove("hit");
  element.classList.add("hit");
  element.scrollIntoView({ block: "center" });
}

function follow() {
  const [wanted, ...rest] = location.hash.slice(1).split("/").map(readable);
  const [tab] = TABS.find(([id]) => id === wanted) || TABS[0];
  for (const [id, , build] of TABS) {
    const place = document.getElementById(`tab-${id}`);
    if (id === tab && !place.firstChild) place.append(build());
    place.hidden = id !== tab;
    const label = document.getElementById(`to-${id}`);
    if (id === tab) label.setAttribute("aria-current", "page");
    else label.removeAttribute("aria-current");
  }
  document.body.dataset.tab = tab;
  if (!rest.length) return;
  if (tab === "kernels") openKernel(rest[0]);
  else if (tab === "source") reveal(document.getElementById(`src-${rest[0].replace(":", "-")}`));
  else if (tab === "stages") openStage(Number(rest[0]), rest.length > 1 ? Number(rest[1]) : null);
}

function readable(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

function key(event) {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const tab = TABS[Number(event.key) - 1];
  if (event.key === "/") { event.preventDefault(); search.field.focus(); }
  else if (tab) go(tab[0]);
  else if (document.body.dataset.tab === "stages") {
    if (event.key === "j") stepStage(1);
    else if (event.key === "k") stepStage(-1);
    else if (event.key === "n") stepChange(1);
    else if (event.key === "p") stepChange(-1);
  }
}

// Light or dark as the system has it, until somebody chooses.
function themeButton() {
  const root = document.documentElement, dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const keep = (value) => { try { localStorage.setItem("inductile-theme", value); } catch { /* a page from a file may have no storage */ } };
  try { const kept = localStorage.getItem("inductile-theme"); if (kept) root.dataset.theme = kept; } catch { /* the same */ }
  return button("◐", () => { root.dataset.theme = dark() ? "light" : "dark"; keep(root.dataset.theme); }, { title: "light or dark", "aria-label": "light or dark", cls: "quiet" });
}

document.addEventListener("DOMContentLoaded", () => {
  data = new Graph(blocksOf(document, "block"));
  const second = blocksOf(document, "other");
  if (second.length) other = new Graph(second);
  const figures = figuresOf(data);
  const facts = [`${plural(figures.passes, "pass").replace("passs", "passes")} in ${seconds(figures["time in passes"])}`];
  if (data.program) facts.push(plural(figures.kernels, "kernel"), plural(figures.launches, "launch").replace("launchs", "launches"), plural(figures["ATen calls"], "call"));
  const app = document.getElementById("app");
  app.append(make("header", {}, make("div", { cls: "top" }, make("h1", { title: data.title }, base(data.title)), faint(facts.join(" · ")), searchField(), themeButton()),
    make("nav", { cls: "tabs" }, ...TABS.map(([id, label]) => link(id, { id: `to-${id}` }, label)), make("span", { cls: "keys faint", title: KEYS }, "keys: ", make("kbd", {}, "/"), " ", make("kbd", {}, "j"), make("kbd", {}, "k"), " ", make("kbd", {}, "n"), make("kbd", {}, "p")))));
  if (data.error) app.append(make("div", { cls: "error" }, make("b", {}, `${data.error.name} failed`), make("pre", {}, data.error.message)));
  app.append(make("main", {}, ...TABS.map(([id]) => make("div", { id: `tab-${id}`, cls: "tab", hidden: true }))));
  window.addEventListener("hashchange", follow);
  document.addEventListener("keydown", key);
  if (second.length && !location.hash) location.hash = "compare";
  follow();
  document.body.dataset.ready = "true";
});
