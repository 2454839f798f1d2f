// The page: what is asked stands in the address after #, so that back and forward walk the way one came.
const $ = id => document.getElementById(id);
const make = (tag, set = {}, ...inside) => { const e = Object.assign(document.createElement(tag), set); e.append(...inside); return e; };
const small = (id, side = 128) => `/api/picture/${id}/small?side=${side}`;
let about = {}, trail = [], asking = 0;

async function ask(path, options) {
  let answer;
  try { answer = await fetch(path, options); }
  catch { throw new Error("The server does not answer; was it stopped?"); }
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}
function trouble(error) { $("trouble").hidden = !error; $("trouble").textContent = error ? error.message : ""; }

function card(picture) {
  const img = make("img", { src: small(picture.id), loading: "lazy", alt: picture.label || picture.name });
  const said = make("span", { className: "said", title: picture.name });
  if (picture.similarity !== undefined) said.append(make("b", { textContent: picture.similarity.toFixed(3) }), " ");
  said.append(picture.label || picture.name);
  const pic = make("button", { className: "pic" }, img);
  pic.dataset.id = picture.id;
  img.onerror = () => { pic.classList.add("gone"); said.textContent = "the picture is gone"; };
  if (picture.similarity !== undefined) {
    const bar = make("span", { className: "likeness" });
    bar.style.width = Math.max(0, Math.min(1, picture.similarity)) * 100 + "%";
    pic.append(bar);
  }
  pic.append(said);
  pic.onclick = () => { location.hash = `picture/${picture.id}`; };
  return pic;
}
function showAnswer(found, src) {
  const same = found.query && found.query.label;
  const right = same ? found.neighbours.filter(n => n.label === same).length : 0;
  $("asked").hidden = false;
  $("query").src = src;
  const looks = $("looks");
  looks.hidden = about.kind !== "run" || !found.query;
  looks.classList.remove("on");
  looks.onclick = () => { const on = looks.classList.toggle("on"); $("query").src = on ? `/api/picture/${found.query.id}/attention` : src; };
  $("queryName").textContent = found.query ? (same || found.query.name) : "Your picture";
  $("querySaid").textContent = `${same ? found.query.name + " · " : ""}${found.neighbours.length} most alike of ${about.pictures.toLocaleString("en")}, in ${(found.seconds * 1000).toFixed(1)} ms` + (same ? ` · ${right} carry its label` : "");
  $("grid").replaceChildren(...found.neighbours.map(card));
  drawTrail();
  scrollTo({ top: 0, behavior: "smooth" });
}
function drawTrail() {
  $("trail").replaceChildren(...trail.slice(0, -1).slice(-24).map(id => make("img", { src: small(id, 64), title: "back to this one", alt: "", onclick: () => { location.hash = `picture/${id}`; } })));
}
async function byId(id) {
  const mine = ++asking;
  const found = await ask(`/api/search?id=${encodeURIComponent(id)}&k=36`);
  if (mine !== asking) return;
  const known = trail.indexOf(found.query.id);
  if (known >= 0) trail.length = known;
  trail.push(found.query.id);
  showAnswer(found, `/api/picture/${found.query.id}`);
}
async function byFile(file) {
  trouble();
  const mine = ++asking;
  try {
    if (!about.uploads) throw new Error("This index is served without its model, so pictures cannot be searched by upload; start the server with --model.");
    if (file.size > about.largest_upload) throw new Error(`This file is larger than ${about.largest_upload >> 20} MB; choose a smaller one.`);
    const found = await ask("/api/search?k=36", { method: "POST", body: file });
    if (mine !== asking) return;
    trail = [];
    if (location.hash !== "#search") history.pushState(null, "", "#search");
    view("search");
    showAnswer(found, URL.createObjectURL(file));
  } catch (error) { trouble(error); }
}
async function some() {
  const mine = ++asking, n = about.pictures, step = Math.max(1, Math.floor(n / 60)), from = Math.floor(Math.random() * step);
  const list = await ask(`/api/pictures?from=${from}&step=${step}&count=60`);
  if (mine !== asking) return;
  trail = []; drawTrail();
  $("asked").hidden = true;
  $("grid").replaceChildren(...list.pictures.map(card));
}

const views = ["search", "hoods", "map", "curves"];
function view(name) {
  for (const v of views) $(v).hidden = v !== name;
  for (const b of document.querySelectorAll("nav [data-view]")) b.setAttribute("aria-selected", b.dataset.view === name);
}
const loaded = {};
async function go() {
  trouble();
  const [name, id] = location.hash.slice(1).split("/");
  try {
    if (name === "picture") { view("search"); return await byId(id); }
    const chosen = views.includes(name) ? name : "search";
    view(chosen);
    if (chosen === "search") return await some();
    if (!loaded[chosen]) { loaded[chosen] = true; await ({ hoods: openHoods, map: openMap, curves: openCurves })[chosen](); }
  } catch (error) { loaded[name] = false; trouble(error); }
}

