// The views beside the search: what is computed for them is computed when one is first opened, and a sentence says so meanwhile.
async function waiting(said, sentence, work) {
  const slow = setTimeout(() => { $(said).textContent = sentence; }, 150);
  try { return await work(); } finally { clearTimeout(slow); }
}
const compared = "All pictures are being compared with each other, which is done once: seconds for thousands, a minute for tens of thousands …";

// Clusters: rows of typical pictures, and each cluster whole.
let divided = 12;
const labelsOf = pictures => {
  const counts = new Map();
  for (const { label } of pictures) if (label) counts.set(label, (counts.get(label) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 2).map(([label, n]) => `${label} ${Math.round(n / pictures.length * 100)}%`).join(", ");
};
async function openClusters(k = divided, number) {
  divided = Number(k) || 12;
  if (number !== undefined) return openCluster(number);
  const listed = $("clusterList"), mine = listed.asked = {};
  $("clusterMore").hidden = true;
  listed.replaceChildren();
  const got = await waiting("clustersSaid", "The clusters are being computed, which is done once: a few seconds …", () => ask(`/api/clusters?${query({ k: divided })}`));
  if (listed.asked !== mine) return;
  divided = got.k;
  $("divisions").replaceChildren(...got.choices.map(n => make("a", { className: "button", href: address(`clusters/${n}`), textContent: n, ariaCurrent: n === divided ? "true" : null })));
  const some = got.divided < about.pictures ? `, of ${count(got.divided)} pictures evenly taken` : "";
  $("clustersSaid").textContent = `${many(got.clusters.length, "cluster")}${some}, the largest first.`;
  const across = Math.max(1, Math.floor((listed.clientWidth + 10) / 127)), shown = across < 4 ? 6 : across; // one row, two on a phone
  listed.replaceChildren(...got.clusters.map(cluster => {
    const words = labelsOf(cluster.typical), all = make("a", { className: "button", href: address(`clusters/${divided}/${cluster.cluster}`), textContent: `All ${count(cluster.size)}` });
    const grid = make("div", { className: "grid row" });
    fill(grid, cluster.typical.slice(0, shown));
    return make("section", { className: "group" }, make("div", { className: "over" }, make("h2", { textContent: `Cluster ${cluster.cluster + 1}` }), make("span", { className: "soft small", textContent: `${many(cluster.size, "picture")} · similarity ${cluster.similarity.toFixed(2)}${words && " · " + words}` }), all), grid);
  }));
}
async function openCluster(number) {
  const grid = make("div", { className: "grid" }), mine = $("clusterList").asked = {};
  const load = from => ask(`/api/clusters/${number}?${query({ k: divided, from, count: 60 })}`);
  const got = await waiting("clustersSaid", "The clusters are being computed, which is done once: a few seconds …", () => list(grid, $("clusterMore"), load));
  if ($("clusterList").asked !== mine) return;
  $("divisions").replaceChildren(make("a", { className: "button", href: address(`clusters/${divided}`), textContent: "All clusters" }));
  $("clustersSaid").textContent = `Cluster ${got.cluster + 1} of ${divided}: ${many(got.of, "picture")}, the most typical first.`;
  $("clusterList").replaceChildren(grid);
}

// Duplicates: groups, the one to keep first. The server says how far it is for as long as it looks for them.
async function findDuplicates(from, still) {
  for (;;) {
    const got = await ask(`/api/duplicates?${query({ from, count: 30 })}`);
    if (got.groups || !still()) return got;
    $("duplicatesSaid").textContent = `Looking for copies, which is done once: ${got.stage}` + (got.total ? `, ${count(got.done)} of ${count(got.total)} …` : " …");
  }
}
const sides = p => p.height_and_width ? ` · ${p.height_and_width[1]}×${p.height_and_width[0]}` : "";
function duplicateGroup(g) {
  const grid = make("div", { className: "grid row" });
  const others = g.others.map(p => ({ ...p, note: `${p.kind}${sides(p)}`, told: `${p.kind}: the detail of both correlates by ${p.score.toFixed(3)}` }));
  fill(grid, [{ ...g.keep, note: `keep${sides(g.keep)}`, told: "this one is suggested to be kept", kept: true }, ...others]);
  const why = g.why.length ? ` (${g.why.join(", ")})` : "";
  return make("section", { className: "group" }, make("p", { className: "soft small", textContent: `keep ${short(g.keep.name, 80)}${why}` }), grid);
}
async function openDuplicates() {
  const listed = $("duplicateList"), mine = listed.asked = {}, still = () => listed.asked === mine && viewed === "duplicates";
  $("duplicatesMore").hidden = $("selectCopies").hidden = true;
  listed.replaceChildren();
  const got = await findDuplicates(0, still);
  if (!still()) return;
  const kinds = Object.entries(got.kinds).map(([kind, n]) => `${count(n)} ${kind}`).join(", ");
  const unread = got.unread ? ` ${many(got.unread, "picture")} could not be read.` : "";
  $("duplicatesSaid").textContent = (got.of ? `${got.copies === 1 ? "1 copy" : count(got.copies) + " copies"} in ${many(got.of, "group")}: ${kinds}.` : "No two pictures are the same.") + unread;
  const rest = () => { $("duplicatesMore").hidden = listed.children.length >= got.of; $("duplicatesMore").textContent = `More of ${count(got.of)}`; };
  const add = groups => { listed.append(...groups.map(duplicateGroup)); $("selectCopies").hidden = !got.of; rest(); };
  add(got.groups);
  $("duplicatesMore").onclick = async () => {
    try { const more = await findDuplicates(listed.children.length, still); if (still()) add(more.groups); } catch (error) { trouble(error); }
  };
}
$("selectCopies").onclick = () => {
  $("duplicateList").querySelectorAll(".pic").forEach(pic => { if (!pic.picture.kept) set(pic.picture, true); });
  showSelected();
};

async function openOutliers() {
  const noted = p => ({ ...p, note: p.score.toFixed(3), told: "1 less the mean similarity to the ten nearest: near 0, many are like it" });
  const load = async from => { const got = await ask(`/api/outliers?${query({ from, count: 60 })}`); return { ...got, pictures: got.pictures.map(noted) }; };
  const got = await waiting("outliersSaid", compared, () => list($("outlierGrid"), $("outliersMore"), load));
  if (got) $("outliersSaid").textContent = got.compared < about.pictures ? `Among ${count(got.compared)} of ${count(about.pictures)} pictures, evenly taken.` : "";
}

// What each round of a run discovered.
let round = 0;
async function drawHoods() {
  const got = await ask(`/api/neighbourhoods?round=${round}&at=${$("at").value}&count=36`);
  const all = got.anchors === got.pictures;
  $("hoodsSaid").textContent = `${all ? "All" : count(got.anchors) + " of"} ${count(got.pictures)} pictures are anchors in round ${got.round}; these are from place ${count(got.from + 1)} on.` + (all ? "" : " Pale ones are no anchors yet.") + (about.classes.length ? " Frames: green, the same label; red, another." : "");
  const most = Math.max(1, ...got.neighbourhoods.map(h => h.neighbours.length));
  $("hoodList").style.setProperty("--most", Math.min(7, most + 1));
  $("hoodList").replaceChildren(...got.neighbourhoods.map(h => {
    const framed = n => h.picture.label ? (n.label === h.picture.label ? "right" : "wrong") : "";
    const words = [h.picture.label, h.entropy === null ? null : `entropy ${h.entropy.toFixed(2)}`].filter(Boolean).join(" · ");
    return make("figure", { className: "hood" + (h.anchor ? "" : " alone") }, link(h.picture, 128), make("span", { className: "to", textContent: "›" }), ...h.neighbours.map(n => link(n, 128, framed(n))), make("figcaption", { textContent: words }));
  }));
}
async function openHoods() {
  if (loaded.hoods) return;
  loaded.hoods = true;
  round = about.rounds.includes(round) ? round : about.rounds[about.rounds.length - 1];
  const buttons = about.rounds.map(r => make("button", { textContent: `Round ${r}`, onclick: () => { round = r; mark(); drawHoods().catch(trouble); } }));
  const mark = () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", about.rounds[i] === round));
  $("rounds").replaceChildren(...buttons);
  mark();
  let waiting;
  $("at").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => drawHoods().catch(trouble), 80); };
  await drawHoods();
}

