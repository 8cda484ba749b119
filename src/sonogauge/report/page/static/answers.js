// Answers: confusion matrices of choices and places, numbers against their reference; then coverage and failures.
const answersState = { line: null, choice: 0, value: 0 };

const cellName = (one) => `${one.task} · ${one.dataset} (${one.n})`;

function modelSelect(lines, panel, draw) {
  if (!lines.includes(Number(answersState.line)) || answersState.line === null) answersState.line = lines[0];
  return lines.length > 1
    ? select("Model", lines.map((line) => [line, lineLabel(line)]), answersState.line, (value) => { answersState.line = Number(value); draw(panel); panel.querySelector("select").focus(); })
    : null;
}

function confusionTable(cell, line) {
  const counts = cell.models[line];
  if (!counts) return h("p", { class: "empty" }, `${lineLabel(line)} has no answers here.`);
  const title = `Confusion of ${lineLabel(line)} on ${cell.task} ${cell.dataset}`;
  const table = h("table", { class: "confusion" }, h("caption", { class: "sr" }, title));
  table.append(h("thead", {}, h("tr", {}, h("td", {}), cell.options.map((one) => h("th", { scope: "col" }, words(one))), h("th", { scope: "col", class: "invalid" }, "no valid answer"), h("th", { scope: "col" }, "n"), h("th", { scope: "col" }, "recall"))));
  const body = h("tbody", {});
  cell.options.forEach((option, row) => {
    const total = counts[row].reduce((sum, one) => sum + one, 0);
    body.append(h("tr", {}, h("th", { scope: "row" }, words(option)), counts[row].map((one, column) =>
      h("td", { class: `shade${column === row ? " hit" : ""}${column === cell.options.length ? " invalid" : ""}${one ? "" : " zero"}`, "--k": total ? (one / total).toFixed(3) : "0" }, one || "·")),
      h("td", { class: "sum" }, total), h("td", { class: "sum" }, total ? `${digits(counts[row][row] / total, "percent")} %` : DASH)));
  });
  const read = cell.options.map((_, column) => counts.reduce((sum, row) => sum + row[column], 0));
  const all = counts.flat().reduce((sum, one) => sum + one, 0);
  body.append(h("tr", { class: "foot" }, h("th", { scope: "row" }, "read as"), read.map((one) => h("td", { class: "sum" }, one)), h("td", { class: "sum" }, all - read.reduce((sum, one) => sum + one, 0)), h("td", { class: "sum" }, all), h("td", {})));
  body.append(h("tr", { class: "foot" }, h("th", { scope: "row" }, "precision"), read.map((one, place) => h("td", { class: "sum" }, one ? `${digits(counts[place][place] / one, "percent")} %` : DASH)), h("td", {}), h("td", {}), h("td", {})));
  table.append(body);
  const right = counts.reduce((sum, row, place) => sum + row[place], 0);
  return [h("p", { class: "hint" }, "Rows: reference. Columns: what was read from the reply. Shading: share of the row. Recall: share of a row that is right, which for two classes is sensitivity and specificity; precision: share of a column that is right."), scroller(title, table), h("p", { class: "hint" }, `${right} of ${all} right${all ? ` (${digits(right / all, "percent")} %)` : ""}; ${counts.reduce((sum, row) => sum + row[cell.options.length], 0)} without a valid answer.`)];
}

// Bias and 95 % limits of agreement: mean difference ± 1.96 standard deviations (Bland and Altman 1986).
function agreement(pairs) {
  const gaps = pairs.map(([reference, predicted]) => predicted - reference);
  const bias = gaps.reduce((sum, one) => sum + one, 0) / gaps.length;
  const spread = gaps.length > 1 ? Math.sqrt(gaps.reduce((sum, one) => sum + (one - bias) ** 2, 0) / (gaps.length - 1)) : null;
  return { bias, spread, low: spread === null ? null : bias - 1.96 * spread, high: spread === null ? null : bias + 1.96 * spread };
}

