// Tabs, protocol, theme, print.
const PANELS = { board: drawBoard, forest: drawForest, answers: drawAnswers, failures: drawFailures, cases: drawCases, recipe: drawRecipe };
const panel = (key) => document.getElementById(`panel-${key}`);
const tabs = [...document.querySelectorAll("[role='tab']")];
const fresh = new Set();
let current = "board";

function draw(key) {
  if (fresh.has(key)) return;
  fresh.add(key);
  PANELS[key](panel(key));
}

function show(key, focus) {
  current = key;
  for (const tab of tabs) {
    const own = tab.id === `tab-${key}`;
    tab.setAttribute("aria-selected", String(own));
    tab.tabIndex = own ? 0 : -1;
    if (own && focus) tab.focus();
  }
  for (const name of Object.keys(PANELS)) panel(name).hidden = name !== key;
  draw(key);
}

for (const [place, tab] of tabs.entries()) {
  tab.addEventListener("click", () => show(tab.id.slice(4)));
  tab.addEventListener("keydown", (event) => {
    const target = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    show(tabs[(target + tabs.length) % tabs.length].id.slice(4), true);
  });
}

document.getElementById("protocol").addEventListener("change", (event) => {
  state.protocol = event.target.value;
  fresh.clear();
  draw(current);
});

const THEMES = ["system", "light", "dark"];
document.getElementById("theme").addEventListener("click", (event) => {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme || "system") + 1) % THEMES.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  event.currentTarget.textContent = `Theme: ${next}`;
});

let resized = 0;
let lastWidth = innerWidth;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    if (innerWidth === lastWidth) return;
    lastWidth = innerWidth;
    for (const key of ["board", "forest", "answers"]) fresh.delete(key);
    draw(current);
  }, 150);
});

// On paper all parts stand one below the other.
addEventListener("beforeprint", () => {
  for (const name of Object.keys(PANELS)) {
    panel(name).hidden = false;
    draw(name);
  }
});
addEventListener("afterprint", () => show(current));

show(current);
document.documentElement.dataset.ready = "yes";
