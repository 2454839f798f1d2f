// One picture as large as the window, with where it lies; arrows go on to those beside it, Escape leaves.
let shownIn = [], shownAt = 0;
function enlarge(pictures, at) {
  shownIn = pictures;
  showLarge(at);
  if (!$("lightbox").open) $("lightbox").showModal();
  $("boxClose").focus();
}
function showLarge(at) {
  shownAt = at;
  const picture = shownIn[at], here = picture.upload === undefined, img = $("boxPicture");
  img.classList.remove("pixels");
  img.src = picture.src || large(picture.id);
  img.alt = here ? called(picture) : "your picture";
  img.onerror = () => { $("boxSaid").textContent = "The file of this picture is gone."; };
  $("boxName").textContent = picture.label || picture.name.split("/").pop();
  $("boxPath").textContent = path(picture);
  $("boxSaid").textContent = shownIn.length > 1 ? `${count(at + 1)} of ${count(shownIn.length)}` : "";
  $("boxLike").href = address(`picture/${picture.id}`);
  $("boxFile").href = `/api/picture/${picture.id}`;
  for (const id of ["boxLike", "boxFile", "boxTick"]) $(id).hidden = !here;
  $("boxBefore").hidden = at === 0;
  $("boxAfter").hidden = at + 1 >= shownIn.length;
  $("boxTick").setAttribute("aria-pressed", selected.has(picture.name));
  const next = shownIn[at + 1];
  if (next && next.upload === undefined) new Image().src = large(next.id);
}
const turnTo = at => { if (shownIn[at]) showLarge(at); };
$("boxBefore").onclick = () => turnTo(shownAt - 1);
$("boxAfter").onclick = () => turnTo(shownAt + 1);
$("boxClose").onclick = () => $("lightbox").close();
$("boxLike").onclick = () => $("lightbox").close();
$("boxTick").onclick = () => { const picture = shownIn[shownAt]; set(picture, !selected.has(picture.name)); showSelected(); showLarge(shownAt); };
$("boxCopy").onclick = async () => {
  try { await copyText(path(shownIn[shownAt])); $("boxSaid").textContent = "The path is copied."; }
  catch (error) { $("boxSaid").textContent = error.message; }
};
$("lightbox").addEventListener("click", e => { if (e.target === $("lightbox")) $("lightbox").close(); });
$("lightbox").addEventListener("keydown", e => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
  if (by) { e.preventDefault(); turnTo(shownAt + by); }
});
addEventListener("hashchange", () => $("lightbox").close());
// Whoever looked through them goes on at the one that was seen last.
$("lightbox").addEventListener("close", () => {
  const seen = shownIn[shownAt], pics = [...document.querySelectorAll(".grid > .pic")].filter(pic => pic.offsetParent && pic.picture === seen);
  pics[0]?.querySelector("a").focus();
});
