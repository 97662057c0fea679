// Categories: tick several, merge them into a named group, take groups apart; all others may become one.
const byId = (id) => document.getElementById(id);

export class Groups {
  constructor(editor, changed) {
    const { groups, kept, other, frequent, rare } = editor.mapping;
    this.groups = groups.map(({ name, codes }) => ({ name, codes: new Set(codes) }));
    [this.kept, this.other, this.frequent, this.rare] = [new Set(kept), other, frequent, rare];
    this.size = editor.size;
    this.ticked = new Set();
    this.touched = false;
    this.changed = () => { this.touched = true; this.draw(); changed(); };
    byId("merge").addEventListener("click", () => this.merge());
    byId("group-name").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); this.merge(); } });
    byId("merge-rare")?.addEventListener("click", () => { this.rare.forEach((code) => this.ticked.add(code)); this.decorate(); });
    byId("others").addEventListener("change", () => this.setOthers());
    byId("other-name").addEventListener("input", () => this.setOthers());
    byId("frequent").addEventListener("input", () => this.setOthers());
    byId("categories").addEventListener("change", ({ target }) => this.tick(target));
    byId("others").checked = other !== null;
    if (other !== null) { byId("other-name").value = other; byId("frequent").value = Math.max(1, this.kept.size); }
    this.draw();
  }

  tick(box) {
    const row = box.closest("tr[data-code]");
    if (!row) return;
    if (box.checked) this.ticked.add(Number(row.dataset.code)); else this.ticked.delete(Number(row.dataset.code));
    this.decorate();
  }

  merge() {
    if (!this.ticked.size) return;
    const name = byId("group-name").value.trim() || byId("group-name").placeholder;
    for (const group of this.groups) this.ticked.forEach((code) => group.codes.delete(code));
    this.ticked.forEach((code) => this.kept.delete(code));
    const known = this.groups.find((group) => group.name === name);
    if (known) this.ticked.forEach((code) => known.codes.add(code));
    else this.groups.push({ name, codes: new Set(this.ticked) });
    this.groups = this.groups.filter((group) => group.codes.size);
    this.ticked.clear();
    byId("group-name").value = "";
    this.changed();
  }

  setOthers() {
    this.other = byId("others").checked ? byId("other-name").value.trim() || "Other" : null;
    const grouped = new Set(this.groups.flatMap((group) => [...group.codes]));
    const most = Math.max(0, Math.min(200, Number(byId("frequent").value) || 0));
    this.kept = new Set(this.other === null ? [] : this.frequent.filter((code) => !grouped.has(code)).slice(0, most));
    this.changed();
  }

  change() {
    const groups = this.groups.map(({ name, codes }) => ({ name, codes: [...codes] }));
    if (!groups.length && this.other === null) return null;
    return { kind: "mapping", groups, kept: [...this.kept], other: this.other, of: this.size };
  }

  draw() {
    byId("keep-frequent").hidden = this.other === null;
    const shown = this.groups.map((group) => {
      const made = document.createElement("li"), name = document.createElement("b"), apart = document.createElement("button");
      name.textContent = group.name;
      apart.type = "button";
      apart.className = "link";
      apart.textContent = "take apart";
      apart.setAttribute("aria-label", `take apart the group ${group.name}`);
      apart.addEventListener("click", () => { this.groups = this.groups.filter((other) => other !== group); this.changed(); });
      made.append(name, ` ${group.codes.size} categor${group.codes.size === 1 ? "y" : "ies"} `, apart);
      return made;
    });
    byId("groups").replaceChildren(...shown);
    this.decorate();
  }

  /* Ticks and groups on the rows that are listed. */
  decorate() {
    const names = new Map(this.groups.flatMap(({ name, codes }) => [...codes].map((code) => [code, name])));
    const texts = [];
    for (const row of document.querySelectorAll("#categories tr[data-code]")) {
      const code = Number(row.dataset.code), name = names.get(code);
      const rest = this.other !== null && !this.kept.has(code) ? this.other : "";
      row.querySelector(".group").textContent = name ?? rest;
      row.classList.toggle("merged", Boolean(name || rest));
      row.querySelector("input").checked = this.ticked.has(code);
      if (this.ticked.has(code)) texts.push(row.querySelector("label").textContent);
    }
    byId("merge").disabled = !this.ticked.size;
    byId("merge").textContent = this.ticked.size ? `Merge ${this.ticked.size.toLocaleString("en-US")}` : "Merge";
    byId("group-name").placeholder = texts.length && texts.length === this.ticked.size && texts.length < 4 ? texts.join(", ").slice(0, 200) : "Together";
  }
}
