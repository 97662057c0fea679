// The point on the curve: dragged, or moved by the slider and the number beside it; the server tells what it means.
const byId = (id) => document.getElementById(id);
const plain = (id) => JSON.parse(byId(id).textContent);

/* The chart as it is drawn now, with the steps of its curve; nothing while there is none. */
function drawn() {
  const view = byId("curve")?.firstElementChild.view;
  return view ? { view, steps: plain("curve-steps") } : null;
}

/* What is withheld at a risk, on the straight line between two steps. */
function withheldAt(risk, { risk: ys, withheld: xs }) {
  const at = ys.findIndex((y) => y <= risk);
  if (at <= 0) return at ? xs[xs.length - 1] : xs[0];
  const part = (ys[at - 1] - risk) / (ys[at - 1] - ys[at] || 1);
  return xs[at - 1] + part * (xs[at] - xs[at - 1]);
}

function place(view, rows) {
  for (const [name, values] of Object.entries(rows)) view.data(name, values);
  view.run();
}

function moved(risk) {
  const chart = drawn();
  if (!chart) return;
  const row = { risk, withheld: withheldAt(risk, chart.steps), label: "" };
  place(chart.view, { guides: [{ ...row, withheld: 0, at: 0 }, { ...row, at: 1 }, { ...row, risk: 0, at: 2 }], chosen: [row], chosen_label: [row] });
  const exact = byId("risk-exact");
  if (document.activeElement !== exact) exact.value = Number((100 * risk).toFixed(2));
}

/* Tell the slider, which asks the server. */
function choose(risk) {
  const slider = byId("risk");
  slider.value = risk;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}

/* The risk of the point of the curve that is nearest to the pointer. */
function nearest(event) {
  const { view, steps } = drawn();
  const svg = byId("curve").querySelector("svg");
  const box = svg.getBoundingClientRect();
  const wide = svg.viewBox.baseVal.width || Number(svg.getAttribute("width")) || box.width;
  const scale = wide / box.width, [left, top] = view.origin();
  const px = (event.clientX - box.left) * scale - left, py = (event.clientY - box.top) * scale - top;
  const x = view.scale("x"), y = view.scale("y");
  let best = { far: Infinity, risk: 0 };
  for (let i = 1; i < steps.risk.length; i++) {
    const a = [x(steps.withheld[i - 1]), y(steps.risk[i - 1])], b = [x(steps.withheld[i]), y(steps.risk[i])];
    const d = [b[0] - a[0], b[1] - a[1]], size = d[0] ** 2 + d[1] ** 2 || 1;
    const along = Math.min(1, Math.max(0, ((px - a[0]) * d[0] + (py - a[1]) * d[1]) / size));
    const far = (a[0] + along * d[0] - px) ** 2 + (a[1] + along * d[1] - py) ** 2;
    if (far < best.far) best = { far, risk: steps.risk[i - 1] + along * (steps.risk[i] - steps.risk[i - 1]) };
  }
  return best.risk;
}

document.addEventListener("pointerdown", (event) => {
  const chart = event.target.closest("#curve");
  if (!chart || !drawn() || event.button) return;
  event.preventDefault();
  chart.setPointerCapture(event.pointerId);
  chart.classList.add("moving");
  choose(nearest(event));
});
document.addEventListener("pointermove", (event) => {
  const chart = byId("curve");
  if (chart && chart.classList.contains("moving")) choose(nearest(event));
});
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => {
    const chart = byId("curve");
    if (!chart || !chart.classList.contains("moving")) return;
    chart.classList.remove("moving");
    byId("risk").dispatchEvent(new Event("settled"));
  });
}

document.addEventListener("input", ({ target }) => {
  if (target.id === "risk") moved(Number(target.value));
  if (target.id === "risk-exact" && target.checkValidity() && target.value !== "") choose(Number(target.value) / 100);
});
document.addEventListener("change", ({ target }) => {
  if (target.id === "risk") target.dispatchEvent(new Event("settled"));
});

let held = null;
document.addEventListener("htmx:before:swap", () => {
  const at = document.activeElement;
  held = at && at.id && at.closest("#publish") ? at.id : null;
});
document.addEventListener("htmx:after:swap", () => {
  const words = byId("new-words"), shown = byId("point-words");
  if (words && shown) shown.replaceChildren(words.content.cloneNode(true));
  const slider = byId("risk"), chart = drawn();
  if (slider && chart && byId("point-rows")) {
    const rows = plain("point-rows");
    if (Math.abs(rows.chosen[0].risk - Number(slider.value)) < 0.001) place(chart.view, rows);
  }
  const at = held && byId(held);
  if (at && document.activeElement !== at) at.focus({ preventScroll: true });
  held = null;
});
