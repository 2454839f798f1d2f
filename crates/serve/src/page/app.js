// The page: what is asked stands in the address after #, so that back and forward walk the way one came.
const $ = id => document.getElementById(id);
const make = (tag, set = {}, ...inside) => { const e = Object.assign(document.createElement(tag), set); e.append(...inside); return e; };
const small = (id, side = 128) => `/api/picture/${id}/small?side=${side}`;
const count = n => n.toLocaleString("en");
let about = {}, trail = [], asking = 0;

async function ask(path, options) {
  let answer;
  try { answer = await fetch(path, options); }
  catch { throw new Error("The server does not answer; was it stopped?"); }
  const said = await answer.json().catch(() => ({ error: `The server answered with ${answer.status}.` }));
  if (!answer.ok) throw new Error(said.error);
  return said;
}
function trouble(error) {
  const said = error ? error.message : "";
  $("trouble").hidden = !error;
  $("trouble").textContent = said.charAt(0).toUpperCase() + said.slice(1);
}
const called = picture => picture.label ? `${picture.label}, ${picture.name}` : picture.name;

function link(picture, side, className = "") {
  const img = make("img", { src: small(picture.id, side), loading: "lazy", alt: called(picture) });
  return make("a", { href: `#picture/${picture.id}`, className, title: called(picture) }, img);
}
function card(picture) {
  const pic = link(picture, 128, "pic"), img = pic.firstChild, near = picture.similarity;
  const said = make("span", { className: "said", textContent: picture.label || picture.name.split("/").pop() });
  img.alt = ""; // the words are below it
  pic.dataset.id = picture.id;
  img.onerror = () => { pic.classList.add("gone"); said.textContent = "the file is gone"; };
  if (near !== undefined) {
    const bar = make("span", { className: "likeness" });
    bar.style.width = Math.max(0, Math.min(1, near)) * 100 + "%";
    pic.append(make("b", { textContent: near.toFixed(3), title: "similarity: 1 is the same" }), bar);
  }
  pic.append(said);
  return pic;
}
function showAnswer(found, src) {
  const query = found.query, same = query && query.label;
  const right = same ? found.neighbours.filter(n => n.label === same).length : 0;
  $("asked").hidden = false;
  $("drop").classList.add("low");
  const picture = $("query"), heat = $("heat"), looks = $("looks");
  picture.style.visibility = "";
  picture.src = src;
  picture.alt = query ? called(query) : "your picture";
  picture.onerror = () => { picture.onerror = () => { picture.style.visibility = "hidden"; }; picture.src = small(query.id); trouble(new Error("The file of this picture is gone; its vector is still searched by.")); };
  looks.hidden = about.kind !== "run" || !query;
  heat.hidden = true;
  looks.setAttribute("aria-pressed", false);
  looks.onclick = () => {
    heat.hidden = !heat.hidden;
    looks.setAttribute("aria-pressed", !heat.hidden);
    if (!heat.hidden) heat.firstChild.src = `/api/picture/${query.id}/attention`;
  };
  $("queryName").textContent = query ? (same || query.name) : "Your picture";
  $("querySaid").textContent = `${same ? query.name + " · " : ""}${found.neighbours.length} most alike of ${count(about.pictures)}, in ${(found.seconds * 1000).toFixed(1)} ms` + (same ? ` · ${right} carry its label` : "");
  $("gridName").textContent = "Most alike";
  $("grid").replaceChildren(...found.neighbours.map(card));
  drawTrail();
  scrollTo({ top: 0, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  $("queryName").focus({ preventScroll: true });
}
function drawTrail() {
  const way = trail.slice(0, -1).slice(-24);
  $("trail").hidden = !way.length;
  $("trail").replaceChildren("Your way:", ...way.map(p => link(p, 64)));
}
async function byId(id) {
  const mine = ++asking;
  const found = await ask(`/api/search?id=${encodeURIComponent(id)}&k=36`);
  if (mine !== asking) return;
  const known = trail.findIndex(p => p.id === found.query.id);
  if (known >= 0) trail.length = known;
  trail.push(found.query);
  showAnswer(found, `/api/picture/${found.query.id}`);
}
async function byFile(file) {
  trouble();
  const mine = ++asking;
  try {
    if (!about.uploads) throw new Error("This index is served without its model, so pictures cannot be searched by upload; start the server with its model.");
    if (file.size > about.largest_upload) throw new Error(`This file is larger than ${about.largest_upload >> 20} MB; choose a smaller one.`);
    $("drop").classList.add("busy");
    const found = await ask("/api/search?k=36", { method: "POST", body: file });
    if (mine !== asking) return;
    trail = [];
    if (location.hash !== "#search") history.pushState(null, "", "#search");
    view("search");
    showAnswer(found, URL.createObjectURL(file));
  } catch (error) { trouble(error); }
  finally { $("drop").classList.remove("busy"); }
}
async function some() {
  const mine = ++asking, n = about.pictures, step = Math.max(1, Math.floor(n / 60)), from = Math.floor(Math.random() * step);
  const list = await ask(`/api/pictures?from=${from}&step=${step}&count=60`);
  if (mine !== asking) return;
  trail = []; drawTrail();
  $("asked").hidden = true;
  $("drop").classList.remove("low");
  $("gridName").textContent = list.pictures.length < n ? "Some of the pictures" : "All pictures";
  $("grid").replaceChildren(...list.pictures.map(card));
}
// Arrow keys go from picture to picture; Enter follows one, as any link.
$("grid").onkeydown = e => {
  const pics = [...$("grid").children], at = pics.indexOf(document.activeElement);
  const columns = pics.filter(p => p.offsetTop === pics[0].offsetTop).length;
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
  if (at < 0 || !by || !pics[at + by]) return;
  e.preventDefault();
  pics[at + by].focus();
};

const views = ["search", "hoods", "map", "curves"];
function view(name) {
  for (const v of views) $(v).hidden = v !== name;
  for (const a of document.querySelectorAll("nav [data-view]")) a.dataset.view === name ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
}
const loaded = {};
let left = false; // the map, for a picture on it: whoever comes back goes on from there
async function go() {
  trouble();
  $("news").hidden = true;
  const [name, id] = location.hash.slice(1).split("/");
  try {
    if (name === "picture") { view("search"); return await byId(id); }
    const chosen = views.includes(name) ? name : "search";
    view(chosen);
    if (chosen === "search") return await some();
    if (!loaded[chosen]) { loaded[chosen] = true; await ({ hoods: openHoods, map: openMap, curves: drawCurves })[chosen](); }
    if (chosen === "map" && left && !document.activeElement?.closest("nav")) document.querySelector("#map canvas").focus({ preventScroll: true });
  } catch (error) {
    loaded[name] = false;
    trouble(error);
    if (name === "picture") some().catch(() => {}); // there is no such picture; there are others
  }
}

let round = 0;
async function drawHoods() {
  const got = await ask(`/api/neighbourhoods?round=${round}&at=${$("at").value}&count=36`);
  const all = got.anchors === got.pictures;
  $("hoodsSaid").textContent = `${all ? "All" : count(got.anchors) + " of"} ${count(got.pictures)} pictures are anchors in round ${got.round}; these are from place ${count(got.from + 1)} on.` + (all ? "" : " Pale ones are no anchors yet.") + (about.classes.length ? " Frames: green, the same label; red, another." : "");
  const most = Math.max(1, ...got.neighbourhoods.map(h => h.neighbours.length));
  $("hoodList").style.setProperty("--hood", `${Math.min(7, most + 1) * 69 + 26}px`);
  $("hoodList").replaceChildren(...got.neighbourhoods.map(h => {
    const framed = n => h.picture.label ? (n.label === h.picture.label ? "right" : "wrong") : "";
    const words = [h.picture.label, h.entropy === null ? null : `entropy ${h.entropy.toFixed(2)}`].filter(Boolean).join(" · ");
    return make("figure", { className: "hood" + (h.anchor ? "" : " alone") }, link(h.picture, 64), make("span", { className: "to", textContent: "›" }), ...h.neighbours.map(n => link(n, 64, framed(n))), make("figcaption", { textContent: words }));
  }));
}
async function openHoods() {
  round = about.rounds.includes(round) ? round : about.rounds[about.rounds.length - 1];
  const buttons = about.rounds.map(r => make("button", { textContent: `Round ${r}`, onclick: () => { round = r; mark(); drawHoods().catch(trouble); } }));
  const mark = () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", about.rounds[i] === round));
  $("rounds").replaceChildren(...buttons);
  mark();
  let waiting;
  $("at").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => drawHoods().catch(trouble), 80); };
  await drawHoods();
}

