// Results: the leaderboard with intervals, what the totals are made of, heat maps, two random rows side by side.
const board = { sort: null, descending: true, text: "", kinds: new Set(), group: "" };

function boardColumns() {
  const totals = data.composites.map((one) => ({ task: "", metric: one.name, title: one.title, hint: one.formula, down: false }));
  const tasks = data.tasks.map((one) => ({ task: one.code, metric: one.headline, title: one.code, hint: `${one.title}: ${metricName(one.headline)}` }));
  // The main total and its skill in front; other totals are variants of it and stand behind the tasks.
  const [front, back] = [totals.filter((one, place) => !place || composite(one.metric).skill), totals.filter((one, place) => place && !composite(one.metric).skill)];
  const columns = [...front, ...tasks, ...back].map((column) => {
    const facts = data.lines.map((_, line) => fact(line, column.task, column.metric));
    const held = facts.filter((one) => one && one.value !== null);
    const values = held.map((one) => one.value);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    // One absurd interval must not press all others into a point: the scale ends one span beyond the values.
    const room = most - least || Math.abs(most) || 1;
    const ends = held.flatMap((one) => [one.low, one.high]).filter((value) => value !== null);
    const low = Math.max(least - room, Math.min(least, ...ends));
    const high = Math.min(most + room, Math.max(most, ...ends));
    const counted = [...new Set(held.filter((one) => data.lines[one.line].kind !== "published" && one.n !== null).map((one) => one.n))].sort((a, b) => a - b);
    const share = column.task && unit(column.metric, column.task).startsWith("percent") ? "%" : "";
    const n = counted.length ? `n ${counted[0]}${counted.length > 1 ? `\u2013${counted[counted.length - 1]}` : ""}` : "";
    return { ...column, under: [share, n].filter(Boolean).join(" · "), facts, down: held.some((one) => one.down), low, high, empty: facts.every((one) => !one) };
  });
  return columns.filter((column) => !column.empty);
}

// Value, interval and scale in one small drawing; the numbers stand above it as text.
function bar(one, column, published) {
  const width = 66;
  const span = column.high - column.low || 1;
  const x = (value) => (3 + Math.max(0, Math.min(1, (value - column.low) / span)) * (width - 6)).toFixed(1);
  const kids = [s("line", { class: "rail", x1: 0, x2: width, y1: 5, y2: 5 })];
  if (one.low !== null && one.high !== null) kids.push(s("line", { class: "reach", x1: x(one.low), x2: x(one.high), y1: 5, y2: 5 }));
  kids.push(s("circle", { class: published ? "dot open" : "dot", cx: x(one.value), cy: 5, r: 3 }));
  return s("svg", { class: "spark", viewBox: `0 0 ${width} 10`, width, height: 10, "aria-hidden": "true" }, kids);
}

// The number of a footnote, a new one for a new note.
const mark = (note, notes) => notes.get(note) || notes.set(note, notes.size + 1).get(note);

function numberCell(one, column, notes, line) {
  if (!one) return h("td", { class: "r none" }, h("span", { class: "sr" }, "not given"), h("span", { "aria-hidden": "true" }, DASH));
  const published = data.lines[line].kind === "published";
  const said = [];
  if (one.value === null && one.why) said.push(one.why);
  if (one.doubt) said.push(one.doubt);
  if (one.reliable === 0 && one.value !== null) said.push("fewer than 20 groups: unreliable");
  const marks = said.map((note) => mark(note, notes));
  const judged = column.task ? verdict(line, column.task) : null;
  const [glyph, meaning] = (judged && VERDICTS[judged.word]) || ["", ""];
  const spoken = [`${column.title} of ${lineLabel(line)}: ${number(one.value, one.metric, one.task)}`, interval(one) && `interval ${interval(one)}`, meaning, ...said];
  return h(
    "td", { class: "r" },
    h(
      "button", { type: "button", class: "num", tabindex: -1, "aria-label": spoken.filter(Boolean).join(", "), onclick: (event) => openDetails(one, event.currentTarget) },
      h("span", { class: "value" }, glyph && h("i", { class: `mark ${judged.word.split(" ")[0]}`, title: meaning }, glyph), number(one.value, one.metric, one.task, false), marks.length ? h("sup", {}, marks.sort((a, b) => a - b).join(",")) : null),
      one.value === null ? null : bar(one, column, published),
      published || one.value === null ? null : one.low === null ? h("small", {}, "no interval") : h("small", {}, interval(one).replace(" %", "")),
    ),
  );
}

