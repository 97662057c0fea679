// Ticking several columns at once; what follows from it is asked as for a single tick.
const boxes = () => [...document.querySelectorAll('#knows input[name="known"]')];

function tick(wanted) {
  for (const box of boxes()) box.checked = wanted(box);
  document.getElementById("knows").dispatchEvent(new Event("change", { bubbles: true }));
}

const CHOICES = { keys: (box) => "key" in box.dataset, all: () => true, none: () => false };

document.addEventListener("click", (event) => {
  const choice = event.target.closest("[data-tick]");
  if (choice) tick(CHOICES[choice.dataset.tick]);
  const set = event.target.closest("[data-places]");
  if (!set) return;
  const places = JSON.parse(set.dataset.places).map(String);
  tick((box) => places.includes(box.value));
  const heading = document.getElementById("h-knew");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ block: "start" });
});