// Small pictures for the map, a few at a time and only while it is looked at.
function tiles(redraw) {
  const there = new Map(), waiting = [];
  let loading = 0;
  function more() {
    while (loading < 4 && waiting.length && !$("map").hidden) {
      const img = waiting.pop();
      loading++;
      img.onload = img.onerror = () => { loading--; redraw(); more(); };
      img.src = img.dataset.src;
    }
  }
  addEventListener("hashchange", () => setTimeout(more));
  return id => {
    let img = there.get(id);
    if (!img) { img = new Image(); img.dataset.src = small(id, 64); there.set(id, img); waiting.push(img); more(); }
    return img.naturalWidth ? { image: img, x: 0, y: 0, side: Math.min(img.naturalWidth, img.naturalHeight) } : null;
  };
}
async function openMap() {
  const got = await ask("/api/map"), names = about.classes;
  const box = document.querySelector("#map .map"), old = box.querySelector("canvas"), swap = box.querySelector("[data-pictures]");
  old.replaceWith(old.cloneNode()); // with it go the listeners of the map before
  box.hidden = false;
  swap.classList.remove("on");
  $("mapSaid").textContent = got.points.length < got.of ? `${count(got.points.length)} of ${count(got.of)} pictures, evenly taken.` : "";
  let redraw = () => {};
  const tile = tiles(() => redraw());
  redraw = showMap(box, {
    places: got.points.map(p => [p[1], p[2]]), classes: got.points.map(p => names.indexOf(p[3])), names,
    tile: i => tile(got.points[i][0]),
    tip: (tip, i) => { const p = got.points[i]; if (tip.dataset.id !== String(p[0])) { tip.dataset.id = p[0]; tip.replaceChildren(make("img", { src: small(p[0]), alt: "" }), p[3] ? `${p[3]}, ${p[4]}` : p[4]); } },
    pick: i => { left = true; location.hash = `picture/${got.points[i][0]}`; },
  });
  if (!names.length) swap.click(); // without labels dots would say nothing
}
async function drawCurves() {
  const got = await ask("/api/curves");
  $("charts").innerHTML = got.charts; // drawn by the server from numbers alone
  $("table").textContent = got.table;
  $("curvesSaid").textContent = got.ended ? `The run has ended after ${got.epochs} epochs.` : `Training: ${got.epochs} epochs so far. The curves move by themselves.`;
  if (got.warning) $("curvesSaid").textContent += ` ${got.warning}.`;
}
// A run that trains: its curves grow, and a newer checkpoint brings newer vectors.
function listen() {
  const news = new EventSource("/api/events");
  news.addEventListener("changed", () => { if (loaded.curves) drawCurves().catch(trouble); });
  news.addEventListener("renewed", async e => {
    if (Number(e.data) === about.renewals) return;
    try { about = await ask("/api/run"); } catch { return; }
    introduce();
    loaded.map = loaded.hoods = false;
    const [name] = location.hash.slice(1).split("/");
    if (name === "hoods") await go();
    const again = make("button", { textContent: "Ask again", hidden: name === "curves" || name === "hoods", onclick: go });
    $("news").replaceChildren("The run has saved a newer checkpoint; what you ask from now on is answered by it. ", again);
    $("news").hidden = false;
  });
}
function introduce() {
  document.title = `${about.name} · anchorhood`;
  $("name").textContent = about.name;
  $("about").textContent = `${count(about.pictures)} pictures of ${about.kind === "run" ? "a run" : "an index"}, compared by vectors of ${about.dim} numbers` + (about.classes.length ? `; ${about.classes.length} labels` : "") + (about.recall < 1 ? `; a search finds ${(about.recall * 100).toFixed(1)}% of the true nearest` : "");
  document.querySelector("[data-view=hoods]").hidden = !about.rounds.length;
  document.querySelector("[data-view=curves]").hidden = about.kind !== "run";
  $("drop").hidden = !about.uploads;
}

$("file").onchange = e => { if (e.target.files[0]) byFile(e.target.files[0]); e.target.value = ""; };
$("fresh").onclick = () => { if (["", "#search"].includes(location.hash)) go(); else location.hash = "search"; };
document.querySelector("[data-view=search]").onclick = () => { if (location.hash === "#search") go(); };
addEventListener("dragover", e => { e.preventDefault(); $("drop").classList.add("over"); });
addEventListener("dragleave", () => $("drop").classList.remove("over"));
addEventListener("drop", e => { e.preventDefault(); $("drop").classList.remove("over"); const file = e.dataTransfer.files[0]; if (file) byFile(file); });
addEventListener("paste", e => { const file = [...e.clipboardData.files][0]; if (file) byFile(file); });
addEventListener("hashchange", go);
(async () => {
  if (location.search.includes("token=")) history.replaceState(null, "", location.pathname + location.hash);
  try { about = await ask("/api/run"); } catch (error) { return trouble(error); }
  introduce();
  go();
  if (about.kind === "run") listen();
})();
