// Bands of a number: breaks dragged on the histogram, by keyboard or in fields; equal widths; top and bottom codes.
import { nice, plain, svg, ticks } from "/static/shape-parts.js";

const TALL = 190, TOP = 16, UNDER = 26, EDGE = 14, MOST = 80, NARROW = 7, FEW = 12;
const byId = (id) => document.getElementById(id);
const number = (text) => (text.trim() === "" || !Number.isFinite(Number(text)) ? null : Number(text));
const tidy = (value) => Number(value.toPrecision(12));

export class Bands {
  constructor(editor, column, changed) {
    Object.assign(this, structuredClone(editor.bands));
    this.picture = editor.picture;
    this.column = column;
    this.touched = false;
    this.tell = changed;
    this.place = byId("histogram");
    byId("width").addEventListener("input", () => this.setWidth(number(byId("width").value)));
    for (const end of ["top", "bottom"]) byId(end).addEventListener("change", () => this.setEnd(end, number(byId(end).value)));
    byId("alone").addEventListener("change", () => { this.alone = byId("alone").value.split(/[\s;,]+/).map(number).filter((v) => v !== null); this.changed(); });
    byId("closed").addEventListener("change", () => { this.closed = byId("closed").value; this.changed(); });
    byId("add-break").addEventListener("click", () => this.add(this.widest(), true));
    byId("whole-range")?.addEventListener("change", () => this.draw());
    byId("as-table").addEventListener("toggle", () => this.list());
    this.fill();
  }

  /* The bars as a table: for each band, or for each bar where there are no bands. */
  list() {
    const { low, width, n, below } = this.view, rows = new Map(), edges = this.edges();
    if (below) rows.set("below", below);
    n.forEach((count, at) => {
      const from = low + at * width, band = edges.findLast((edge) => edge <= from + width / 2);
      const name = edges.length ? (band === undefined ? `below ${plain(edges[0])}` : plain(band)) : plain(from);
      rows.set(name, (rows.get(name) ?? 0) + count);
    });
    const body = byId("as-table").querySelector("tbody");
    body.replaceChildren(...[...rows].map(([name, count]) => {
      const row = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
      head.scope = "row";
      [head.textContent, cell.textContent, cell.className] = [name, count.toLocaleString("en-US"), "n"];
      row.append(head, cell);
      return row;
    }));
  }

  get view() { return byId("whole-range")?.checked ? this.picture.whole : this.picture.main; }
  get step() {
    const range = this.view.high - this.view.low;
    return this.picture.integers ? Math.max(1, range <= 1500 ? 1 : nice(range / 1000)) : nice(range / 1000);
  }
  x(value) { return EDGE + ((this.wide - 2 * EDGE) * (value - this.view.low)) / (this.view.high - this.view.low); }
  at(x) {
    const value = this.view.low + ((x - EDGE) / (this.wide - 2 * EDGE)) * (this.view.high - this.view.low);
    return tidy(Math.round(value / this.step) * this.step);
  }

  /* The breaks that there are, whichever way they were made. */
  edges() {
    if (this.mode === "breaks") return this.breaks;
    if (this.mode !== "intervals" || !(this.width > 0)) return [];
    const low = Math.max(this.bottom ?? -Infinity, this.picture.whole.low), high = Math.min(this.top ?? Infinity, this.picture.whole.high);
    if ((high - low) / this.width > 2000) return [];
    const found = [];
    for (let i = Math.ceil((low - this.start) / this.width); this.start + i * this.width <= high; i += 1) found.push(tidy(this.start + i * this.width));
    const inner = found.filter((v) => (this.bottom === null || v > this.bottom) && (this.top === null || v < this.top) && v > this.picture.whole.low);
    return [...(this.bottom === null ? [] : [this.bottom]), ...inner, ...(this.top === null ? [] : [this.top])];
  }

  change() {
    const more = { closed: this.closed, alone: this.alone };
    if (this.mode === "breaks") return this.breaks.length ? { kind: "breaks", breaks: [this.breaks], ...more } : null;
    if (this.mode !== "intervals" || !(this.width > 0)) return null;
    return { kind: "intervals", widths: [this.width], start: this.start, top: this.top, bottom: this.bottom, ...more };
  }

