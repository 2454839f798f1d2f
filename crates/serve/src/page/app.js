// The page: what is asked stands in the address after #, so that back and forward walk the way one came.
// #picture/7?label=cat is the neighbours of picture 7 among those labelled cat. Views of their own are in views.js.
const $ = id => document.getElementById(id);
const make = (tag, set = {}, ...inside) => { const e = Object.assign(document.createElement(tag), set); e.append(...inside); return e; };
const sharp = Math.min(2, window.devicePixelRatio || 1); // a screen's own dots for each of the page's
const small = (id, side = 256) => `/api/picture/${id}/small?side=${Math.min(512, side * sharp)}`;
const large = (id, longest = 1600) => `/api/picture/${id}/large?longest=${longest}`;
const count = n => n.toLocaleString("en");
const many = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
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

// Which pictures are looked at: a folder, a label.
const chosen = { folder: "", label: "" };
const filtered = () => chosen.folder || chosen.label;
function query(more = {}) {
  const all = { ...more, ...chosen };
  return new URLSearchParams(Object.entries(all).filter(([, value]) => value !== "")).toString();
}
const address = path => { const q = query(); return `#${path}${q && "?" + q}`; };
const passes = (name, label) => (!chosen.folder || name.startsWith(chosen.folder + "/")) && (!chosen.label || label === chosen.label);
function options(select, all, kept) {
  const every = make("option", { value: "", textContent: "all" });
  select.replaceChildren(every, ...all.map(({ name, pictures }) => make("option", { value: name, textContent: `${name} (${count(pictures)})` })));
  if (kept && !all.some(one => one.name === kept)) select.append(make("option", { value: kept, textContent: kept }));
  select.value = kept;
  select.parentNode.hidden = all.length < 2 && !kept;
}
async function offerFilters() {
  const { folders, labels } = await ask("/api/filters");
  // Folders that are the labels would be said twice.
  const same = folders.length === labels.length && folders.every((f, i) => f.name === labels[i].name && f.pictures === labels[i].pictures);
  options($("folder"), same && !chosen.folder ? [] : folders, chosen.folder);
  options($("label"), labels, chosen.label);
  $("filter").dataset.ready = true;
  showFilter();
}
function showFilter() {
  const offered = $("filter").dataset.ready && ["folder", "label"].some(id => !$(id).parentNode.hidden);
  $("filter").hidden = !offered || ["hoods", "curves"].includes(viewed);
  for (const id of ["folder", "label"]) if ($(id).value !== chosen[id]) $(id).value = chosen[id];
  $("unfilter").hidden = !filtered();
}
function refilter() {
  chosen.folder = $("folder").value; chosen.label = $("label").value;
  location.hash = address(location.hash.slice(1).split("?")[0] || "search");
}

// A name in words: all of it where it is short, else its beginning and its end; the whole is told on hover and by the lightbox.
const short = (text, most = 44) => text.length <= most ? text : `${text.slice(0, most / 2 - 1)}…${text.slice(-most / 2)}`;
const called = picture => picture.label ? `${picture.label}, ${picture.name}` : picture.name;
// What a picture has is shown as it is: few pixels as squares, not as a blur.
const crisp = img => img.classList.toggle("pixels", img.naturalWidth > 0 && Math.max(img.naturalWidth, img.naturalHeight) <= 48);
document.addEventListener("load", e => { if (e.target.tagName === "IMG") crisp(e.target); }, true);

