const spec = JSON.parse(document.getElementById("map-spec").textContent);
const place = document.getElementById("map");
vegaEmbed(place, spec, { actions: false, renderer: "svg", tooltip: { theme: "page" } })
  .then(() => { place.dataset.drawn = "yes"; })
  .catch(() => { place.textContent = "The map could not be drawn here; the tables below hold the same numbers."; });