  changed() { this.touched = true; this.fill(); this.draw(); this.tell(); }

  setWidth(width) {
    if (this.mode === "breaks") [this.top, this.bottom] = [null, null];
    [this.mode, this.width] = width > 0 ? ["intervals", width] : ["", null];
    this.changed();
  }

  setEnd(end, value) {
    if (this.mode === "breaks" && value !== null) {
      const place = end === "top" ? this.breaks.length - 1 : 0;
      this.breaks = this.breaks.filter((v, i) => i !== place && (end === "top" ? v < value : v > value));
      this.breaks = [...this.breaks, value].sort((a, b) => a - b);
    } else if (this.mode !== "breaks") {
      this[end] = value;
      if (this.mode === "" && value !== null) [this.mode, this.width] = ["intervals", this.finest()];
    }
    this.changed();
  }

  /* The narrowest width that suits a key of which only the ends are coded. */
  finest() { return this.picture.integers && this.picture.whole.high - this.picture.whole.low <= 5000 ? 1 : this.view.width; }

  /* From here on breaks of one's own. */
  own() {
    if (this.mode === "breaks") return;
    this.breaks = this.edges();
    [this.mode, this.width, this.top, this.bottom] = ["breaks", null, null, null];
  }

  add(value, focus = false) {
    this.own();
    if (value === null || this.breaks.includes(value)) return;
    this.breaks = [...this.breaks, value].sort((a, b) => a - b);
    this.changed();
    if (focus) this.place.querySelector(`[data-break="${this.breaks.indexOf(value)}"]`)?.focus();
  }

  remove(index) {
    this.own();
    this.breaks = this.breaks.filter((_, i) => i !== index);
    if (!this.breaks.length) this.mode = "";
    this.changed();
    (this.place.querySelector(`[data-break="${Math.min(index, this.breaks.length - 1)}"]`) ?? byId("add-break")).focus();
  }

  move(index, value) {
    this.own();
    const low = index ? this.breaks[index - 1] + this.step : -Infinity, high = index + 1 < this.breaks.length ? this.breaks[index + 1] - this.step : Infinity;
    if (low > high) return;
    this.breaks = this.breaks.map((old, i) => (i === index ? tidy(Math.min(high, Math.max(low, value))) : old));
    this.touched = true;
    this.fill();
    this.shift();
    this.tell();
  }

  /* The middle of the band with most records. */
  widest() {
    const { low, width, n } = this.view, edges = [-Infinity, ...this.edges(), Infinity];
    let best = null, most = 0;
    for (let i = 0; i + 1 < edges.length; i += 1) {
      const inside = n.map((count, at) => [low + at * width, count]).filter(([v]) => v >= edges[i] && v < edges[i + 1]);
      const total = inside.reduce((sum, [, count]) => sum + count, 0);
      if (total <= most || inside.length < 2) continue;
      let half = 0;
      const middle = inside.findIndex(([, count]) => (half += count) >= total / 2);
      [best, most] = [tidy(inside[Math.max(1, middle)][0]), total];
    }
    return best;
  }

  /* The fields. */
  fill() {
    const say = (id, value) => { if (document.activeElement !== byId(id)) byId(id).value = value ?? ""; };
    const own = this.mode === "breaks";
    say("width", this.width);
    say("top", own ? this.breaks.at(-1) : this.top);
    say("bottom", own && this.breaks.length > 1 ? this.breaks[0] : own ? null : this.bottom);
    say("alone", this.alone.join(", "));
    byId("closed").value = this.closed;
    byId("breaks-label").textContent = own ? "Breaks" : this.mode ? `${this.edges().length || "Many"} breaks, all ${plain(this.width)} apart` : "No breaks yet: every value stands for itself.";
    const list = byId("breaks"), fields = [...list.querySelectorAll("input")];
    if (own && fields.length === this.breaks.length) fields.forEach((field, i) => { if (field !== document.activeElement) field.value = this.breaks[i]; });
    else list.replaceChildren(...(own && this.breaks.length <= MOST ? this.breaks.map((value, i) => this.field(value, i)) : []));
  }