function link(picture, side, className = "") {
  const img = make("img", { src: picture.src || small(picture.id, side), loading: "lazy", alt: called(picture) });
  return make("a", { href: address(picture.upload === undefined ? `picture/${picture.id}` : `upload/${picture.upload}`), className, title: called(picture) }, img);
}
function card(picture) {
  const a = link(picture, 256), img = a.firstChild, near = picture.similarity, file = picture.name.split("/").pop();
  const said = make("figcaption", { title: called(picture) }, ...(picture.label ? [make("b", { textContent: picture.label }), " "] : []), make("span", { textContent: short(file) }));
  const pic = make("figure", { className: "pic" }, a);
  pic.dataset.id = picture.id;
  pic.picture = picture;
  a.setAttribute("aria-keyshortcuts", "Space E");
  img.onerror = () => { pic.classList.add("gone"); said.append(" · the file is gone"); };
  if (near !== undefined) {
    const bar = make("span", { className: "likeness" });
    bar.style.width = Math.max(0, Math.min(1, near)) * 100 + "%";
    pic.append(bar, make("b", { className: "near", textContent: near.toFixed(3), title: "similarity: 1 is the same" }));
  }
  if (picture.note) said.prepend(make("span", { className: "kind", textContent: picture.note, title: picture.told }));
  pic.append(
    make("button", { className: "tick", textContent: "✓", tabIndex: -1, ariaLabel: `select ${called(picture)}` }),
    make("button", { className: "look", textContent: "⤢", tabIndex: -1, ariaLabel: `enlarge ${called(picture)}` }), said);
  markTick(pic);
  return pic;
}
function fill(grid, pictures, { more = false, none = "No picture is here." } = {}) {
  const cards = pictures.map(card);
  if (more) grid.append(...cards);
  else grid.replaceChildren(...(cards.length ? cards : [make("p", { className: "soft", textContent: none })]));
}
// A list that is longer than what is shown of it: `load(from)` gives {pictures, of}.
async function list(grid, button, load) {
  const mine = grid.asked = {}, got = await load(0);
  if (grid.asked !== mine) return null;
  fill(grid, got.pictures, { none: "No picture is here; choose another folder or label." });
  const rest = of => { button.hidden = grid.querySelectorAll(".pic").length >= of; button.textContent = `More of ${count(of)}`; };
  rest(got.of);
  button.onclick = async () => {
    try {
      const next = await load(grid.querySelectorAll(".pic").length);
      if (grid.asked !== mine) return;
      fill(grid, next.pictures, { more: true });
      rest(next.pictures.length ? next.of : 0);
    } catch (error) { trouble(error); }
  };
  return got;
}