// Small pictures for the map, a few at a time and only while it is looked at; larger ones as they grow.
const SIDES = [64, 128, 256];
function tiles(redraw) {
  const there = new Map(), waiting = [];
  let loading = 0;
  function more() {
    while (loading < 6 && waiting.length && !$("map").hidden) {
      const img = waiting.pop();
      loading++;
      img.onload = img.onerror = () => { loading--; redraw(); more(); };
      img.src = img.dataset.src;
    }
  }
  addEventListener("hashchange", () => setTimeout(more));
  return (id, side) => {
    const has = there.get(id) || there.set(id, {}).get(id), wanted = SIDES.find(s => s >= side) || 256;
    if (!has[wanted]) { const img = new Image(); img.dataset.src = `/api/picture/${id}/small?side=${wanted}`; has[wanted] = img; waiting.push(img); more(); }
    const best = [wanted, ...SIDES.slice().reverse()].map(s => has[s]).find(img => img?.naturalWidth);
    return best ? { image: best, x: 0, y: 0, side: Math.min(best.naturalWidth, best.naturalHeight) } : null;
  };
}
let refreshMap = () => {};
async function openMap() {
  if (!loaded.map) {
    loaded.map = true;
    const got = await ask("/api/map"), names = about.classes;
    const box = document.querySelector("#map .map"), old = box.querySelector("canvas");
    old.replaceWith(old.cloneNode()); // with it go the listeners of the map before
    box.hidden = false;
    $("mapSaid").textContent = got.points.length < got.of ? `${count(got.points.length)} of ${count(got.of)} pictures, evenly taken.` : "";
    const tile = tiles(() => refreshMap());
    refreshMap = showMap(box, {
      places: got.points.map(p => [p[1], p[2]]), classes: got.points.map(p => names.indexOf(p[3])), names,
      tile: (i, side) => tile(got.points[i][0], side * sharp),
      away: i => !passes(got.points[i][4], got.points[i][3]),
      tip: (tip, i) => { const p = got.points[i]; if (tip.dataset.id !== String(p[0])) { tip.dataset.id = p[0]; tip.replaceChildren(make("img", { src: small(p[0]), alt: "" }), p[3] ? `${p[3]}, ${p[4]}` : p[4]); } },
      pick: i => { left = true; location.hash = address(`picture/${got.points[i][0]}`); },
    });
  } else refreshMap();
  if (left && !document.activeElement?.closest("nav, .filter")) document.querySelector("#map canvas").focus({ preventScroll: true });
}

async function drawCurves() {
  const got = await ask("/api/curves");
  $("charts").innerHTML = got.charts; // drawn by the server from numbers alone
  $("table").textContent = got.table;
  $("curvesSaid").textContent = got.ended ? `The run has ended after ${got.epochs} epochs.` : `Training: ${got.epochs} epochs so far. The curves move by themselves.`;
  if (got.warning) $("curvesSaid").textContent += ` ${got.warning}.`;
}
async function openCurves() {
  if (loaded.curves) return;
  loaded.curves = true;
  await drawCurves();
}
const opened = { hoods: openHoods, clusters: openClusters, duplicates: openDuplicates, outliers: openOutliers, map: openMap, curves: openCurves };
