// Small helpers to make elements. Text always enters as text nodes: no reply can become markup.
const SVG = "http://www.w3.org/2000/svg";

function add(node, kids) {
  for (const kid of kids.flat(3)) {
    if (kid === null || kid === undefined || kid === false) continue;
    node.append(kid instanceof Node ? kid : String(kid));
  }
  return node;
}

function set(node, props) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

const h = (tag, props, ...kids) => add(set(document.createElement(tag), props), kids);
const s = (tag, props, ...kids) => add(set(document.createElementNS(SVG, tag), props), kids);

// Control and direction characters are shown as what they are instead of acting on the page.
function visible(text) {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\r\n?/g, "\n")
    .replace(/[\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu, (c) => {
      return `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
    });
}

const words = (text, props) => h("bdi", { dir: "auto", ...props }, visible(text));

// A model's name may break after a slash or a sign, not inside a word.
const modelName = (text) => h("bdi", { dir: "auto" }, visible(text).split(/(?<=[/_?&=:])/).flatMap((part, place) => (place ? [h("wbr"), part] : [part])));

// A table that scrolls within itself and can be scrolled by keyboard.
function scroller(label, table) {
  return h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, table);
}

function select(label, options, value, change) {
  const id = `s${(select.count = (select.count || 0) + 1)}`;
  const box = h("select", { id, onchange: (event) => change(event.target.value) });
  for (const [key, text] of options) box.append(h("option", { value: key, selected: String(key) === String(value) }, text));
  return h("div", { class: "field" }, h("label", { for: id }, label), box);
}

// One stop for Tab in a table of many buttons; arrow keys go from cell to cell.
function roving(table) {
  const grid = () =>
    [...table.querySelectorAll("tbody tr:not([hidden])")].map((row) => [...row.children].map((cell) => cell.querySelector("button.num")));
  const first = table.querySelector("tbody button.num");
  if (first) first.tabIndex = 0;
  table.addEventListener("focusin", (event) => {
    if (!event.target.matches("button.num")) return;
    table.querySelectorAll("button.num[tabindex='0']").forEach((one) => (one.tabIndex = -1));
    event.target.tabIndex = 0;
  });
  table.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step || !event.target.matches("button.num")) return;
    const cells = grid();
    let row = cells.findIndex((line) => line.includes(event.target));
    let column = cells[row].indexOf(event.target);
    do {
      row += step[0];
      column += step[1];
    } while (cells[row] && column >= 0 && column < cells[row].length && !cells[row][column]);
    const target = cells[row] && cells[row][column];
    if (target) {
      event.preventDefault();
      target.focus();
    }
  });
  return table;
}