function sortedLines(lines, columns) {
  const column = columns.find((one) => `${one.task}/${one.metric}` === board.sort);
  if (board.sort === "model") return [...lines].sort((a, b) => (board.descending ? -1 : 1) * lineLabel(a).localeCompare(lineLabel(b)));
  if (!column) return lines;
  const value = (line) => column.facts[line] && column.facts[line].value;
  // Best first, whichever way a metric runs; what has no value stands last either way.
  const best = (column.down ? -1 : 1) * (board.descending ? 1 : -1);
  return [...lines].sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    if (one === null || other === null) return (one === null) - (other === null);
    return best * (other - one);
  });
}

function header(title, key, hint, down, under) {
  const active = board.sort === key;
  const order = active ? (board.descending !== (down && key !== "model") ? "descending" : "ascending") : "none";
  return h(
    "th", { scope: "col", class: key === "model" ? "" : "r", "aria-sort": order },
    h("button", {
      type: "button", class: "sort", title: hint, "data-key": key,
      onclick: () => {
        // Numbers start with the best, names with A.
        board.descending = active ? !board.descending : key !== "model";
        board.sort = key;
        drawBoardTable();
        document.querySelector(`#leaderboard [data-key="${CSS.escape(key)}"]`).focus();
      },
    }, modelName(title), down ? " ↓" : "", h("span", { class: "order", "aria-hidden": "true" }, active ? (board.descending ? "▾" : "▴") : "")),
    under ? h("small", { class: "under" }, under) : null,
  );
}

function drawBoardTable() {
  const columns = boardColumns();
  if (board.sort === null && columns.length) board.sort = `${columns[0].task}/${columns[0].metric}`;
  const notes = new Map();
  const wanted = board.text.trim().toLowerCase();
  const table = h("table", { class: "board" }, h("caption", { class: "sr" }, `Leaderboard under the ${state.protocol} protocol`));
  table.append(h("thead", {}, h("tr", {}, header("Model", "model", "Name of the model", false), columns.map((one) => header(one.title, `${one.task}/${one.metric}`, one.hint, one.down, one.under)))));
  let shown = 0;
  for (const [kind, title] of Object.entries(KINDS)) {
    const lines = data.lines
      .map((one, line) => ({ ...one, line }))
      .filter((one) => one.kind === kind && (!board.kinds.size || board.kinds.has(kind)))
      .filter((one) => !board.group || one.group === board.group)
      .filter((one) => !wanted || one.label.toLowerCase().includes(wanted))
      .map((one) => one.line)
      .filter((line) => columns.some((column) => column.facts[line]));
    if (!lines.length) continue;
    shown += lines.length;
    const body = h("tbody", { class: kind }, h("tr", { class: "kind" }, h("th", { colspan: columns.length + 1, scope: "rowgroup" }, h("span", {}, title))));
    for (const line of sortedLines(lines, columns)) {
      const one = data.lines[line];
      const tags = [GROUPS[one.group] || one.group].filter(Boolean);
      body.append(h("tr", {},
        h("th", { scope: "row" }, h("span", { class: "name" }, modelName(one.label)), tags.map((tag) => h("span", { class: "tag" }, tag)), one.remarks ? h("sup", {}, one.remarks.map((remark) => mark(remark, notes)).join(",")) : null, (one.remarks || []).map((remark) => h("span", { class: "sr" }, ` ${remark}`))),
        columns.map((column) => numberCell(column.facts[line], column, notes, line))));
    }
    table.append(body);
  }
  const box = document.getElementById("leaderboard");
  box.replaceChildren(
    shown ? scroller("Leaderboard", roving(table)) : h("p", { class: "empty" }, "No row fits these filters."),
    h("p", { class: "hint keyline" }, data.tasks.filter((one) => columns.some((column) => column.task === one.code)).map((one) => h("span", {}, h("b", {}, one.code), ` ${one.title}, ${metricName(one.headline)}`))),
    ...(data.lines.some((one) => one.kind === "published" && one.variant === "paper") ? [h("p", { class: "hint" }, "[paper]: as printed in the paper; the same name without it: as on the public leaderboard, which can differ.")] : []),
    ...(notes.size ? [h("ol", { class: "notes" }, [...notes.keys()].map((note) => h("li", {}, note)))] : []),
  );
  document.getElementById("board-count").textContent = `${shown} rows, ${state.protocol} protocol`;
}

