for (const source of document.querySelectorAll('script[type="application/json"][id$="-spec"]')) {
  const place = document.getElementById(source.id.slice(0, -"-spec".length));
  vegaEmbed(place, JSON.parse(source.textContent), { actions: false, renderer: "svg", tooltip: { theme: "page" } })
    .then(() => { place.dataset.drawn = "yes"; })
    .catch(() => { place.textContent = "The chart could not be drawn here; the tables below hold the same numbers."; });
}