  field(value, index) {
    const made = document.createElement("li"), field = document.createElement("input"), gone = document.createElement("button");
    Object.assign(field, { type: "number", step: "any", value });
    field.setAttribute("aria-label", `Break ${index + 1}`);
    field.addEventListener("change", () => { if (number(field.value) !== null) this.move(index, number(field.value)); field.value = this.breaks[index]; });
    Object.assign(gone, { type: "button", className: "gone", textContent: "×" });
    gone.setAttribute("aria-label", `Take break ${index + 1} away`);
    gone.addEventListener("click", () => this.remove(index));
    made.append(field, gone);
    return made;
  }

  /* The whole picture. */
  draw() {
    if (!this.place.clientWidth) return;
    this.wide = this.place.clientWidth;
    const { low, width, n, below, above } = this.view, [first, second] = n.toSorted((a, b) => b - a);
    const most = Math.max(1, second && first > 3 * second && n.length > FEW ? 1.35 * second : first);
    const picture = svg("svg", { viewBox: `0 0 ${this.wide} ${TALL + TOP + UNDER}`, role: "group", "aria-label": `Histogram of ${this.column}, with its breaks` });
    this.bars = n.map((count, at) => {
      const left = this.x(low + at * width), tall = count ? Math.min(TALL, Math.max(1, (TALL * count) / most)) : 0;
      const to = this.picture.integers && width === 1 ? "" : ` to ${plain(low + (at + 1) * width)}`;
      return svg("rect", { class: "bar", x: left, y: TOP + TALL - tall, width: Math.max(0.5, this.x(low + (at + 1) * width) - left - (n.length < 160 ? 1 : 0)), height: tall, "aria-hidden": "true" }, svg("title", {}, `${plain(low + at * width)}${to}: ${count.toLocaleString("en-US")} records`));
    });
    picture.append(...this.bars, svg("line", { class: "base", x1: EDGE, x2: this.wide - EDGE, y1: TOP + TALL, y2: TOP + TALL }));
    const over = n.findIndex((count) => count > most);
    if (over >= 0) picture.append(svg("path", { class: "cut", d: `M${this.x(low + over * width) - 2},${TOP + 18} l${this.x(low + width) - this.x(low) + 4},-8 v5 l${this.x(low) - this.x(low + width) - 4},8 z` }), svg("text", { x: this.x(low + (over + 1) * width) + 4, y: TOP + 12 }, n[over].toLocaleString("en-US")));
    const single = this.picture.integers && width === 1;
    const marks = ticks(low, this.view.high, Math.max(3, this.wide / 90)).filter((at) => !single || (Number.isInteger(at) && at < this.view.high));
    for (const at of marks) picture.append(svg("text", { x: this.x(at + (single ? 0.5 : 0)), y: TOP + TALL + 18, "text-anchor": "middle" }, plain(at)));
    if (above) picture.append(svg("text", { class: "beyond", x: this.wide - EDGE, y: TOP - 3, "text-anchor": "end" }, `${above.toLocaleString("en-US")} records above →`));
    if (below) picture.append(svg("text", { class: "beyond", x: EDGE, y: TOP - 3 }, `← ${below.toLocaleString("en-US")} records below`));
    picture.addEventListener("dblclick", (event) => { event.preventDefault(); if (!event.target.closest(".handle")) this.add(this.at(this.pointed(event))); });
    const focused = document.activeElement?.closest?.(".handle")?.dataset.break;
    const edges = this.edges();
    const dense = edges.length > MOST || (this.mode === "intervals" && this.x(low + this.width) - this.x(low) < NARROW);
    const ends = (value) => this.mode === "intervals" && [this.top, this.bottom].includes(value);
    this.handles = new Map(edges.map((value, i) => [i, value]).filter(([, value]) => !dense || ends(value)).map(([i, value]) => [i, this.handle(value, i, edges)]));
    picture.append(...this.handles.values(), ...(this.mode === "breaks" ? [] : ["bottom", "top"].filter((end) => this[end] === null).map((end) => this.ghost(end))));
    this.place.replaceChildren(picture);
    this.shift();
    if (focused !== undefined) this.place.querySelector(`[data-break="${Number(focused)}"]`)?.focus();
  }

  resized() { if (this.place.clientWidth !== this.wide) this.draw(); }