function boardFilters() {
  const kinds = Object.entries(KINDS).filter(([kind]) => data.lines.some((one) => one.kind === kind));
  const groups = [...new Set(data.lines.map((one) => one.group).filter(Boolean))].sort();
  return h(
    "div", { class: "filters" },
    h("div", { class: "field" }, h("label", { for: "find" }, "Find a model"),
      h("input", { id: "find", type: "search", autocomplete: "off", spellcheck: "false", value: board.text, oninput: (event) => { board.text = event.target.value; drawBoardTable(); } })),
    h("fieldset", { class: "checks" }, h("legend", {}, "Show"),
      kinds.map(([kind, title]) => h("label", {}, h("input", { type: "checkbox", value: kind, checked: !board.kinds.size || board.kinds.has(kind), onchange: (event) => {
        const on = new Set([...event.target.closest("fieldset").querySelectorAll(":checked")].map((one) => one.value));
        board.kinds = on.size === kinds.length ? new Set() : on.size ? on : new Set(["none"]);
        drawBoardTable();
      } }), title))),
    groups.length > 1 ? select("Group", [["", "all groups"], ...groups.map((one) => [one, GROUPS[one] || one])], board.group, (value) => { board.group = value; drawBoardTable(); }) : null,
    h("p", { class: "hint", id: "board-count", role: "status" }),
  );
}

function totalsBlock() {
  return h("div", { class: "formulas" }, data.composites.map((one) => h("div", {},
    h("h3", {}, one.title, one.title === one.name ? "" : h("small", { class: "mono" }, ` ${one.name}`)),
    h("p", {}, h("code", {}, one.formula)),
    one.weights.length ? h("p", { class: "hint" }, `Weights: ${one.weights.map(([code, weight]) => `${code} ${weight}`).join(", ")}`) : null,
    h("p", { class: "hint" }, scoredLines().map((line) => {
      const own = fact(line, "", one.name);
      return own ? `${lineLabel(line)}: n ${own.n}${own.value === null ? `, no total (${own.why})` : ""}` : "";
    }).filter(Boolean).slice(0, 8).join("; ")))));
}

function heat(label, rowNames, lines, cellOf, nameOf) {
  const table = h("table", { class: "heat" }, h("caption", { class: "sr" }, label));
  table.append(h("thead", {}, h("tr", {}, h("td", {}), lines.map((line) => h("th", { scope: "col" }, modelName(lineLabel(line)))))));
  const body = h("tbody", {});
  for (const [key, title] of rowNames) {
    body.append(h("tr", {}, h("th", { scope: "row" }, nameOf ? nameOf(key) : [h("b", {}, key), title && title !== key ? ` ${title}` : ""]), lines.map((line) => {
      const cell = cellOf(key, line);
      if (!cell) return h("td", { class: "none" }, DASH);
      const props = { class: "shade", "--k": (cell.quality ?? 0).toFixed(3) };
      if (!cell.fact) return h("td", { ...props, title: cell.title }, h("span", { class: "value" }, cell.text), h("small", {}, cell.small));
      return h("td", props, h("button", { type: "button", class: "num", tabindex: -1, "aria-label": `${nameOf ? place(cell.fact) : key} of ${lineLabel(line)}: ${cell.text}`, onclick: (event) => openDetails(cell.fact, event.currentTarget) }, h("span", { class: "value" }, cell.text), cell.small ? h("small", {}, cell.small) : null));
    })));
  }
  table.append(body);
  return scroller(label, roving(table));
}

