// Differences: forest plots of paired differences, against not looking and between models.
const forest = { line: null, pair: "" };

// The room inside a section of the panel.
const drawWidth = (panel) => Math.max(280, Math.min(1180, (panel.clientWidth || 760) - (innerWidth <= 700 ? 30 : 50)));

function ticks(low, high, most = 6) {
  const span = high - low || 1;
  const raw = span / most;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * size).find((one) => one >= raw);
  const result = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) result.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return result;
}

function signed(one) {
  const shown = (value) => (value > 0 ? "+" : "") + digits(value, "plain");
  return [one.low === null ? `${shown(one.value)}, no interval` : `${shown(one.value)} [${shown(one.low)}, ${shown(one.high)}]`, one.n ? `n ${one.n}` : ""].filter(Boolean).join(" · ");
}

const plainTick = (value) => Number(value.toPrecision(6)).toString().replace("-", "\u2212");

// How wide a text is in a chart, in pixels.
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, size = 12) {
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

// A text cut to a room, with an ellipsis where it is too long.
function fitted(text, room) {
  if (textWidth(text) <= room) return text;
  let length = text.length;
  while (length > 1 && textWidth(`${text.slice(0, length)}…`) > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

// Dots and intervals, a row each, with what they say as text; on a phone the text stands above its line.
// rows: {label, head} or {label, value, low, high, note, kind, text}; origin: a value that must be in the picture;
// guide: [value, what it is]; kind: how ticks are written, null = signed differences.
function forestPlot(label, rows, width, axis, { origin = 0, kind: unitKind = null, guide = null } = {}) {
  const held = rows.filter((one) => one.value !== null && one.value !== undefined);
  const ends = held.flatMap((one) => [one.value, one.low, one.high]).filter((one) => one !== null);
  if (!ends.length) return h("p", { class: "empty" }, "No difference could be estimated.");
  // One absurd interval must not press all others into a point: the picture ends one span beyond the values.
  const shownValues = [...held.map((one) => one.value), ...(origin === null ? [] : [origin]), ...(guide ? [guide[0]] : [])];
  const room = Math.max(...shownValues) - Math.min(...shownValues) || Math.abs(shownValues[0]) || 1;
  const bounded = unitKind === null || unitKind.startsWith("percent");
  let low = Math.max(bounded ? -Infinity : Math.min(...shownValues) - room, Math.min(...shownValues, ...ends));
  let high = Math.min(bounded ? Infinity : Math.max(...shownValues) + room, Math.max(...shownValues, ...ends));
  const pad = (high - low || 0.1) * 0.08;
  // A share or a total starts at its origin, without room below it.
  if (low !== 0 || unitKind === null) low -= pad;
  high += pad;
  const narrow = width < 560;
  const longest = Math.max(...rows.map((one) => (one.head ? 0 : textWidth(one.label))));
  const told = rows.map((one) => (one.head || one.value === null || one.value === undefined ? "" : one.text || signed(one)));
  const left = narrow ? 14 : Math.min(width * 0.34, Math.max(120, longest + 14));
  const right = narrow ? 20 : Math.max(...told.map((one) => textWidth(one, 11.5))) + 20;
  const step = narrow ? 38 : 24;
  const height = rows.length * step + 50;
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
  const kids = [s("title", {}, label)];
  for (const tick of ticks(low, high, narrow ? 4 : 7)) {
    kids.push(s("line", { class: tick === 0 && unitKind === null ? "zero" : "grid", x1: x(tick), x2: x(tick), y1: 4, y2: height - 42 }));
    kids.push(s("text", { class: "tick", x: x(tick), y: height - 26, "text-anchor": "middle" }, unitKind === null ? (tick > 0 ? "+" : "") + plainTick(tick) : unitKind.startsWith("percent") ? `${plainTick(100 * tick)} %` : plainTick(tick)));
  }
  // Each side is named where there is room for its name.
  const [worse, better] = axis;
  if (unitKind !== null) {
    kids.push(s("text", { class: "axis", x: left, y: height - 6 }, `← ${worse}`), s("text", { class: "axis", x: width - right, y: height - 6, "text-anchor": "end" }, `${better} →`));
  } else {
    if (x(0) - left > worse.length * 6) kids.push(s("text", { class: "axis", x: x(0) - 8, y: height - 6, "text-anchor": "end" }, `← ${worse}`));
    if (width - right - x(0) > better.length * 6) kids.push(s("text", { class: "axis", x: x(0) + 8, y: height - 6 }, `${better} →`));
  }
  if (guide) {
    // Its name stands on the side where there is room.
    const before = x(guide[0]) > left + (width - left - right) / 2;
    kids.push(s("line", { class: "guide", x1: x(guide[0]), x2: x(guide[0]), y1: 4, y2: height - 42 }), s("text", { class: "axis", x: x(guide[0]) + (before ? -6 : 6), y: 14, "text-anchor": before ? "end" : "start" }, guide[1]));
  }
  rows.forEach((one, place) => {
    const top = place * step + 18;
    const y = narrow ? top + 16 : top;
    if (one.head) {
      kids.push(s("text", { class: "head", x: 0, y: top + 4 }, one.label));
      return;
    }
    const cut = narrow ? width - 14 - textWidth(told[place], 11.5) : left - 12;
    kids.push(s("text", narrow ? { class: "label", x: 2, y: top + 4 } : { class: "label", x: left - 10, y: top + 4, "text-anchor": "end" }, fitted(one.label, cut), s("title", {}, one.label)));
    if (one.value === null || one.value === undefined) {
      kids.push(s("text", { class: "tick", x: left + 6, y: y + 4 }, one.note || "no value"));
      return;
    }
    const kind = one.kind || "";
    if (one.low !== null && one.high !== null) {
      kids.push(s("line", { class: `reach ${kind}`, x1: x(Math.max(low, one.low)), x2: x(Math.min(high, one.high)), y1: y, y2: y }));
      // An end beyond the picture has no bar.
      for (const end of [one.low, one.high].filter((value) => value >= low && value <= high)) kids.push(s("line", { class: `reach ${kind}`, x1: x(end), x2: x(end), y1: y - 4, y2: y + 4 }));
    }
    kids.push(s("circle", { class: `dot ${kind}`, cx: x(one.value), cy: y, r: 4 }));
    kids.push(s("text", { class: "tick", x: width, y: top + 4, "text-anchor": "end" }, told[place]));
  });
  return h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, s("svg", { class: "chart", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, width, height }, kids));
}

const KIND_OF = { above: "good", below: "bad", "not distinguishable": "even" };

function asTable(heads, lines) {
  return h("details", {}, h("summary", {}, "As a table"), scroller("As a table", h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, lines.map((line) => h("tr", {}, line.map((one, place) => h(place ? "td" : "th", place ? {} : { scope: "row" }, one))))))));
}

