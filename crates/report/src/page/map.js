// A map of pictures on a canvas: dots or the pictures themselves, moved by dragging, magnified by the wheel or two fingers.
// show(box, {places: [[x, y]], classes: [number or -1], names: [class], label(i), tile(i) -> {image, x, y, side} or null, pick(i)})
// The same hue for the same class on every page; more classes than hues go round the circle.
const HUES = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f", "#edc948", "#76b7b2", "#ff9da7", "#8a8f98"];
function classColour(c, count) {
  if (c < 0) return getComputedStyle(document.documentElement).getPropertyValue("--blue");
  return count <= HUES.length ? HUES[c] : `hsl(${(c * 360 / count).toFixed(0)} 60% 55%)`;
}
function showMap(box, map) {
  const canvas = box.querySelector("canvas"), tip = box.querySelector(".tip"), paint = canvas.getContext("2d");
  const view = { x: 0, y: 0, zoom: 1 };
  let pictures = false, over = -1, asked = false, only = -1;
  const size = () => [canvas.clientWidth, canvas.clientHeight];
  const PAD = 24;
  function at(i) {
    const [w, h] = size(), [x, y] = map.places[i];
    return [(x * (w - 2 * PAD) + PAD - w / 2) * view.zoom + w / 2 + view.x, (y * (h - 2 * PAD) + PAD - h / 2) * view.zoom + h / 2 + view.y];
  }
  function draw() {
    asked = false;
    const [w, h] = size(), dots = window.devicePixelRatio || 1;
    if (!w) return;
    if (canvas.width !== Math.round(w * dots)) { canvas.width = Math.round(w * dots); canvas.height = Math.round(h * dots); }
    paint.setTransform(dots, 0, 0, dots, 0, 0);
    paint.clearRect(0, 0, w, h);
    const side = Math.max(12, Math.min(64, 18 * view.zoom)), radius = Math.min(6, 2.4 + view.zoom * .5);
    for (let i = 0; i < map.places.length; i++) {
      if (only >= 0 && map.classes[i] !== only) continue;
      const [x, y] = at(i);
      if (x < -side || y < -side || x > w + side || y > h + side) continue;
      const tile = pictures && map.tile(i);
      if (tile) {
        paint.drawImage(tile.image, tile.x, tile.y, tile.side, tile.side, x - side / 2, y - side / 2, side, side);
      } else {
        paint.fillStyle = classColour(map.classes[i], map.names.length);
        paint.globalAlpha = .8;
        paint.beginPath(); paint.arc(x, y, radius, 0, 7); paint.fill();
        paint.globalAlpha = 1;
      }
    }
    if (over >= 0) {
      const [x, y] = at(over);
      paint.strokeStyle = getComputedStyle(box).color; paint.lineWidth = 2;
      paint.beginPath(); paint.arc(x, y, 8, 0, 7); paint.stroke();
    }
  }
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
  function nearest(x, y) {
    let best = -1, least = 18 * 18;
    for (let i = 0; i < map.places.length; i++) {
      if (only >= 0 && map.classes[i] !== only) continue;
      const [a, b] = at(i), d = (a - x) ** 2 + (b - y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }
  function point(x, y) {
    over = nearest(x, y);
    tip.style.display = over < 0 ? "none" : "block";
    if (over >= 0) {
      map.tip(tip, over);
      const [w] = size(), [a, b] = at(over);
      tip.style.left = Math.max(4, Math.min(w - 150, a + 16)) + "px";
      tip.style.top = Math.max(4, b - 60) + "px";
    }
    redraw();
  }
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
  canvas.addEventListener("pointerleave", () => { over = -1; tip.style.display = "none"; redraw(); });
  canvas.addEventListener("wheel", e => { if (!e.ctrlKey && view.zoom === 1 && e.deltaY > 0) return; e.preventDefault(); magnify(Math.exp(-e.deltaY * .002), ...place(e)); }, { passive: false });
  const swap = box.querySelector("[data-pictures]");
  if (swap) swap.onclick = () => { pictures = !pictures; swap.classList.toggle("on", pictures); redraw(); };
  const home = box.querySelector("[data-home]");
  if (home) home.onclick = () => { view.x = view.y = 0; view.zoom = 1; redraw(); };
  const legend = box.querySelector(".legend");
  if (legend && map.names.length && map.names.length <= 40) {
    legend.replaceChildren(...map.names.map((name, c) => {
      const item = document.createElement("span"), dot = document.createElement("i");
      dot.style.background = classColour(c, map.names.length);
      item.append(dot, name); item.style.cursor = "pointer";
      item.onclick = () => { only = only === c ? -1 : c; [...legend.children].forEach((s, j) => s.style.opacity = only < 0 || only === j ? 1 : .35); redraw(); };
      return item;
    }));
  }
  new ResizeObserver(redraw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
  return redraw;
}
