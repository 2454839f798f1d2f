// A map of pictures on a canvas: dots or the pictures themselves, moved by dragging, magnified by the wheel or two fingers.
// By keyboard: arrows go from picture to picture, Enter picks one, + and - magnify, Escape leaves; each is told to who listens.
// It begins with pictures where there are any, which grow with the zoom.
// showMap(box, {places: [[x, y]], classes: [number or -1], names: [class], tip(element, i) that fills it, tile(i, side) -> {image, x, y,
// side} or null, pick(i) where one can be picked, away(i) where one may be left out, largest: pixels a side of a picture})
// The same hue for the same class on every page; more classes than hues go round the circle.
const HUES = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f", "#edc948", "#76b7b2", "#ff9da7", "#8a8f98"];
function classColour(c, count) {
  if (c < 0) return getComputedStyle(document.documentElement).getPropertyValue("--blue");
  return count <= HUES.length ? HUES[c] : `hsl(${(c * 360 / count).toFixed(0)} 60% 55%)`;
}
function showMap(box, map) {
  const canvas = box.querySelector("canvas"), tip = box.querySelector(".tip"), paint = canvas.getContext("2d");
  const view = { x: 0, y: 0, zoom: 1 };
  const swap = box.querySelector("[data-pictures]");
  let pictures = Boolean(swap), over = -1, last = -1, asked = false, only = -1;
  const away = i => only >= 0 && map.classes[i] !== only || Boolean(map.away && map.away(i));
  const size = () => [canvas.clientWidth, canvas.clientHeight];
  const PAD = 24;
  function at(i) {
    const [w, h] = size(), [x, y] = map.places[i];
    return [(x * (w - 2 * PAD) + PAD - w / 2) * view.zoom + w / 2 + view.x, (y * (h - 2 * PAD) + PAD - h / 2) * view.zoom + h / 2 + view.y];
  }
  // As large as there is room for at first; places part faster than pictures grow.
  function tileSide() {
    const [w, h] = size(), first = Math.max(22, Math.min(56, .9 * Math.sqrt(w * h / map.places.length)));
    return Math.min(map.largest || 240, first * view.zoom ** .75);
  }
  function draw() {
    asked = false;
    const [w, h] = size(), dots = window.devicePixelRatio || 1;
    if (!w) return;
    if (canvas.width !== Math.round(w * dots)) { canvas.width = Math.round(w * dots); canvas.height = Math.round(h * dots); }
    paint.setTransform(dots, 0, 0, dots, 0, 0);
    paint.clearRect(0, 0, w, h);
    const side = tileSide(), radius = Math.min(6, 2.4 + view.zoom * .5);
    function put(tile, x, y) {
      paint.imageSmoothingEnabled = tile.side > 48 || side * dots < 2 * tile.side; // few pixels are shown as squares
      paint.drawImage(tile.image, tile.x, tile.y, tile.side, tile.side, x - side / 2, y - side / 2, side, side);
    }
    for (let i = 0; i < map.places.length; i++) {
      if (away(i)) continue;
      const [x, y] = at(i);
      if (x < -side || y < -side || x > w + side || y > h + side) continue;
      const tile = pictures && map.tile(i, side);
      if (tile) put(tile, x, y);
      else {
        paint.fillStyle = classColour(map.classes[i], map.names.length);
        paint.globalAlpha = .8;
        paint.beginPath(); paint.arc(x, y, radius, 0, 7); paint.fill();
        paint.globalAlpha = 1;
      }
    }
    if (over >= 0) {
      // Above all others, in a frame that is seen on any picture.
      const [x, y] = at(over), tile = pictures && map.tile(over, side), half = tile ? side / 2 + 2 : 8, style = getComputedStyle(box);
      if (tile) put(tile, x, y);
      paint.beginPath();
      tile ? paint.rect(x - half, y - half, 2 * half, 2 * half) : paint.arc(x, y, half, 0, 7);
      for (const [colour, width] of [["--card", 6], ["--ink", 2.5]]) { paint.strokeStyle = style.getPropertyValue(colour); paint.lineWidth = width; paint.stroke(); }
    }
  }
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  function nearest(x, y, within = Math.max(18, pictures ? tileSide() / 2 : 0)) {
    let best = -1, least = within * within;
    for (let i = 0; i < map.places.length; i++) {
      if (away(i)) continue;
      const [a, b] = at(i), d = (a - x) ** 2 + (b - y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }
  function show(i) {
    over = i;
    tip.style.display = i < 0 ? "none" : "block";
    if (i >= 0) {
      last = i;
      map.tip(tip, i);
      // Beside the picture, on the side where there is more room.
      const [w] = size(), [a, b] = at(i), gap = 16 + (pictures ? tileSide() / 2 : 0), wide = tip.offsetWidth;
      tip.style.left = canvas.offsetLeft + Math.max(0, a < w / 2 || a + gap + wide < w ? Math.min(w - wide, a + gap) : a - gap - wide) + "px";
      tip.style.top = Math.max(4, b - 60) + "px";
    }
    redraw();
  }
  const point = (x, y) => show(nearest(x, y));
  function magnify(factor, x, y) {
    const [w, h] = size(), zoom = Math.max(1, Math.min(40, view.zoom * factor)), f = zoom / view.zoom;
    view.x = (view.x + w / 2 - x) * f + x - w / 2; view.y = (view.y + h / 2 - y) * f + y - h / 2;
    view.zoom = zoom;
    if (zoom === 1) view.x = view.y = 0;
    redraw();
  }
  const fingers = new Map();
  let moved = 0;
  const place = e => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
  canvas.addEventListener("pointerdown", e => { canvas.setPointerCapture(e.pointerId); fingers.set(e.pointerId, place(e)); moved = 0; });
  canvas.addEventListener("pointermove", e => {
    const [x, y] = place(e), before = fingers.get(e.pointerId);
    if (!before) return point(x, y);
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== e.pointerId)[1];
      const far = p => Math.hypot(p[0] - other[0], p[1] - other[1]);
      magnify(far([x, y]) / Math.max(8, far(before)), (x + other[0]) / 2, (y + other[1]) / 2);
    } else { view.x += x - before[0]; view.y += y - before[1]; redraw(); }
    moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    fingers.set(e.pointerId, [x, y]);
  });
  const lift = e => {
    fingers.delete(e.pointerId);
    if (e.type === "pointerup" && moved < 5) { point(...place(e)); if (over >= 0 && map.pick) map.pick(over); }
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => show(-1));
  canvas.addEventListener("wheel", e => { if (!e.ctrlKey && view.zoom === 1 && e.deltaY > 0) return; e.preventDefault(); magnify(Math.exp(-e.deltaY * .002), ...place(e)); }, { passive: false });
  walkByKeys();
  const showSwap = () => { swap.classList.toggle("on", pictures); swap.setAttribute("aria-pressed", pictures); };
  if (swap) { swap.onclick = () => { pictures = !pictures; showSwap(); redraw(); }; showSwap(); }
  const home = box.querySelector("[data-home]");
  if (home) home.onclick = () => { view.x = view.y = 0; view.zoom = 1; redraw(); };
  const legend = box.querySelector(".legend");
  if (legend && map.names.length && map.names.length <= 40) {
    legend.replaceChildren(...map.names.map((name, c) => {
      const item = document.createElement("span"), dot = document.createElement("i");
      dot.style.background = classColour(c, map.names.length);
      item.append(dot, name); item.style.cursor = "pointer";
      item.tabIndex = 0; item.setAttribute("role", "button"); item.setAttribute("aria-pressed", false);
      item.onclick = () => { only = only === c ? -1 : c; [...legend.children].forEach((s, j) => { s.style.opacity = only < 0 || only === j ? 1 : .35; s.setAttribute("aria-pressed", only === j); }); redraw(); };
      item.onkeydown = e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); item.click(); } };
      return item;
    }));
  }
  function walkByKeys() {
    let heard = box.querySelector(".heard");
    if (!heard) { heard = document.createElement("p"); heard.className = "heard"; heard.setAttribute("aria-live", "polite"); box.append(heard); }
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application"); // so that screen readers leave the arrow keys to it
    canvas.setAttribute("aria-label", `Map of ${map.places.length} pictures, alike ones near each other. Arrow keys go to the nearest picture, ${map.pick ? "Enter opens it, " : ""}plus and minus magnify, Escape leaves.`);
    // The nearest within 45° of a direction; those at the very same place follow by their number.
    function next(i, [dx, dy]) {
      const [x, y] = at(i);
      let best = -1, least = Infinity;
      for (let j = 0; j < map.places.length; j++) {
        if (j === i || away(j)) continue;
        const [a, b] = at(j), d = Math.hypot(a - x, b - y), far = d || Math.abs(j - i) * 1e-9;
        const along = d ? (a - x) * dx + (b - y) * dy : (j - i) * (dx + dy);
        if (along > 0 && along >= d * .7071 && far < least) { least = far; best = j; }
      }
      return best;
    }
    function stand(i) {
      if (i < 0) return;
      const [w, h] = size(), [x, y] = at(i), edge = PAD * Math.min(2, view.zoom);
      const into = (v, most) => Math.max(edge, Math.min(most - edge, v)) - v;
      view.x += into(x, w); view.y += into(y, h);
      show(i);
      heard.textContent = tip.textContent;
    }
    const enter = () => { const [w, h] = size(); stand(last >= 0 && !away(last) ? last : nearest(w / 2, h / 2, Infinity)); };
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const zooms = { "+": 1.5, "=": 1.5, "-": 1 / 1.5, "_": 1 / 1.5 };
    function zoom(factor) {
      const [w, h] = size();
      magnify(factor, ...(over < 0 ? [w / 2, h / 2] : at(over)));
      if (over >= 0) stand(over);
    }
    canvas.addEventListener("keydown", e => {
      if (e.ctrlKey || e.altKey || e.metaKey) return;
      if (ways[e.key]) {
        if (last < 0 || away(last)) enter();
        else { const to = next(last, ways[e.key]); stand(to < 0 ? last : to); if (to < 0) heard.textContent = `No picture further ${e.key.slice(5).toLowerCase()}`; }
      } else if (zooms[e.key]) zoom(zooms[e.key]);
      else if (e.key === "Enter" && over >= 0 && map.pick) map.pick(over);
      else if (e.key === "Escape") canvas.blur();
      else return;
      e.preventDefault();
    });
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) enter(); });
    canvas.addEventListener("blur", () => { show(-1); heard.textContent = ""; });
  }
  new ResizeObserver(redraw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
  return redraw;
}