let round = 0;
async function drawHoods() {
  const got = await ask(`/api/neighbourhoods?round=${round}&at=${$("at").value}&count=30`);
  $("hoodsSaid").textContent = `${got.anchors.toLocaleString("en")} of ${got.pictures.toLocaleString("en")} pictures are anchors in this round; shown from place ${(got.from + 1).toLocaleString("en")}. Pale ones are no anchors yet.` + (about.classes.length ? " Frames: green, the same label; red, another." : "");
  $("hoodList").replaceChildren(...got.neighbourhoods.map(h => {
    const picture = (p, kind) => make("img", { src: small(p.id, 64), className: kind, loading: "lazy", alt: p.label || p.name, title: `${p.label || ""} ${p.name}`, onclick: () => { location.hash = `picture/${p.id}`; } });
    const box = make("div", { className: "hood" + (h.anchor ? "" : " alone"), title: `entropy ${h.entropy?.toFixed(3)}` }, picture(h.picture, "anchor"));
    for (const n of h.neighbours) box.append(picture(n, h.picture.label ? (n.label === h.picture.label ? "right" : "wrong") : ""));
    return box;
  }));
}
async function openHoods() {
  round = about.rounds[about.rounds.length - 1];
  const buttons = about.rounds.map(r => make("button", { textContent: `Round ${r}`, onclick: () => { round = r; mark(); drawHoods().catch(trouble); } }));
  const mark = () => buttons.forEach((b, i) => b.setAttribute("aria-selected", about.rounds[i] === round));
  $("rounds").replaceChildren(...buttons);
  mark();
  let waiting;
  $("at").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => drawHoods().catch(trouble), 80); };
  await drawHoods();
}
async function openMap() {
  const got = await ask("/api/map"), names = about.classes;
  const box = document.querySelector("#map .map");
  box.hidden = false;
  $("mapSaid").textContent = got.points.length < got.of ? `${got.points.length.toLocaleString("en")} of ${got.of.toLocaleString("en")} pictures, evenly taken.` : "";
  showMap(box, {
    places: got.points.map(p => [p[1], p[2]]), classes: got.points.map(p => names.indexOf(p[3])), names,
    tile: () => null,
    tip: (tip, i) => { const p = got.points[i]; if (tip.dataset.id !== String(p[0])) { tip.dataset.id = p[0]; tip.replaceChildren(make("img", { src: small(p[0]), alt: "" }), p[3] || `picture ${p[0]}`); } },
    pick: i => { location.hash = `picture/${got.points[i][0]}`; },
  });
}
async function drawCurves() {
  const got = await ask("/api/curves");
  $("charts").innerHTML = got.charts; // drawn by the server from numbers alone
  $("table").textContent = got.table;
  $("curvesSaid").textContent = got.ended ? `The run has ended after ${got.epochs} epochs.` : `Training: ${got.epochs} epochs so far. The curves move by themselves.`;
}
async function openCurves() {
  await drawCurves();
  const news = new EventSource("/api/events");
  news.addEventListener("changed", () => drawCurves().catch(trouble));
}

document.querySelectorAll("nav [data-view]").forEach(b => b.onclick = () => { location.hash = b.dataset.view; });
$("file").onchange = e => { if (e.target.files[0]) byFile(e.target.files[0]); e.target.value = ""; };
$("fresh").onclick = () => { if (location.hash === "#search") go(); else location.hash = "search"; };
addEventListener("dragover", e => { e.preventDefault(); $("drop").classList.add("over"); });
addEventListener("dragleave", () => $("drop").classList.remove("over"));
addEventListener("drop", e => { e.preventDefault(); $("drop").classList.remove("over"); const file = e.dataTransfer.files[0]; if (file) byFile(file); });
addEventListener("paste", e => { const file = [...e.clipboardData.files][0]; if (file) byFile(file); });
addEventListener("hashchange", go);
(async () => {
  if (location.search.includes("token=")) history.replaceState(null, "", location.pathname + location.hash);
  try { about = await ask("/api/run"); } catch (error) { return trouble(error); }
  document.title = `${about.name} · anchorhood`;
  $("name").textContent = about.name;
  $("about").textContent = `${about.pictures.toLocaleString("en")} pictures of ${about.kind === "run" ? "a run" : "an index"}, vectors of ${about.dim}` + (about.classes.length ? `, ${about.classes.length} labels` : "") + (about.recall < 1 ? `; a search finds ${(about.recall * 100).toFixed(1)}% of the true nearest` : "");
  document.querySelector("[data-view=hoods]").hidden = !about.rounds.length;
  document.querySelector("[data-view=curves]").hidden = about.kind !== "run";
  if (!about.uploads) $("drop").hidden = true;
  go();
})();