const slices = () => [...new Set(data.facts.slice)].map((one) => names[one]).filter(Boolean).sort();

// Parts of the tasks that the scores hold as rows of their own, with intervals.
function sliceMap(column, lines) {
  const places = slices().filter((one) => one.startsWith(`${column}=`)).flatMap((part) =>
    data.tasks.filter((one) => lines.some((line) => fact(line, one.code, one.headline, "", part))).map((one) => ({ key: `${part.slice(column.length + 1)} · ${one.code}`, part, task: one })));
  const title = column[0].toUpperCase() + column.slice(1).replaceAll("_", " ");
  return [h("h3", {}, title), heat(`${title} by model`, places.map((one) => [one.key, one.task.title]), lines, (key, line) => {
    const one = places.find((place) => place.key === key);
    const own = fact(line, one.task.code, one.task.headline, "", one.part);
    return own && own.value !== null ? { fact: own, quality: quality(own), text: number(own.value, own.metric, own.task, false) } : null;
  })];
}

function anatomyMap(lines) {
  const regions = Object.keys(data.anatomy);
  if (!regions.length) return [h("h3", {}, "Anatomy"), h("p", { class: "empty" }, data.gallery.missing || "No item of a choice or place task states its anatomy.")];
  return [
    h("h3", {}, "Anatomy"),
    h("p", { class: "hint" }, "Share of right answers over choice and place items, % (strict, failures count as wrong); small: right of n. Counted for this page, without interval: regions differ in tasks and options, so compare along a row."),
    heat("Anatomy by model", regions.map((one) => [one, ""]), lines, (key, line) => {
      const cell = data.anatomy[key][line];
      return cell && cell[1] ? { quality: cell[0] / cell[1], text: digits(cell[0] / cell[1], "percent"), small: `${cell[0]}/${cell[1]}`, title: `${cell[0]} of ${cell[1]} right` } : null;
    })];
}

// Totals over what one image can tell: all scenarios, those that are determinable at least partly, those that are fully.
function determinableTotals() {
  const parts = [["", "all scenarios"], ["determinable!=no", "determinable or partly"], ["determinable=yes", "determinable"]];
  const lines = scoredLines();
  // A part that holds all items says nothing new.
  const differs = (name, part) => lines.some((line) => {
    const [own, whole] = [fact(line, "", name, "", part), fact(line, "", name)];
    return own && whole && own.n !== whole.n;
  });
  const told = data.composites.filter((one) => parts.some(([part]) => part && differs(one.name, part)));
  const rowsOf = told.flatMap((one) => parts.filter(([part]) => !part || differs(one.name, part)).map(([part, title]) => ({ key: `${one.name}`, title, part, name: one.name })));
  if (!rowsOf.length) return null;
  return [h("h3", {}, "By what one image can tell"), heat("Totals by what one image can tell", rowsOf.map((one, place) => [place, ""]), lines, (place, line) => {
    const own = fact(line, "", rowsOf[place].name, "", rowsOf[place].part);
    return own ? { fact: own, quality: own.value === null ? 0 : quality(own), text: number(own.value, own.metric, ""), small: own.value === null ? "" : interval(own) } : null;
  }, (place) => [h("b", {}, metricName(rowsOf[place].key)), ` ${rowsOf[place].title}`])];
}