function showAnswer(found, asked) {
  const same = asked.label, right = same ? found.neighbours.filter(n => n.label === same).length : 0;
  $("asked").hidden = false;
  $("drop").classList.add("low");
  const picture = $("query"), heat = $("heat"), looks = $("looks"), here = asked.upload === undefined;
  picture.style.visibility = "";
  picture.src = asked.src || large(asked.id, 512 * sharp);
  picture.alt = here ? called(asked) : "your picture";
  picture.onerror = () => { picture.style.visibility = "hidden"; if (here) trouble(new Error("The file of this picture is gone; its vector is still searched by.")); };
  $("enlarge").onclick = () => enlarge([asked], 0);
  looks.hidden = about.kind !== "run" || !here;
  heat.hidden = true;
  looks.setAttribute("aria-pressed", false);
  looks.onclick = () => {
    heat.hidden = !heat.hidden;
    looks.setAttribute("aria-pressed", !heat.hidden);
    if (!heat.hidden) heat.firstChild.src = `/api/picture/${asked.id}/attention`;
  };
  $("queryName").textContent = here ? (same || asked.name) : "Your picture";
  const among = filtered() ? `of those in ${[chosen.folder, chosen.label].filter(Boolean).join(", ")}` : `of ${count(about.pictures)}`;
  $("querySaid").textContent = `${same || !here ? asked.name + " · " : ""}${found.neighbours.length} most alike ${among}, in ${(found.seconds * 1000).toFixed(1)} ms` + (same ? ` · ${right} carry its label` : "");
  $("gridName").textContent = "Most alike";
  $("gridMore").hidden = true;
  $("grid").asked = {};
  fill($("grid"), found.neighbours);
  walked(asked);
  scrollTo({ top: 0, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  $("queryName").focus({ preventScroll: true });
}
// Your way: every picture one has asked about, uploads too. Whoever goes back to one goes on from there.
function walked(asked) {
  const same = p => p.upload === asked.upload && p.id === asked.id, known = trail.findIndex(same);
  if (known >= 0) trail.length = known;
  trail.push(asked);
  drawTrail();
}
function drawTrail() {
  const way = trail.slice(-24), here = location.hash.split("?")[0];
  $("trail").hidden = !trail.length || trail.length === 1 && !$("asked").hidden;
  const steps = way.map(p => { const a = link(p, 64); if (a.hash.split("?")[0] === here) a.setAttribute("aria-current", "true"); return a; });
  const forget = make("button", { textContent: "×", title: "forget the way", ariaLabel: "forget the way", onclick: () => { trail = $("asked").hidden ? [] : trail.slice(-1); drawTrail(); } });
  $("trail").replaceChildren("Your way:", ...steps, forget);
}
async function byId(id) {
  const mine = ++asking, found = await ask(`/api/search?${query({ id, k: 36 })}`);
  if (mine === asking) showAnswer(found, found.query);
}

// Pictures of one's own: kept by the page for as long as it is open, so that one can come back to them.
const uploads = [];
async function byUpload(number) {
  const mine = ++asking, asked = uploads[number];
  if (!asked) throw new Error("This picture is no longer here; choose it again.");
  const found = await ask(`/api/search?${query({ k: 36 })}`, { method: "POST", body: asked.file });
  if (mine === asking) showAnswer(found, asked);
}
async function byFile(file) {
  trouble();
  try {
    if (!about.uploads) throw new Error("This index is served without its model, so pictures cannot be searched by upload; start the server with its model.");
    if (file.size > about.largest_upload) throw new Error(`This file is larger than ${about.largest_upload >> 20} MB; choose a smaller one.`);
    $("drop").classList.add("busy");
    const number = uploads.length, before = location.hash;
    uploads.push({ upload: number, name: file.name || "a pasted picture", src: URL.createObjectURL(file), file });
    view("search");
    try { await byUpload(number); } catch (error) { uploads.length = number; throw error; }
    if (before !== address(`upload/${number}`)) { history.pushState(null, "", address(`upload/${number}`)); drawTrail(); }
  } catch (error) { trouble(error); }
  finally { $("drop").classList.remove("busy"); }
}
async function some() {
  const mine = ++asking, grid = $("grid");
  let step = 1, first = 0;
  if (!filtered()) { step = Math.max(1, Math.floor(about.pictures / 60)); first = Math.floor(Math.random() * step); }
  const load = from => ask(`/api/pictures?${query({ from: first + from * step, step, count: 60 })}`);
  const got = await list(grid, $("gridMore"), load);
  if (!got || mine !== asking) return;
  const all = got.pictures.length >= got.of;
  $("asked").hidden = true;
  $("drop").classList.remove("low");
  $("fresh").hidden = filtered() || all;
  if (step > 1) $("gridMore").hidden = true; // others are a click away
  $("gridName").textContent = filtered() ? many(got.of, "picture") : all ? "All pictures" : "Some of the pictures";
  drawTrail();
}

// Arrow keys go from picture to picture; Enter follows one, as any link.
addEventListener("keydown", e => {
  const pic = document.activeElement?.closest?.(".pic"), grid = pic?.parentNode;
  if (!grid?.classList.contains("grid") || e.ctrlKey || e.altKey || e.metaKey) return;
  const pics = [...grid.querySelectorAll(":scope > .pic")], at = pics.indexOf(pic);
  const columns = pics.filter(p => p.offsetTop === pics[0].offsetTop).length;
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
  if (by && pics[at + by]) {
    pics[at + by].querySelector("a").focus();
    if (e.shiftKey) between(grid, pics[at], pics[at + by]);
  } else if (e.key === " ") toggle(grid, pic, e.shiftKey);
  else if (e.key === "e" || e.key === "E") enlarge(pics.map(p => p.picture), at);
  else return;
  e.preventDefault();
});
addEventListener("click", e => {
  const pic = e.target.closest?.(".pic"), grid = pic?.parentNode;
  if (!pic || !grid.classList.contains("grid")) return;
  const pics = [...grid.querySelectorAll(":scope > .pic")];
  if (e.target.closest(".look")) enlarge(pics.map(p => p.picture), pics.indexOf(pic));
  else if (e.target.closest(".tick") || e.shiftKey || e.ctrlKey || e.metaKey) { e.preventDefault(); toggle(grid, pic, e.shiftKey); }
});

const views = ["search", "hoods", "clusters", "duplicates", "outliers", "map", "curves"];
let viewed = "search";
function view(name) {
  viewed = name;
  for (const v of views) $(v).hidden = v !== name;
  for (const a of document.querySelectorAll("nav [data-view]")) {
    a.dataset.view === name ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
    a.href = address(a.dataset.view);
  }
  showFilter();
}
const loaded = {};
let left = false; // the map, for a picture on it: whoever comes back goes on from there
async function go() {
  trouble();
  $("news").hidden = true;
  const [path, asked] = location.hash.slice(1).split("?"), [name, ...rest] = path.split("/"), params = new URLSearchParams(asked);
  chosen.folder = params.get("folder") || ""; chosen.label = params.get("label") || "";
  try {
    if (name === "picture") { view("search"); return await byId(rest[0]); }
    if (name === "upload") { view("search"); return await byUpload(Number(rest[0])); }
    const wanted = views.includes(name) ? name : "search";
    view(wanted);
    if (wanted === "search") return await some();
    await opened[wanted](...rest);
  } catch (error) {
    loaded[name] = false;
    trouble(error);
    if (["picture", "upload"].includes(name)) some().catch(() => {}); // there is no such picture; there are others
  }
}

// A run that trains: its curves grow, and a newer checkpoint brings newer vectors. A folder that is indexed: more pictures come.
function listen() {
  const news = new EventSource("/api/events");
  news.addEventListener("changed", () => { if (loaded.curves) drawCurves().catch(trouble); });
  let grew = false;
  news.addEventListener("indexing", e => {
    const { done, total } = JSON.parse(e.data), more = done < total;
    grew ||= more;
    const again = make("button", { textContent: "Show them", onclick: go });
    $("news").replaceChildren(more ? `Indexing: ${count(done)} of ${count(total)} pictures so far. ` : `All ${count(total)} pictures are indexed. `, again);
    $("news").hidden = !grew;
  });
  news.addEventListener("renewed", async e => {
    if (Number(e.data) === about.renewals) return;
    try { about = await ask("/api/run"); } catch { return; }
    introduce();
    loaded.map = loaded.hoods = false;
    const [name] = location.hash.slice(1).split(/[/?]/);
    if (name === "hoods") await go();
    if (about.indexing) return offerFilters().catch(trouble); // more pictures, and those there were have their numbers
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
$("fresh").onclick = () => { if (["", "#search"].includes(location.hash)) go(); else location.hash = address("search"); };
$("folder").onchange = $("label").onchange = refilter;
$("unfilter").onclick = () => { $("folder").value = $("label").value = ""; refilter(); };
document.querySelector("[data-view=search]").onclick = e => { if (location.hash === e.currentTarget.hash) go(); };
addEventListener("dragover", e => { e.preventDefault(); $("drop").classList.add("over"); });
addEventListener("dragleave", () => $("drop").classList.remove("over"));
addEventListener("drop", e => { e.preventDefault(); $("drop").classList.remove("over"); const file = e.dataTransfer.files[0]; if (file) byFile(file); });
addEventListener("paste", e => { const file = [...e.clipboardData.files][0]; if (file) byFile(file); });
addEventListener("hashchange", go);
addEventListener("DOMContentLoaded", async () => {
  if (location.search.includes("token=")) history.replaceState(null, "", location.pathname + location.hash);
  try { about = await ask("/api/run"); } catch (error) { return trouble(error); }
  introduce();
  go();
  offerFilters().catch(trouble);
  if (about.kind === "run" || about.indexing) listen();
});
