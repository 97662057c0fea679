// Search in the index that index.js has set: all words must be there; titles count more than text. Works from the disk.
const query = document.getElementById("query");
const hits = document.getElementById("hits");
const menu = document.querySelector(".menu");
const worth = (part, words) => {
  const title = part.title.toLowerCase(), text = part.text.toLowerCase(), page = part.page.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const one = (title === word ? 40 : 0) + (title.includes(word) ? 20 : 0) + (page.includes(word) ? 4 : 0) + Math.min(text.split(word).length - 1, 5);
    if (!one) return 0;
    sum += one;
  }
  return sum;
};
const around = (text, word) => {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (at ? "… " : "") + text.slice(at, at + 140);
};
const search = () => {
  const words = query.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const best = words.length ? PARTS.map((part) => [worth(part, words), part]).filter(([sum]) => sum).sort((a, b) => b[0] - a[0]).slice(0, 12) : [];
  hits.replaceChildren(...best.map(([, part]) => {
    const item = document.createElement("li"), link = document.createElement("a"), where = document.createElement("span"), text = document.createElement("small");
    link.href = BASE + part.url;
    link.append(part.title);
    where.append(part.page === part.title ? "" : ` ${part.page}`);
    text.append(around(part.text, words[0]));
    link.append(where, text);
    item.append(link);
    return item;
  }));
  if (words.length && !best.length) {
    const none = document.createElement("li");
    none.append("Nothing found.");
    hits.append(none);
  }
  hits.hidden = !words.length;
};
query.hidden = false;
query.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== query) { event.preventDefault(); query.focus(); }
  if (event.key === "Escape") { query.value = ""; search(); }
  if (event.key === "Enter" && document.activeElement === query) hits.querySelector("a")?.click();
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search") || event.target.closest("#hits a")) hits.hidden = true; });
query.addEventListener("focus", search);
if (matchMedia("(max-width: 800px)").matches) menu.open = false;
const here = menu.querySelector("[aria-current]");
if (here && here.offsetTop > menu.clientHeight / 2) menu.scrollTop = here.offsetTop - menu.clientHeight / 3;