function heatMaps() {
  // A baseline that has no answer of these forms has no column.
  const held = (line) => data.tasks.some((one) => (fact(line, one.code, one.headline) || { value: null }).value !== null);
  const lines = data.lines.map((one, line) => [one, line]).filter(([one, line]) => one.kind !== "published" && (one.kind !== "baseline" || held(line))).map(([, line]) => line);
  const tasks = heat("Tasks by model", data.tasks.map((one) => [one.code, one.title]), lines, (code, line) => {
    const own = fact(line, code, task(code).headline);
    return own && own.value !== null ? { fact: own, quality: quality(own), text: number(own.value, own.metric, code, false) } : null;
  });
  const parts = [h("h3", {}, "Tasks"), h("p", { class: "hint" }, "Darker is better (errors turned round). Open a number for its recipe."), tasks];
  const scored = scoredLines();
  const columns = [...new Set(slices().filter((one) => one.includes("=")).map((one) => one.split(/!?=/)[0]))].sort();
  for (const column of columns.filter((one) => one !== "determinable")) parts.push(...sliceMap(column, scored));
  if (!columns.includes("anatomy")) parts.push(...anatomyMap(scored));
  return h("section", {}, h("h2", {}, "Where each model stands"), parts);
}

function randomBlock() {
  const found = data.random;
  if (!found) return null;
  const shownValue = (one, value) => (value === null ? h("span", { title: one.why }, DASH) : number(value, one.metric, one.task));
  const table = h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["", "Published", "Computed here", "95 % interval", "Chance, exact", "n here"].map((one, place) => h("th", { scope: "col", class: place ? "r" : "" }, one)))));
  table.append(h("tbody", {}, found.rows.map((one) => h("tr", {},
    h("th", { scope: "row" }, one.task ? `${one.task} ${metricName(one.metric)}` : metricName(one.metric)),
    h("td", { class: "r" }, shownValue(one, one.published)), h("td", { class: "r" }, shownValue(one, one.computed)), h("td", { class: "r" }, one.low === null ? (one.computed === null ? "" : "none") : interval(one)),
    h("td", { class: "r" }, one.chance === null ? "" : number(one.chance, one.metric, one.task)), h("td", { class: "r" }, one.n ?? "")))));
  return h("section", { id: "random" },
    h("h2", {}, "Two random rows, and why they differ"),
    h("p", {}, `"${found.label}" is a published row; "random" was computed here on the same items as the models. Guessing is the floor of every table, so both are shown.`),
    scroller("Random rows", table),
    found.shared ? h("p", {}, `Over the tasks that both have (${found.shared.tasks.join(", ")}; weights scaled to 1), ${metricName(found.shared.name)} is `, h("b", {}, digits(found.shared.published, "total")), " published and ", h("b", {}, digits(found.shared.computed, "total")), " here.") : null,
    h("ul", { class: "causes" }, found.causes.map((one) => h("li", {}, one))));
}

function drawBoard(panel) {
  const judged = state.protocol === "strict" && Object.keys(data.verdicts).length;
  const first = h("section", { id: "glance" });
  drawGlance(first, panel);
  panel.replaceChildren(
    first,
    h("section", {},
      h("h2", {}, "Leaderboard"),
      h("p", { class: "hint" }, "Line = 95 % interval, dot = value, on one scale for each column; n = items, failed replies included. Arrow keys go from number to number, Enter opens what stands behind it."),
      judged ? h("p", { class: "hint legend" }, h("span", {}, "Against the best baseline that does not look at the image:"), Object.entries(VERDICTS).map(([word, [glyph]]) => h("span", {}, h("i", { class: `mark ${word.split(" ")[0]}` }, glyph), word))) : null,
      boardFilters(),
      h("div", { id: "leaderboard" })),
    ...[data.composites.length ? h("section", {}, h("h2", {}, "What the totals are made of"), totalsBlock(), determinableTotals()) : null, randomBlock(), heatMaps()].filter(Boolean));
  drawBoardTable();
}
