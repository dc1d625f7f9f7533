/**
 * The only script of the pages. It updates the page every three seconds while the page is visible, and keeps the focus
 * and the scroll position. `/` moves to the search, and `g` with a letter opens a page. Without the script, the pages
 * are the same and do not update.
 */
export const live = `"use strict";
(() => {
  const every = 3000;
  const pages = Object.fromEntries([...document.querySelectorAll("nav a[data-key]")].map((a) => [a.dataset.key, a.href]));
  let before = "";
  let taking = false;
  const still = document.getElementById("main").dataset.still === "yes";
  const pathOf = (node) => { const steps = []; for (let at = node; at && at.id !== "main"; at = at.parentElement) steps.unshift([...at.parentElement.children].indexOf(at)); return steps; };
  const nodeAt = (steps) => steps.reduce((at, step) => at && at.children[step], document.getElementById("main"));
  const busy = () => { const node = document.activeElement; return node && ["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName); };
  const take = async () => {
    if (taking || still || document.hidden || busy() || String(getSelection())) return;
    taking = true;
    const status = document.getElementById("asof");
    try {
      const answer = await fetch(location.href, { headers: { "x-starling-part": "main" }, cache: "no-store" });
      const text = await answer.text();
      // An older view is better than none, and says how old it is.
      if (answer.status === 401 || answer.status === 429 || answer.status >= 500) throw new Error(String(answer.status));
      if (text !== before) {
        const main = document.getElementById("main");
        const focus = main.contains(document.activeElement) ? pathOf(document.activeElement) : undefined;
        const scrolled = [...main.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
        main.innerHTML = text;
        [...main.querySelectorAll(".scroll")].forEach((each, at) => { each.scrollLeft = scrolled[at] || 0; });
        if (focus) { const node = nodeAt(focus); if (node) node.focus({ preventScroll: true }); }
        before = text;
      }
      status.textContent = "as of " + new Date().toISOString().slice(11, 19) + "Z";
    } catch {
      status.textContent = "no answer since " + status.textContent.replace(/^(as of|no answer since) /, "");
    } finally {
      taking = false;
    }
  };
  let going = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || busy()) return;
    if (going && pages[event.key]) location.href = pages[event.key];
    going = event.key === "g";
    if (event.key !== "/") return;
    const search = document.getElementById("search");
    if (search) { event.preventDefault(); search.focus(); }
  });
  document.addEventListener("visibilitychange", take);
  setInterval(take, every);
})();
`;