const chartBox = (title, width, height, kids) => h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": title }, s("svg", { class: "chart", role: "img", "aria-label": title, viewBox: `0 0 ${width} ${height}`, width, height }, kids));

// Differences against the reference, with bias and limits: the plot of Bland and Altman where one side is the reference.
function gapPlot(cell, line, pairs, found, width, height) {
  const [left, bottom, top, right] = [58, 44, 22, 72];
  const gaps = pairs.map(([reference, one]) => one - reference);
  const lines = [["bias", found.bias, "bias"], ...(!found.spread ? [] : [["limit", found.low, "lower limit"], ["limit", found.high, "upper limit"]])];
  const ys = [0, ...gaps, ...lines.map(([, value]) => value)];
  const room = (Math.max(...ys) - Math.min(...ys) || 1) * 0.06;
  const [low, high] = [Math.min(...ys) - room, Math.max(...ys) + room];
  const references = pairs.map(([reference]) => reference);
  const [least, most] = [Math.min(...references), Math.max(...references)];
  const span = most - least || 1;
  const x = (value) => left + 8 + ((value - least) / span) * (width - left - right - 16);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - top);
  const title = `Differences of ${lineLabel(line)} from the reference on ${cell.task} ${cell.dataset}`;
  const unitText = cell.unit ? ` (${cell.unit})` : "";
  const kids = [s("title", {}, title)];
  for (const tick of ticks(low, high, 6).filter((value) => value <= high)) kids.push(s("line", { class: tick === 0 ? "zero" : "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }), s("text", { class: "tick", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, (tick > 0 ? "+" : "") + plainTick(tick)));
  for (const tick of ticks(least, most, 5).filter((value) => value <= most)) kids.push(s("text", { class: "tick", x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, plainTick(tick)));
  // Names that would lie on each other move apart.
  let last = Infinity;
  for (const [kind, value, name] of lines.sort((a, b) => a[1] - b[1])) {
    const at = Math.min(y(value) + 4, last - 13);
    last = at;
    kids.push(s("line", { class: kind, x1: left, x2: width - right, y1: y(value), y2: y(value) }), s("text", { class: "tick", x: width - right + 6, y: at }, name));
  }
  pairs.forEach(([reference, one]) => kids.push(s("circle", { class: "gap", cx: x(reference).toFixed(1), cy: y(one - reference).toFixed(1), r: 3 })));
  kids.push(s("text", { class: "axis", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, `reference${unitText}`));
  kids.push(s("text", { class: "axis", x: 14, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${height / 2})` }, `prediction − reference${unitText}`));
  return chartBox(title, width, height, kids);
}

const near = (value) => Number(value.toPrecision(3)).toString().replace("-", "\u2212");

function scatter(cell, line, width) {
  const predicted = cell.models[line];
  if (!predicted) return h("p", { class: "empty" }, `${lineLabel(line)} has no answers here.`);
  const pairs = cell.reference.map((one, place) => [one, predicted[place]]).filter(([, one]) => one !== null);
  const missing = cell.reference.length - pairs.length;
  if (!pairs.length) return h("p", { class: "empty" }, `None of ${cell.reference.length} replies holds a number that could be read.`);
  const found = agreement(pairs);
  const side = Math.min(width, 520);
  const [left, bottom, top] = [52, 44, 10];
  const references = pairs.map(([reference]) => reference);
  // A reference outside the declared range widens the picture; a prediction there is drawn at its edge.
  const low = cell.low === null ? Math.min(...pairs.flat()) : Math.min(cell.low, ...references);
  const high = cell.high === null ? Math.max(...pairs.flat()) : Math.max(cell.high, ...references);
  const strays = references.filter((one) => (cell.low !== null && one < cell.low) || (cell.high !== null && one > cell.high)).length;
  const outside = pairs.filter(([, one]) => one < low || one > high).length;
  const span = high - low || 1;
  const clip = (value) => Math.max(low, Math.min(high, value));
  const x = (value) => left + ((clip(value) - low) / span) * (side - left - 12);
  const y = (value) => side - bottom - ((clip(value) - low) / span) * (side - bottom - top);
  const unitText = cell.unit ? ` (${cell.unit})` : "";
  const title = `Predictions of ${lineLabel(line)} against the reference on ${cell.task} ${cell.dataset}`;
  const kids = [s("title", {}, title)];
  for (const tick of ticks(low, high, 6)) {
    kids.push(s("line", { class: "grid", x1: x(tick), x2: x(tick), y1: y(low), y2: y(high) }), s("line", { class: "grid", x1: x(low), x2: x(high), y1: y(tick), y2: y(tick) }));
    kids.push(s("text", { class: "tick", x: x(tick), y: side - bottom + 16, "text-anchor": "middle" }, plainTick(tick)), s("text", { class: "tick", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, plainTick(tick)));
  }
  const slope = (shift, kind) => {
    // A line of slope one, cut at the frame.
    const from = Math.max(low, low - shift);
    const to = Math.min(high, high - shift);
    return to > from ? s("line", { class: kind, x1: x(from), y1: y(from + shift), x2: x(to), y2: y(to + shift) }) : null;
  };
  kids.push(slope(0, "zero"), slope(found.bias, "bias"));
  if (found.low !== null) kids.push(slope(found.low, "limit"), slope(found.high, "limit"));
  for (const [reference, one] of pairs) kids.push(s("circle", { class: `point${one < low || one > high ? " out" : ""}`, cx: x(reference).toFixed(1), cy: y(one).toFixed(1), r: 3 }));
  kids.push(s("text", { class: "axis", x: (left + side) / 2, y: side - 8, "text-anchor": "middle" }, `reference${unitText}`));
  kids.push(s("text", { class: "axis", x: 14, y: side / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${side / 2})` }, `prediction${unitText}`));
  return [
    h("div", { class: "pair" }, chartBox(title, side, side, kids.filter(Boolean)), gapPlot(cell, line, pairs, found, Math.min(width, 560), side)),
    h("dl", { class: "stats" },
      h("div", {}, h("dt", {}, "Pairs"), h("dd", {}, `${pairs.length} of ${cell.reference.length}`)),
      h("div", {}, h("dt", {}, "Bias, prediction − reference"), h("dd", {}, `${near(found.bias)} ${cell.unit}`)),
      h("div", {}, h("dt", {}, "Limits of agreement, 95 %"), h("dd", {}, found.low === null ? DASH : `${near(found.low)} to ${near(found.high)} ${cell.unit}`)),
      h("div", {}, h("dt", {}, "Without a number"), h("dd", {}, missing)),
      h("div", {}, h("dt", {}, "Predictions beyond the picture, drawn at its edge"), h("dd", {}, outside)),
      strays ? h("div", {}, h("dt", {}, `References outside the declared ${plainTick(cell.low)} to ${plainTick(cell.high)} ${cell.unit}`), h("dd", {}, strays)) : null),
    h("p", { class: "hint" }, "Left: predictions; grey: equal to the reference. Right: their differences, the grey line at none. Coloured: bias. Dashed: mean difference ± 1.96 standard deviations. Pairs of one patient are not independent, so the limits are a description, not an interval."),
  ];
}

function drawAnswers(panel) {
  const lines = scoredLines().filter((line) => [...data.choices, ...data.numbers].some((cell) => cell.models[line]));
  const missing = h("p", { class: "empty" }, data.gallery.missing || "No single answers of choice, place or number tasks are stored in these scores.");
  if (!lines.length) {
    panel.replaceChildren(h("section", {}, h("h2", {}, "Single answers"), missing));
    return;
  }
  const width = drawWidth(panel);
  const parts = [h("section", {}, h("h2", {}, "Single answers"), h("p", { class: "hint" }, "As strict scoring read them, unvaried run, first epoch."), h("div", { class: "filters" }, modelSelect(lines, panel, drawAnswers)))];
  const line = Number(answersState.line);
  if (data.choices.length) {
    const cell = data.choices[answersState.choice] || data.choices[0];
    parts.push(h("section", {}, h("h2", {}, "Choices and places"),
      h("div", { class: "filters" }, select("Data set", data.choices.map((one, place) => [place, cellName(one)]), answersState.choice, (value) => { answersState.choice = Number(value); drawAnswers(panel); })),
      confusionTable(cell, line)));
  }
  if (data.numbers.length) {
    const cell = data.numbers[answersState.value] || data.numbers[0];
    parts.push(h("section", {}, h("h2", {}, "Numbers"),
      h("div", { class: "filters" }, select("Data set", data.numbers.map((one, place) => [place, cellName(one)]), answersState.value, (value) => { answersState.value = Number(value); drawAnswers(panel); })),
      scatter(cell, line, width)));
  }
  panel.replaceChildren(...parts);
}

// How a request ended, why an item counts nowhere, and what was said where nothing can be measured.
const STATES = {
  excluded: { error: "reference is faulty", null: "reference says: cannot be measured", absent: "no reference" },
  request: { ok: "request answered", truncated: "request cut off", error: "request failed", missing: "no reply" },
  abstention: { null: "says so: right", number: "gives a number: wrong" },
};
const stateName = (kind, name) => STATES[kind][name] || `${REASONS[name] || name.replaceAll("_", " ")}${kind === "abstention" ? ": wrong" : ""}`;

const REASONS = {
  empty: "empty reply", refusal_insufficient: "says the image is not enough", refusal_policy: "refuses by policy", none: "names no option",
  ambiguous: "names several", negated: "only denies", error: "request failed", truncated: "cut off", missing: "no reply", unit: "wrong unit",
  range: "gives a range", format: "wrong format", size: "too long",
};

function drawFailures(panel) {
  const failures = data.failures[state.protocol] || [];
  const reasons = [...new Set(failures.flatMap((one) => Object.keys(one).filter((reason) => one[reason])))].sort();
  const parts = [];
  const table = h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Model"), h("th", { scope: "col", class: "r" }, "Scored"), h("th", { scope: "col", class: "r" }, "Valid"), h("th", { scope: "col" }, "Share"),
    reasons.map((one) => h("th", { scope: "col", class: "r", title: REASONS[one] || one }, one.replaceAll("_", " "))))));
  table.append(h("tbody", {}, data.scores.map((one, place) => {
    const own = failures[place] || {};
    const failed = reasons.reduce((sum, reason) => sum + (own[reason] || 0), 0);
    const scored = one.scored ?? 0;
    const share = scored ? Math.max(0, (scored - failed) / scored) : 0;
    return h("tr", {}, h("th", { scope: "row" }, modelName(one.label)), h("td", { class: "r" }, scored || DASH), h("td", { class: "r" }, scored ? scored - failed : DASH),
      h("td", {}, h("span", { class: "meter", "--k": share.toFixed(4) }), ` ${scored ? digits(share, "percent") + " %" : ""}`),
      reasons.map((reason) => h("td", { class: "r" }, own[reason] || "·")));
  })));
  parts.push(h("section", {}, h("h2", {}, "Replies that could not be read"),
    h("p", { class: "hint" }, state.protocol === "strict" ? "Each counts as wrong, or as the worst error, and stays visible as what it is." : "Under the published protocol most of these leave the count."),
    scroller("Failures by reason", table),
    reasons.length ? h("dl", { class: "reasons" }, reasons.map((one) => h("div", {}, h("dt", {}, one.replaceAll("_", " ")), h("dd", {}, REASONS[one] || "")))) : h("p", { class: "empty" }, "Every reply could be read.")));
  const lines = scoredLines();
  parts.push(h("section", {}, h("h2", {}, "Coverage by task"), h("p", { class: "hint" }, "Valid answers of all scored items."), heat("Coverage by task and model", data.tasks.map((one) => [one.code, one.title]), lines, (code, line) => {
    const own = fact(line, code, task(code).headline);
    return own && own.n ? { fact: own, quality: (own.valid ?? own.n) / own.n, text: `${own.valid ?? own.n}/${own.n}` } : null;
  })));
  // A row for each model, a column for each state; countsOf gives [state, count] pairs.
  const matrix = (title, hint, countsOf) => {
    const held = data.scores.map((one) => [one.label, new Map(countsOf(one).filter(([, count]) => count))]);
    const states = [...new Set(held.flatMap(([, found]) => [...found.keys()]))];
    parts.push(h("section", {}, h("h2", {}, title), h("p", { class: "hint" }, hint), states.length
      ? scroller(title, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Model"), states.map((one) => h("th", { scope: "col", class: "r" }, one)))),
          h("tbody", {}, held.map(([label, found]) => h("tr", {}, h("th", { scope: "row" }, modelName(label)), states.map((one) => h("td", { class: "r" }, found.get(one) || "\u00b7")))))))
      : h("p", { class: "empty" }, "None.")));
  };
  if (data.scores.some((one) => Object.keys(one.abstention || {}).length)) {
    matrix("Where nothing can be measured", "Items whose reference is \u201ccannot be measured\u201d: right if the model says so. Never part of an error metric.", (one) =>
      Object.entries(one.abstention || {}).flatMap(([where, found]) => Object.entries(found).map(([kind, count]) => [`${where}: ${stateName("abstention", kind)}`, count])));
  }
  matrix("How requests ended, and what counts nowhere", "Items whose reference cannot be used are left out of every number above.", (one) => [
    ...Object.entries(one.statuses || {}).map(([kind, count]) => [stateName("request", kind), count]),
    ...Object.entries(one.excluded || {}).map(([kind, count]) => [`left out: ${stateName("excluded", kind)}`, count])]);
  panel.replaceChildren(...parts);
}

