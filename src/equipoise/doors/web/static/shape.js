// The Shape page: what is edited is previewed at once (asked of the server, one question at a time) and kept on demand.
import { Bands } from "/static/shape-bands.js";
import { Groups } from "/static/shape-groups.js";
import { drawMap } from "/static/shape-map.js";
import { bars } from "/static/shape-parts.js";

const PAUSE = 80;
const byId = (id) => document.getElementById(id);
let facts, begun, editors, kind, points;

const share = (n) => {
  const percent = (100 * n) / Math.max(1, facts.records);
  const digits = percent === 0 || percent >= 10 ? 1 : percent >= 1 ? 2 : Math.min(6, 1 - Math.floor(Math.log10(percent)));
  return `${percent.toFixed(digits).replace(/^(0|100)\.0$/, "$1")}\u00a0%`;
};
const whole = (n) => Math.round(n).toLocaleString("en-US");

/* Begin with a page or a part that was drawn on the server. */
function begin() {
  const place = byId("shape-facts");
  if (!place || place === begun) return;
  begun = place;
  facts = JSON.parse(place.textContent);
  points = new Map();
  editors = {};
  const editor = facts.editor;
  if (editor.kinds.includes("bands")) editors.bands = new Bands(editor, facts.column, touched);
  if (editor.kinds.includes("mapping")) editors.mapping = new Groups(editor, touched);
  if (editor.kinds.includes("prefix")) editors.prefix = chooser("length", (value) => ({ kind: "prefix", lengths: [Number(value)] }));
  if (editor.kinds.includes("dates")) {
    editors.dates = chooser("part", (value) => (value ? { kind: "dates", parts: [value] } : null), editor.dates.part);
    editors.dates.draw = editors.dates.resized = () => bars(byId("periods"), editor.periods.bars, `Records by ${editor.periods.part}`);
  }
  for (const button of document.querySelectorAll("[data-kind]")) button.addEventListener("click", () => turnTo(button.dataset.kind));
  byId("keep")?.addEventListener("click", () => keep(facts.level));
  byId("keep-new")?.addEventListener("click", () => keep(""));
  byId("reset")?.addEventListener("click", () => { begun = null; redrawn(); });
  turnTo(editor.kind);
  tellLevels(facts);
}

/* A simple editor: one field. */
function chooser(id, change, value) {
  const field = byId(id), told = byId(`${id}-told`);
  if (value !== undefined) field.value = value;
  const found = { touched: false, change: () => change(field.value), draw: () => {} };
  field.addEventListener("input", () => { found.touched = true; if (told) told.textContent = field.value; touched(); });
  return found;
}

function turnTo(chosen) {
  kind = chosen;
  for (const button of document.querySelectorAll("[data-kind]")) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
  for (const place of document.querySelectorAll("[data-editor]")) place.hidden = place.dataset.editor !== kind;
  editors[kind]?.draw();
  touched();
}

/* Something was edited: ask what it does. */
function touched() {
  const editor = editors[kind];
  const change = editor?.touched ? editor.change() : null;
  const fresh = facts.level === "original" || (kind === "mapping" && !facts.editor.mapping.whole);
  for (const [id, off] of [["keep", !change || fresh], ["keep-new", !change], ["reset", !editor?.touched]]) if (byId(id)) byId(id).disabled = off;
  if (byId("keep")) {
    byId("keep").hidden = fresh;
    byId("keep").textContent = `Change ${facts.shown}`;
    byId("keep-new").classList.toggle("primary", fresh);
  }
  const nameable = kind === "bands" ? change?.kind === "breaks" : kind === "mapping";
  if (byId("level-name-label")) byId("level-name-label").hidden = !nameable;
  refuse("");
  if (change) { waiting = change; pump(); } else { waiting = null; show(facts.now, false); }
}

let flying = false, waiting = null, last = 0;
const pause = (time) => new Promise((done) => setTimeout(done, time));

