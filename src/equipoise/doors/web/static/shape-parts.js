// Small pieces of pictures: SVG elements, round numbers, plain bars.
export function svg(name, attributes = {}, ...inner) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

export function nice(size) {
  if (!(size > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 5, 10].find((step) => step * power >= size * (1 - 1e-9)) * power;
}

/* A number as it is read on an axis: thousands apart, no digits that rounding made. */
export const plain = (value) => Number(value.toPrecision(12)).toLocaleString("en-US", { maximumFractionDigits: 6 });

export function ticks(low, high, most) {
  const step = nice((high - low) / most), found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/* Named bars side by side. */
export function bars(place, rows, words) {
  const width = Math.max(300, place.clientWidth), height = 170, most = Math.max(1, ...rows.map((row) => row[1]));
  const each = width / Math.max(1, rows.length), every = Math.ceil(rows.length / (width / 70));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": words });
  rows.forEach(([name, n], at) => {
    const tall = Math.max(n ? 1 : 0, (height * n) / most);
    picture.append(svg("rect", { class: "bar", x: at * each, y: height - tall, width: Math.max(0.5, each - 1), height: tall }, svg("title", {}, `${name}: ${n.toLocaleString("en-US")}`)));
    if (at % every === 0) picture.append(svg("text", { x: at * each, y: height + 16 }, name));
  });
  place.replaceChildren(picture);
}