function drawForest(panel) {
  const width = drawWidth(panel);
  const lines = scoredLines().filter((line) => data.verdicts[line]);
  const parts = [h("h2", {}, "Against not looking")];
  parts.push(h("p", { class: "hint" }, "Paired difference to the best baseline that does not read the image, task by task, with its 95 % interval: 0 = no better than not looking. Differences are of d: the headline, with errors turned round so that higher is better."));
  if (state.protocol !== "strict") parts.push(h("p", { class: "hint" }, "Verdicts are given under strict only; they are shown here whichever protocol is chosen above."));
  if (!lines.length) {
    parts.push(h("p", { class: "empty" }, "No verdicts in these scores: they were scored without baselines or under the published protocol only."));
  } else {
    if (forest.line === null || (forest.line !== "all" && !lines.includes(Number(forest.line)))) forest.line = lines[0];
    if (lines.length > 1) {
      parts.push(h("div", { class: "filters" }, select("Model", [...lines.map((line) => [line, lineLabel(line)]), ["all", "all, task by task"]], forest.line, (value) => { forest.line = value; drawForest(panel); panel.querySelector("select").focus(); })));
    }
    const chosen = forest.line === "all" ? lines : [Number(forest.line)];
    const list = [];
    const table = [];
    for (const { code, title } of data.tasks) {
      const judged = chosen.map((line) => [line, data.verdicts[line][code]]).filter(([, one]) => one);
      if (!judged.length) continue;
      if (chosen.length > 1) list.push({ head: true, label: `${code} ${title}` });
      for (const [line, one] of judged) {
        const label = chosen.length > 1 ? lineLabel(line) : `${code} ${title}`;
        list.push({ label, value: one.difference, low: one.low, high: one.high, note: one.why, kind: KIND_OF[one.word] || "", n: (fact(line, code, task(code).headline) || {}).n });
        table.push([`${code} · ${lineLabel(line)}`, verdictText(one)]);
      }
    }
    parts.push(forestPlot(`Difference to the best non-reading baseline${chosen.length === 1 ? `: ${lineLabel(chosen[0])}` : ""}`, list, width, ["worse than not looking", "better"]));
    parts.push(h("p", { class: "hint legend" }, Object.entries(VERDICTS).map(([word]) => h("span", {}, h("i", { class: `swatch dotlike ${KIND_OF[word]}` }), word)), h("span", {}, h("i", { class: "swatch dotlike plainly" }), "no interval, so no verdict")));
    parts.push(asTable(["Task", "Verdict"], table));
  }
  const own = h("section", {}, parts);
  panel.replaceChildren(own, comparisonSection(width, panel));
}

