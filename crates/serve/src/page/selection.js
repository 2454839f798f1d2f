// Pictures that were selected, in any view, by name; and the list of them, to be copied or kept as a file.
const selected = new Map();
let lastTick = null; // where a range begins
const home = name => (about.folders || []).find(f => !f.label || name.startsWith(f.label + "/"));
const path = picture => {
  const from = picture.upload === undefined && !picture.name.includes("\\x") && home(picture.name);
  if (!from) return picture.name;
  const within = from.label ? picture.name.slice(from.label.length + 1) : picture.name;
  return `${from.path}${from.path.includes("\\") ? "\\" : "/"}${within}`;
};

function markTick(pic) {
  const on = selected.has(pic.picture.name);
  pic.classList.toggle("on", on);
  pic.querySelector(".tick").setAttribute("aria-pressed", on);
}
function showSelected() {
  document.querySelectorAll(".pic").forEach(markTick);
  $("chosen").hidden = !selected.size;
  document.body.classList.toggle("choosing", selected.size > 0);
  $("chosenCount").textContent = `${many(selected.size, "picture")} selected`;
}
function set(picture, on) { on ? selected.set(picture.name, picture) : selected.delete(picture.name); }
function toggle(grid, pic, range) {
  if (range && lastTick?.isConnected && lastTick.parentNode === grid) return between(grid, lastTick, pic);
  set(pic.picture, !selected.has(pic.picture.name));
  lastTick = pic;
  showSelected();
}
function between(grid, a, b) {
  const pics = [...grid.querySelectorAll(":scope > .pic")], [from, to] = [pics.indexOf(a), pics.indexOf(b)].sort((x, y) => x - y);
  pics.slice(from, to + 1).forEach(pic => set(pic.picture, true));
  lastTick = b;
  showSelected();
}
for (const button of document.querySelectorAll("[data-all]")) button.onclick = () => {
  $(button.dataset.all).querySelectorAll(".pic").forEach(pic => set(pic.picture, true));
  showSelected();
};

// The clipboard is there on this machine and over TLS alone; elsewhere the old way still works.
async function copyText(text) {
  try { await navigator.clipboard.writeText(text); }
  catch {
    const area = make("textarea", { value: text });
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("The browser does not let this page copy; take the list as a file.");
  }
}
function keep(name, kind, text) {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
const lines = () => [...selected.values()].map(path).join("\n") + "\n";
const field = text => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
// A spreadsheet would compute a text that begins so; an apostrophe says that it is one.
const asText = text => /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
function table() {
  const row = p => [asText(path(p)), asText(p.label || ""), p.similarity === undefined ? "" : String(p.similarity)].map(field).join(",");
  return ["path,label,similarity", ...[...selected.values()].map(row)].join("\n") + "\n";
}
$("chosenCopy").onclick = async () => {
  try { await copyText(lines()); $("chosenCount").textContent = `${many(selected.size, "path")} copied`; } catch (error) { trouble(error); }
};
$("chosenText").onclick = () => keep("pictures.txt", "text/plain", lines());
$("chosenTable").onclick = () => keep("pictures.csv", "text/csv", table());
$("chosenNone").onclick = () => { selected.clear(); lastTick = null; showSelected(); };
