// What the page does itself: tokens on requests, charts, messages. Everything else is drawn on the server.
import { expressionInterpreter } from "/static/vega-interpreter.js";

const token = document.querySelector('meta[name="csrf"]').content;

document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
  ctx.request.headers["X-CSRF"] = token;
  ctx.request.headers["X-Version"] = document.body.dataset.version;
});

document.addEventListener("htmx:before:response", ({ detail: { ctx } }) => {
  const version = ctx.response.headers.get("X-Version");
  if (version && ctx.response.status < 400) document.body.dataset.version = version;
});

let working = 0, shown;
const busy = () => document.getElementById("busy").classList.toggle("on", working > 0);
document.addEventListener("htmx:before:request", () => { working += 1; clearTimeout(shown); shown = setTimeout(busy, 250); });
document.addEventListener("htmx:finally:request", () => { working = Math.max(0, working - 1); busy(); });
document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
  if (!ctx || !ctx.response) say("The workbench does not answer: is it still running? Your session is kept.");
});

function say(words) {
  const place = document.getElementById("notice");
  const box = document.createElement("div");
  box.className = "notice";
  box.append(Object.assign(document.createElement("p"), { textContent: words }));
  place.replaceChildren(box);
}

document.addEventListener("click", (event) => {
  const close = event.target.closest("[data-close]");
  if (close) close.closest(".notice").remove();
  const hide = event.target.closest("[data-hide]");
  if (hide) window.location.reload();
  const report = event.target.closest("[data-report]");
  if (report) {
    for (const tab of report.parentElement.children) tab.ariaSelected = String(tab === report);
    report.closest("section").querySelector("iframe").src = report.dataset.report;
  }
});

export const OPTIONS = {
  actions: false, renderer: "svg", ast: true, expr: expressionInterpreter, defaultStyle: false,
  tooltip: { theme: "page", disableDefaultStyle: true },
};

/* Draws every chart that is new: <div class="chart" data-chart="spec-id"> beside <script type="application/json" id="spec-id">.
   The view is kept as place.view, and the event "drawn" tells of it. A mark whose datum has `open` is a link to it. */
export async function draw(root = document) {
  for (const place of root.querySelectorAll("[data-chart]:not([data-drawn])")) {
    place.dataset.drawn = "begun";
    const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    try {
      const { view } = await vegaEmbed(place, spec, OPTIONS);
      place.view = view;
      place.dataset.drawn = "yes";
      place.dispatchEvent(new CustomEvent("drawn", { bubbles: true, detail: { view } }));
    } catch {
      place.textContent = "The chart could not be drawn here; the table holds the same numbers.";
    }
  }
}

document.addEventListener("htmx:after:swap", () => draw());
draw();
