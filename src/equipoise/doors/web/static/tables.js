// Where the keyboard was stays where it was when the settings are drawn again.
let held = null;

document.addEventListener("htmx:before:swap", () => {
  const at = document.activeElement;
  held = at && at.id && at.closest("#tables") ? at.id : null;
});

document.addEventListener("htmx:after:swap", () => {
  const at = held && document.getElementById(held);
  if (at && document.activeElement !== at) at.focus({ preventScroll: true });
  held = null;
});
