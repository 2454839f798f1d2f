// Tabs of rounds, tiles cut from sprites, and the map.
for (const tabs of document.querySelectorAll(".tabs[data-for]")) {
  const panels = [...document.querySelectorAll(`[data-panel="${tabs.dataset.for}"]`)], buttons = [...tabs.children];
  const choose = chosen => { buttons.forEach((b, i) => b.setAttribute("aria-selected", i === chosen)); panels.forEach((p, i) => p.hidden = i !== chosen); };
  buttons.forEach((b, i) => b.onclick = () => choose(i));
  choose((buttons.length - 1) >> 1); // in the middle one sees both what was chosen and what was not
}
const data = JSON.parse(document.getElementById("map-data")?.textContent || "null");
if (data) {
  const image = new Image(), ready = { drawn: false };
  const names = data.names;
  const redraw = showMap(document.querySelector(".map"), {
    places: data.places.map(([x, y]) => [x / 1000, y / 1000]), classes: data.classes, names,
    largest: 3 * data.side,
    tile: i => ready.drawn ? { image, x: i % data.columns * data.side, y: Math.floor(i / data.columns) * data.side, side: data.side } : null,
    tip: (tip, i) => {
      tip.replaceChildren();
      if (ready.drawn) {
        const part = document.createElement("i"), across = (i, n) => n > 1 ? i / (n - 1) * 100 : 0;
        part.style.backgroundImage = `url(${image.src})`;
        part.style.backgroundSize = `${data.columns * 100}% ${data.rows * 100}%`;
        part.style.backgroundPosition = `${across(i % data.columns, data.columns)}% ${across(Math.floor(i / data.columns), data.rows)}%`;
        tip.append(part);
      }
      const told = [names[data.classes[i]], data.labels ? data.labels[i] : `picture ${data.chosen[i]}`];
      tip.append(told.filter(Boolean).join(", "));
    },
  });
  if (data.sprite) { image.onload = () => { ready.drawn = true; redraw(); }; image.src = data.sprite; }
}
