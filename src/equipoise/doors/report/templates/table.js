// A table: one block at a time, and what there is to say of a cell in a panel. Without scripts the links lead to the rows.
const panel = document.createElement("dialog");
panel.className = "panel";
panel.setAttribute("aria-label", "About this cell");
document.body.append(panel);
let opener = null;

function put(tag, text, parent, name) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
}

function titleOf(cell) {
  const table = cell.closest("table"), block = cell.closest(".block");
  const column = table.tHead.rows[0].cells[cell.cellIndex].textContent;
  return [block.dataset.name, cell.parentElement.cells[0].textContent, column].filter(Boolean).join(" · ");
}

function fill(link) {
  const target = document.getElementById(link.hash.slice(1));
  panel.replaceChildren();
  const close = put("button", "Close", panel);
  close.type = "button";
  close.addEventListener("click", shut);
  if (!target || !target.matches("tr")) {
    put("h2", titleOf(link.closest("td")), panel);
    const words = target ? target.cloneNode(true) : null;
    if (words) words.querySelector(".swatch").remove();
    put("p", words ? words.textContent.trim() : "Suppressed.", panel);
    return close;
  }
  put("h2", target.cells[0].textContent, panel);
  const heads = target.closest("table").tHead.rows[0].cells, list = put("dl", "", panel);
  for (let i = 1; i < target.cells.length; i += 1) {
    put("dt", heads[i].textContent, list);
    put("dd", "", list).append(...[...target.cells[i].cloneNode(true).childNodes]);
  }
  const rest = document.getElementById("who-else");
  if (rest) panel.append(...[...rest.cloneNode(true).childNodes]);
  return close;
}

function shut() {
  panel.close();
  if (opener) { opener.closest("td").classList.remove("open"); opener.focus(); }
  opener = null;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest('.crosses a[href^="#"]');
  if (!link) return;
  event.preventDefault();
  if (opener) opener.closest("td").classList.remove("open");
  opener = link;
  link.closest("td").classList.add("open");
  const close = fill(link);
  panel.classList.toggle("left", link.getBoundingClientRect().left > window.innerWidth / 2);
  if (!panel.open) panel.show();
  close.focus();
});

document.addEventListener("keydown", (event) => { if (event.key === "Escape" && panel.open) shut(); });

// Arrows lead from marked cell to marked cell.
document.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const at = step && document.activeElement.closest(".crosses td > a");
  if (!at) return;
  const links = [...at.closest("table").querySelectorAll("td > a")];
  const next = links[links.indexOf(at) + step];
  if (next) { event.preventDefault(); next.focus(); }
});

function choose() {
  for (const group of document.querySelectorAll(".crosses:not([data-chosen])")) {
    const blocks = [...group.querySelectorAll(":scope > .block")];
    if (blocks.length < 2) continue;
    group.dataset.chosen = "yes";
    const label = document.createElement("label"), select = document.createElement("select");
    label.className = "chooser";
    label.append(`${blocks[0].querySelector("h3").textContent.replace(/: [^:]*$/, "")}: `, select);
    blocks.forEach((block, i) => {
      const marked = block.querySelectorAll("td > a").length;
      put("option", block.dataset.name + (marked ? ` (${marked} marked)` : ""), select).value = String(i);
    });
    const show = () => blocks.forEach((block, i) => block.classList.toggle("away", String(i) !== select.value));
    select.value = String(blocks.length - 1);
    select.addEventListener("change", show);
    group.prepend(label);
    show();
  }
}
choose();
document.addEventListener("htmx:after:swap", choose);