function comparisonSection(width, panel) {
  const parts = [h("h2", {}, "Between models")];
  const found = data.comparison;
  if (!found) {
    parts.push(h("p", { class: "empty" }, "No comparison was given. Make one with ", h("code", {}, "sonogauge compare RUN RUN --out COMPARISON"), " and name the folder beside the scores."));
    return h("section", {}, parts);
  }
  const pairs = [...new Set(found.differences.map((one) => `${one.first}\u0000${one.second}`))];
  // First the models of this page, then baselines.
  const own = new Set(scoredLines().map(lineLabel));
  const rank = (pair) => pair.split("\u0000").filter((one) => !own.has(one)).length;
  pairs.sort((a, b) => rank(a) - rank(b));
  if (!pairs.includes(forest.pair)) forest.pair = pairs[0] || "";
  const [first, second] = forest.pair.split("\u0000");
  if (pairs.length > 1) parts.push(h("div", { class: "filters" }, select("Pair", pairs.map((one) => [one, one.replace("\u0000", " − ")]), forest.pair, (value) => { forest.pair = value; drawForest(panel); })));
  const rowsOf = found.differences.filter((one) => one.first === first && one.second === second);
  const adjusted = found.correction === "bh" ? "p_bh" : "p_holm";
  const list = rowsOf.map((one) => ({
    label: [one.task || metricName(one.metric), one.dataset, one.level].filter(Boolean).join(" "),
    value: one.d_difference, low: one.d_low, high: one.d_high, note: one.why,
    n: one.n, kind: one.d_low === null ? "" : one.d_low > 0 ? "good" : one.d_high < 0 ? "bad" : "even",
  }));
  if (first) parts.push(h("p", { class: "hint" }, `${first} minus ${second}, same items, same draws of patients; p by exchanging the models within patients, adjusted (${found.correction || "holm"}) within its family.`));
  parts.push(forestPlot(`Paired difference: ${first} minus ${second}`, list, width, ["second better", "first better"]));
  parts.push(asTable(["Where", "Difference of d", "p", "p adjusted", "n", "Groups"], rowsOf.map((one) => [
    [one.task || metricName(one.metric), one.dataset, one.level].filter(Boolean).join(" "),
    one.d_difference === null ? one.why || DASH : digits(one.d_difference, "plain"), pText(one.p), pText(one[adjusted]), one.n, one.groups])));
  parts.push(h("p", { class: "hint" }, found.notices.join(" "), " Manifest ", h("code", {}, found.hash.slice(0, 12)), "."));
  return h("section", {}, parts);
}

const pText = (p) => (p === null ? DASH : p < 0.0001 ? "< 0.0001" : p.toPrecision(2));