  pointed(event) { return ((event.clientX - this.place.getBoundingClientRect().left) * this.wide) / this.place.clientWidth; }

  /* Handles to their places, bars into the colours of their bands. */
  shift() {
    const edges = this.edges(), { low, width, high } = this.view;
    for (const [i, handle] of this.handles) {
      handle.setAttribute("transform", `translate(${this.x(edges[i])} 0)`);
      handle.setAttribute("aria-valuenow", edges[i]);
      handle.setAttribute("visibility", edges[i] < low || edges[i] > high ? "hidden" : "visible");
      handle.querySelector("text").textContent = plain(edges[i]);
    }
    if (byId("as-table").open) this.list();
    let band = 0;
    this.bars.forEach((bar, at) => {
      while (band < edges.length && edges[band] <= low + (at + 0.5) * width) band += 1;
      bar.setAttribute("class", `bar ${edges.length ? (band % 2 ? "odd" : "even") : ""}`);
    });
  }

  handle(value, index, edges) {
    const names = { top: "Top code", bottom: "Bottom code" };
    const end = this.mode === "intervals" ? (value === this.top ? "top" : value === this.bottom ? "bottom" : "") : "";
    const made = svg("g", { class: `handle ${end}`, tabindex: 0, role: "slider", "data-break": index, "aria-label": names[end] ?? `Break ${index + 1} of ${edges.length}`, "aria-valuemin": this.picture.whole.low, "aria-valuemax": this.picture.whole.high, "aria-valuenow": value, "aria-orientation": "horizontal" },
      svg("rect", { class: "reach", x: -7, y: 0, width: 14, height: TALL + TOP + UNDER }), svg("line", { y1: TOP, y2: TOP + TALL }), svg("circle", { cy: TOP + TALL, r: 5.5 }), svg("text", { y: TOP - 4, "text-anchor": "middle" }));
    const go = (to) => { if (end) { this[end] = to; this.touched = true; this.fill(); this.draw(); this.tell(); } else this.move(index, to); };
    made.addEventListener("keydown", (event) => this.pressed(event, index, end, go));
    this.dragged(made, go);
    return made;
  }

  pressed(event, index, end, go) {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    const value = this.edges()[index];
    if (steps) go(tidy(value + steps * this.step * (event.shiftKey ? 10 : 1)));
    else if (["Delete", "Backspace"].includes(event.key)) { if (end) this.setEnd(end, null); else this.remove(index); }
    else return;
    event.preventDefault();
  }

  dragged(made, go) {
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      made.focus();
      const moved = (next) => go(this.at(Math.min(this.wide - EDGE, Math.max(EDGE, this.pointed(next)))));
      const done = () => { window.removeEventListener("pointermove", moved); window.removeEventListener("pointerup", done); this.draw(); };
      window.addEventListener("pointermove", moved);
      window.addEventListener("pointerup", done);
    });
  }

  /* At either end a handle that waits to be drawn inwards. */
  ghost(end) {
    const at = end === "top" ? this.wide - EDGE / 2 : EDGE / 2;
    const value = end === "top" ? this.view.high : this.view.low;
    const made = svg("g", { class: `handle ghost ${end}`, tabindex: 0, role: "slider", "aria-label": `${end === "top" ? "Top" : "Bottom"} code: none yet`, "aria-valuemin": this.picture.whole.low, "aria-valuemax": this.picture.whole.high, "aria-valuenow": value, transform: `translate(${at} 0)` },
      svg("rect", { class: "reach", x: -7, y: 0, width: 14, height: TALL + TOP }), svg("path", { d: end === "top" ? `M4,${TOP + TALL - 12} l-9,6 l9,6 z` : `M-4,${TOP + TALL - 12} l9,6 l-9,6 z` }), svg("title", {}, `Drag inwards to ${end}-code`));
    const go = (to) => this.setEnd(end, to);
    made.addEventListener("keydown", (event) => {
      if (event.key !== (end === "top" ? "ArrowLeft" : "ArrowRight")) return;
      event.preventDefault();
      go(tidy(value + (end === "top" ? -1 : 1) * this.step));
      this.place.querySelector(`.handle.${end}`)?.focus();
    });
    this.dragged(made, go);
    return made;
  }
}
