// Limits that are moved on the map, by pointer and by keys, and trials that are opened from it.
const SVG = "http://www.w3.org/2000/svg";
const STEP = 4, LEAP = 24;

function json(id) {
  const found = document.getElementById(id);
  return found ? JSON.parse(found.textContent) : null;
}

function made(name, attributes = {}, parent = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

/* The limit of one line of the map: its number is that of the input beside the map, in the units typed there. */
class Handle {
  constructor(view, group, facts) {
    this.view = view; this.facts = facts;
    this.input = document.getElementById(`bound-${facts.place}`);
    this.level = facts.axis === "risk";
    this.group = made("g", { class: `handle ${facts.axis}`, tabindex: "0", role: "slider" }, group);
    this.group.setAttribute("aria-orientation", this.level ? "vertical" : "horizontal");
    this.group.setAttribute("aria-label", `Limit: ${facts.words} ${facts.sign}`);
    this.lines = ["line", "reach"].map((name) => made("line", { class: name }, this.group));
    this.grip = made("rect", { class: "grip", rx: 4 }, this.group);
    this.listen();
    this.place();
  }
  get scale() { return this.view.scale(this.level ? "y" : "x"); }
  get value() { return Number(this.input.value) / this.facts.factor; }
  place() {
    const at = this.scale(this.value), wide = this.view.width(), high = this.view.height();
    const spot = Math.max(0, Math.min(this.level ? high : wide, at));
    const ends = this.level ? { x1: 0, x2: wide, y1: spot, y2: spot } : { x1: spot, x2: spot, y1: 0, y2: high };
    for (const line of this.lines) for (const [key, value] of Object.entries(ends)) line.setAttribute(key, value);
    const box = this.level ? { x: wide - 10, y: spot - 9, width: 12, height: 18 } : { x: spot - 9, y: -4, width: 18, height: 12 };
    for (const [key, value] of Object.entries(box)) this.grip.setAttribute(key, value);
    const [low, high_] = [...this.scale.domain()].sort((a, b) => a - b);
    this.group.setAttribute("aria-valuemin", low * this.facts.factor);
    this.group.setAttribute("aria-valuemax", high_ * this.facts.factor);
    this.group.setAttribute("aria-valuenow", this.input.value);
    this.group.setAttribute("aria-valuetext", `${this.facts.sign} ${this.input.value}${this.facts.factor === 100 ? " percent" : ""}`);
  }
  /* Moves to a pixel, to three digits; shares stay between nothing and all. */
  moveTo(pixel) {
    const [low, high] = [...this.scale.domain()].sort((a, b) => a - b);
    let value = Math.max(low, Math.min(high, this.scale.invert(pixel)));
    if (this.facts.factor === 100) value = Math.max(0, Math.min(1, value));
    this.input.value = Number((value * this.facts.factor).toPrecision(3));
    this.place();
    this.input.dispatchEvent(new Event("input", { bubbles: true }));
  }
  listen() {
    const group = this.group;
    group.addEventListener("pointerdown", (event) => {
      event.stopPropagation(); event.preventDefault();
      group.setPointerCapture(event.pointerId); group.classList.add("held"); group.focus();
    });
    group.addEventListener("pointermove", (event) => {
      if (!group.hasPointerCapture(event.pointerId)) return;
      event.stopPropagation();
      const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(group.getScreenCTM().inverse());
      this.moveTo(this.level ? spot.y : spot.x);
    });
    for (const name of ["pointerup", "pointercancel"]) group.addEventListener(name, () => group.classList.remove("held"));
    group.addEventListener("click", (event) => event.stopPropagation());
    group.addEventListener("keydown", (event) => {
      const ways = { ArrowUp: [1, STEP], ArrowRight: [1, STEP], ArrowDown: [-1, STEP], ArrowLeft: [-1, STEP], PageUp: [1, LEAP], PageDown: [-1, LEAP] };
      const way = ways[event.key];
      if (!way) return;
      event.preventDefault();
      const before = this.input.value, from = this.scale(this.value);
      const sign = this.level ? -1 : 1;
      for (let step = way[1]; this.input.value === before && step < 200; step *= 2) this.moveTo(from + sign * way[0] * step);
    });
  }
}

let held = [];

function attach(chart) {
  const view = chart.view, svg = chart.querySelector("svg");
  view.addEventListener("click", (_, item) => {
    if (item && item.datum && item.datum.at >= 0) open(item.datum.at);
  });
  const place = () => {
    svg.querySelector(":scope > .handles")?.remove();
    const [x, y] = view.origin(), around = view.padding();
    const group = made("g", { class: "handles", transform: `translate(${x + around.left},${y + around.top})` }, svg);
    held = (json("map-handles") || []).map((facts) => new Handle(view, group, facts));
  };
  place();
  view.addSignalListener("width", () => requestAnimationFrame(() => view.runAsync().then(place)));
}

/* What the server says about moved limits is drawn on the map that is there. */
async function apply() {
  const rows = json("moved"), chart = document.querySelector(".risk-map");
  if (!rows || !chart || !chart.view) return;
  for (const [name, values] of Object.entries(rows)) chart.view.data(name, values);
  await chart.view.runAsync();
  for (const handle of held) handle.place();
}

async function open(at) {
  const pinned = document.getElementById("pinned");
  const query = new URLSearchParams({ at, pinned: pinned ? pinned.value : "" });
  await htmx.ajax("GET", `/balance/trial?${query}`, { target: "#trial" });
  const place = document.querySelector("#trial [data-heading]");
  if (!place) return;
  place.focus({ preventScroll: true });
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  place.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "center" });
}

document.addEventListener("drawn", ({ target }) => { if (target.matches(".risk-map")) attach(target); });
const ready = document.querySelector(".risk-map");
if (ready && ready.dataset.drawn === "yes") attach(ready);
document.addEventListener("htmx:after:swap", () => apply());
document.addEventListener("input", ({ target }) => {
  if (target.name === "bounds") for (const handle of held) if (handle.input === target) handle.place();
});
document.addEventListener("submit", (event) => { if (event.target.id === "bounds") event.preventDefault(); });
document.addEventListener("click", ({ target }) => {
  const found = target.closest("[data-open]");
  if (found) open(found.dataset.open);
  if (target.closest("[data-shut]")) document.getElementById("trial").replaceChildren();
});
