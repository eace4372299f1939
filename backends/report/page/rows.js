// A long text of which only the lines in sight are elements. All rows have one height.

const ROW = 18, BEYOND = 30;

class Rows {
  constructor(cls = "") {
    this.inner = make("div", { cls: "inner" });
    this.element = make("div", { cls: `rows ${cls}`, tabindex: "0", role: "region", "aria-label": "lines" }, this.inner);
    this.items = [];
    this.render = () => null;
    this.from = this.to = -1;
    this.element.addEventListener("scroll", () => this.update(), { passive: true });
    new ResizeObserver(() => this.update()).observe(this.element);
  }

  // items: anything with a `length` in letters; render: item, number -> element
  show(items, render) {
    this.items = items;
    this.render = render;
    this.inner.style.height = `${items.length * ROW + 8}px`;
    this.inner.style.minWidth = `${most(items.map((item) => item.length), 0) + 12}ch`;
    this.refresh();
  }

  refresh() {
    this.from = this.to = -1;
    this.update();
  }

  update() {
    const { scrollTop, clientHeight } = this.element;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - BEYOND);
    const to = Math.min(this.items.length, Math.ceil((scrollTop + (clientHeight || 800)) / ROW) + BEYOND);
    if (from >= this.from && to <= this.to && this.to - this.from <= to - from + 2 * BEYOND && this.from >= 0
      && (from === this.from || scrollTop / ROW - this.from > BEYOND / 3) && (to === this.to || this.to - (scrollTop + clientHeight) / ROW > BEYOND / 3)) return;
    this.from = from;
    this.to = to;
    const shown = [];
    for (let k = from; k < to; k++) {
      const row = this.render(this.items[k], k);
      row.style.top = `${k * ROW}px`;
      shown.push(row);
    }
    this.inner.replaceChildren(...shown);
  }

  reveal(number) {
    const { clientHeight } = this.element;
    this.element.scrollTop = Math.max(0, number * ROW - (clientHeight || 400) / 3);
    this.update();
  }
}

// Two texts that scroll as one.
function together(left, right) {
  const follow = (from, to) => from.element.addEventListener("scroll", () => {
    if (to.element.scrollTop !== from.element.scrollTop) to.element.scrollTop = from.element.scrollTop;
    if (to.element.scrollLeft !== from.element.scrollLeft) to.element.scrollLeft = from.element.scrollLeft;
  }, { passive: true });
  follow(left, right);
  follow(right, left);
}