async function pump() {
  if (flying || !waiting) return;
  flying = true;
  await pause(Math.max(0, PAUSE - (performance.now() - last)));
  const change = waiting, asked = facts;
  waiting = null;
  last = performance.now();
  if (change) {
    const answer = await send("/shape/preview", { column: asked.column, change });
    if (asked === facts && answer?.ok) show(await answer.json(), true);
    else if (asked === facts && answer) refuse(wordsOf(await answer.text()));
  }
  flying = false;
  pump();
}

function send(address, body) {
  const headers = {
    "Content-Type": "application/json", "HX-Request": "true", "X-Version": document.body.dataset.version,
    "X-CSRF": document.querySelector('meta[name="csrf"]').content,
  };
  return fetch(address, { method: "POST", headers, body: JSON.stringify(body) }).catch(() => {
    refuse("The workbench does not answer: is it still running? Your session is kept.");
    return null;
  });
}

const wordsOf = (html) => new DOMParser().parseFromString(html, "text/html").querySelector("p")?.textContent ?? "";

function refuse(words) {
  const place = byId("refused");
  if (!place) return;
  place.textContent = words;
  place.hidden = !words;
}

/* Two numbers, what has changed, and the point on the map. */
function show(found, preview) {
  const risk = (100 * (found.unique - facts.now.unique)) / Math.max(1, facts.records), bits = found.bits - facts.now.bits;
  byId("effect-title").textContent = preview ? "With this" : "Now";
  byId("risk").textContent = share(found.unique);
  byId("bits").textContent = found.bits.toFixed(2);
  tellChange(byId("risk-change"), risk, "points", preview, -1);
  tellChange(byId("bits-change"), bits, "bits", preview, 1);
  for (const name of ["unique", "small", "matches"]) byId(`n-${name}`).textContent = whole(found[name]);
  drawMap(byId("map"), facts, points, preview ? found : null);
  if (preview) byId("said").textContent = `${share(found.unique)} of records unique, ${found.bits.toFixed(2)} bits kept`;
}

function tellChange(place, change, unit, preview, good) {
  const size = Math.abs(change), small = size < 0.005;
  place.className = "change" + (!preview || small ? "" : change * good > 0 ? " better" : " worse");
  place.textContent = !preview ? "" : small ? "no change" : `${change > 0 ? "▲" : "▼"} ${size.toFixed(2)} ${unit}`;
}

/* What every level does, told beside it one after the other. */
async function tellLevels(asked) {
  for (const level of asked.levels) {
    while (flying || waiting) await pause(40);
    if (asked !== facts) return;
    const answer = await send("/shape/preview", { column: asked.column, change: { kind: "level", level } });
    if (asked !== facts || !answer?.ok) return;
    const found = await answer.json();
    points.set(level, found);
    for (const place of document.querySelectorAll("[data-told]"))
      if (place.dataset.told === level) place.textContent = `${share(found.unique)} · ${found.bits.toFixed(2)} bits`;
  }
  if (!editors[kind]?.touched) show(facts.now, false);
}

async function keep(level) {
  const change = editors[kind]?.change();
  if (!change) return;
  const answer = await send("/shape/keep", { column: facts.column, change, level, name: nameOf(change) });
  if (!answer) return;
  const text = await answer.text();
  if (!answer.ok) {
    refuse(wordsOf(text));
    return;
  }
  document.body.dataset.version = answer.headers.get("X-Version");
  redrawn(text);
  document.body.dispatchEvent(new Event("stepped"));
}

const nameOf = (change) => (["breaks", "mapping"].includes(change.kind) ? byId("level-name").value.trim() : "");

/* Put what the server has drawn in its place, or what stands there once more. */
function redrawn(html) {
  const place = byId("shape");
  if (html === undefined) { window.location.reload(); return; }
  place.innerHTML = html;
  htmx.process(place);
  begin();
  place.querySelector('.level[aria-pressed="true"]')?.focus();
}

document.addEventListener("htmx:after:swap", () => { begin(); editors?.mapping?.decorate(); });
new ResizeObserver(() => requestAnimationFrame(() => editors?.[kind]?.resized?.())).observe(byId("main"));
begin();