function drawRecipe(panel) {
  const parts = data.scores.map((one) => h("section", { class: "recipe" },
    h("h3", {}, modelName(one.label)),
    rows(h("dl", { class: "pairs" }), [
      ["Scores folder", code(one.hash)],
      ...one.inputs.map((input) => [`Input: ${input.role} ${input.name}`, code(input.hash)]),
      ["Made by", one.maker],
      ...Object.entries(one.tables).map(([name, hash]) => [`Table ${name}`, code(hash)]),
      ["Parameters", Object.entries(one.parameters).map(([name, value]) => h("span", { class: "option" }, `${name} `, code(typeof value === "string" ? value : JSON.stringify(value))))],
    ])));
  const sets = new Map();
  const f = data.facts;
  for (let row = 0; row < f.line.length; row++) {
    if (!f.signature[row] || f.dataset[row] || f.slice[row]) continue;
    const key = names[f.signature[row]];
    const found = sets.get(key) || sets.set(key, { metrics: new Set(), tasks: new Set() }).get(key);
    found.metrics.add(names[f.metric[row]]);
    found.tasks.add(names[f.task[row]] || "total");
  }
  const table = h("table", { class: "plain recipes" }, h("thead", {}, h("tr", {}, ["Tasks", "Metrics", "Signature, after the metric"].map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, [...sets].map(([signature, found]) => h("tr", {}, h("td", {}, [...found.tasks].join(", ")), h("td", {}, [...found.metrics].join(", ")), h("td", {}, code(signature))))));
  panel.replaceChildren(h("section", {}, h("h2", {}, "Manifests"), h("p", { class: "hint" }, "What each scores folder was made from, by content. The same inputs and parameters give the same numbers."), parts),
    h("section", {}, h("h2", {}, "Signatures"), h("p", { class: "hint" }, "What was chosen for each number: protocol, benchmark and version, parser, how parts are put together, interval, draws, seed, software. Two numbers compare where these agree."), h("details", {}, h("summary", {}, `${sets.size} signatures`), scroller("Signatures", table))));
}
