// The list of columns: filter it, tick many, and say what they are at once. What is set is drawn by the server.
const form = () => document.getElementById("many-roles");
const rows = () => [...document.querySelectorAll("table.columns tbody tr")];
const box = (row) => row.querySelector('input[name="column"]');
let kept = {};

function filter() {
  if (!form()) return;
  const [text, role, doubtful] = ["text", "role", "doubtful"].map((name) => form().querySelector(`[data-filter="${name}"]`));
  kept = { text: text.value, role: role.value, doubtful: doubtful.checked };
  const words = text.value.trim().toLowerCase();
  for (const row of rows()) {
    row.hidden = !row.textContent.toLowerCase().includes(words)
      || (role.value && row.dataset.role !== role.value)
      || (doubtful.checked && row.dataset.confidence === "high");
    if (row.hidden) box(row).checked = false;
  }
  count();
}

function count() {
  const shown = rows().filter((row) => !row.hidden);
  const ticked = shown.filter((row) => box(row).checked).length;
  form().querySelector("[data-count]").textContent = ticked;
  form().querySelector("[data-apply]").disabled = !ticked;
  const all = document.querySelector("[data-all]");
  all.checked = ticked > 0 && ticked === shown.length;
  all.indeterminate = ticked > 0 && ticked < shown.length;
}

document.addEventListener("input", (event) => { if (event.target.matches("[data-filter]")) filter(); });
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) for (const row of rows()) if (!row.hidden) box(row).checked = event.target.checked;
  if (event.target.matches('[data-all], input[name="column"]')) count();
});
document.addEventListener("htmx:after:swap", () => {
  if (!form()) return;
  form().querySelector('[data-filter="text"]').value = kept.text ?? "";
  form().querySelector('[data-filter="role"]').value = kept.role ?? "";
  form().querySelector('[data-filter="doubtful"]').checked = kept.doubtful ?? false;
  filter();
});
