// The little map: information to the right, risk upwards; the levels of the key, where it stands and where it would.
import { plain, svg, ticks } from "/static/shape-parts.js";

const WIDE = 300, TALL = 210, LEFT = 40, RIGHT = 12, TOP = 12, BOTTOM = 36;

export function drawMap(place, facts, levels, preview) {
  const of = (found) => [found.bits, (100 * found.unique) / Math.max(1, facts.records)];
  const all = [facts.original, facts.now, ...levels.values(), ...(preview ? [preview] : [])].map(of);
  const near = 0.8 * Math.min(...all.map((point) => point[0]), facts.limits.entropy ?? Infinity);
  const far = near + Math.max(1e-9, ...all.map((point) => point[0] - near)) * 1.06, high = Math.max(1e-9, ...all.map((point) => point[1])) * 1.1;
  const x = (bits) => LEFT + ((WIDE - LEFT - RIGHT) * (Math.max(near, Math.min(bits, far)) - near)) / (far - near);
  const y = (risk) => TALL - BOTTOM - ((TALL - TOP - BOTTOM) * Math.min(risk, high)) / high;
  const told = preview ?? facts.now, [bits, risk] = of(told);
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDE} ${TALL}`, role: "img",
    "aria-label": `Map of risk and information: ${risk.toFixed(2)} percent of records unique, ${bits.toFixed(2)} bits kept`,
  });
  const { uniques, entropy } = facts.limits;
  if (uniques !== undefined || entropy !== undefined) {
    const left = x(entropy ?? near), top = y(uniques === undefined ? high : 100 * uniques);
    picture.append(svg("rect", { class: "allowed", x: left, y: top, width: Math.max(0, WIDE - RIGHT - left), height: Math.max(0, TALL - BOTTOM - top) }, svg("title", {}, "Inside the limits of the policy")));
  }
  for (const at of ticks(near, far, 4)) picture.append(svg("text", { class: "tick", x: x(at), y: TALL - BOTTOM + 14, "text-anchor": "middle" }, plain(at)));
  for (const at of ticks(0, high, 4)) {
    picture.append(svg("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: y(at), y2: y(at) }));
    picture.append(svg("text", { class: "tick", x: LEFT - 5, y: y(at) + 4, "text-anchor": "end" }, `${plain(at)}`));
  }
  picture.append(svg("text", { class: "axis", x: WIDE - RIGHT, y: TALL - 4, "text-anchor": "end" }, "bits kept →"));
  picture.append(svg("text", { class: "axis", x: 2, y: TALL - 4 }, "↑ % unique"));
  for (const [name, found] of levels) dot(picture, "tried", x, y, of(found), 3.5, name === "original" ? "as it came" : name);
  const start = of(facts.now);
  if (preview) picture.append(svg("line", { class: "way", x1: x(start[0]), y1: y(start[1]), x2: x(bits), y2: y(risk) }));
  dot(picture, "now", x, y, start, 6, "now");
  if (preview) dot(picture, "next", x, y, [bits, risk], 6.5, "with this");
  place.replaceChildren(picture);
}

function dot(picture, name, x, y, [bits, risk], r, words) {
  picture.append(svg("circle", { class: name, cx: x(bits), cy: y(risk), r }, svg("title", {}, `${words}: ${risk.toFixed(2)} % unique, ${bits.toFixed(2)} bits`)));
}
