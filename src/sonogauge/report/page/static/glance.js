// At a glance: a tile for each scored model, and one chart of every row on the total or on a task.
const glance = { key: null };
const MOST_TILES = 6;

function verdictCounts(line) {
  const words = Object.values(data.verdicts[line] || {}).map((one) => one.word);
  return { all: words.length, none: words.filter((one) => !VERDICTS[one]).length, told: Object.entries(VERDICTS).map(([word, [glyph]]) => [word, glyph, words.filter((one) => one === word).length]) };
}

function tile(line, columns) {
  const head = columns[0];
  const own = fact(line, head.task, head.metric);
  const judged = verdictCounts(line);
  const recipe = data.scores[data.lines[line].scores];
  // What could be read is what the strict parsers read; under the published protocol a failure may leave the count.
  const failures = (data.failures.strict || data.failures[state.protocol] || [])[data.lines[line].scores] || {};
  const failed = Object.values(failures).reduce((sum, one) => sum + one, 0);
  const share = recipe.scored ? Math.max(0, (recipe.scored - failed) / recipe.scored) : null;
  return h("li", { class: "tile" },
    h("h3", {}, modelName(lineLabel(line))),
    own && own.value !== null
      ? h("p", { class: "big" }, h("b", {}, number(own.value, own.metric, own.task)), h("span", {}, interval(own) ? `[${interval(own)}]` : "no interval"))
      : h("p", { class: "big" }, h("b", {}, DASH), h("span", {}, (own && own.why) || "not scored")),
    h("p", { class: "hint" }, columnTitle(head), own && own.n !== null ? `, n ${own.n}` : "", own && own.groups ? `, ${own.groups} patients or groups` : ""),
    state.protocol === "strict" && judged.all
      ? h("p", { class: "counts" }, judged.told.map(([word, glyph, count]) => h("span", {}, h("i", { class: `mark ${word.split(" ")[0]}`, "aria-hidden": "true" }, glyph), `${count} ${word}`)), judged.none ? h("span", {}, `${judged.none} without a verdict`) : null, h("span", { class: "hint" }, `of ${judged.all} tasks, against not looking`))
      : null,
    share === null ? null : h("p", { class: "counts" }, h("span", {}, h("span", { class: "meter", "--k": share.toFixed(4) }), ` ${digits(share, "percent")} %`), h("span", { class: "hint" }, "of replies could be read")));
}

const columnTitle = (column) => (column.task ? `${column.task} ${task(column.task).title}, ${metricName(column.metric)}` : column.title);

function glanceChart(column, width) {
  const list = [];
  const best = state.protocol === "strict" && column.task ? Math.max(...data.lines.map((one, line) => (one.kind === "baseline" && column.facts[line] && column.facts[line].value !== null ? (column.down ? -1 : 1) * column.facts[line].value : -Infinity))) : -Infinity;
  for (const [kind, title] of Object.entries(KINDS)) {
    const lines = data.lines.map((one, line) => line).filter((line) => data.lines[line].kind === kind && column.facts[line] && column.facts[line].value !== null)
      .sort((a, b) => (column.down ? 1 : -1) * (column.facts[a].value - column.facts[b].value));
    if (!lines.length) continue;
    list.push({ head: true, label: title });
    for (const line of lines) {
      const one = column.facts[line];
      const shown = number(one.value, one.metric, one.task);
      list.push({
        label: lineLabel(line), value: one.value, low: one.low, high: one.high, kind: kind === "model" || kind === "in_domain" ? "" : kind === "published" ? "open" : "aside",
        text: [shown, interval(one) && `[${interval(one).replace(" %", "")}]`, one.n !== null && `· n ${one.n}`, one.reliable === 0 && "· few groups"].filter(Boolean).join(" "),
      });
    }
  }
  return forestPlot(`${columnTitle(column)} of every row`, list, width, column.down ? ["better", "worse"] : ["worse", "better"], {
    origin: column.down || unit(column.metric, column.task) === "natural" ? null : 0,
    kind: unit(column.metric, column.task),
    guide: Number.isFinite(best) ? [(column.down ? -1 : 1) * best, "best without looking"] : null,
  });
}

function drawGlance(box, panel) {
  const columns = boardColumns();
  const held = columns.filter((column) => column.facts.some((one) => one && one.value !== null));
  const lines = scoredLines();
  if (!held.length) {
    box.replaceChildren(h("h2", {}, "At a glance"), h("p", { class: "empty" }, "No value to show."));
    return;
  }
  const keyOf = (one) => `${one.task}/${one.metric}`;
  const column = held.find((one) => keyOf(one) === glance.key) || held[0];
  box.replaceChildren(
    h("h2", {}, "At a glance"),
    lines.length <= MOST_TILES ? h("ul", { class: "tiles" }, lines.map((line) => tile(line, held))) : null,
    h("div", { class: "filters" }, select("Shown", held.map((one) => [keyOf(one), columnTitle(one)]), keyOf(column), (value) => { glance.key = value; drawGlance(box, panel); box.querySelector("select").focus(); })),
    glanceChart(column, drawWidth(panel)),
    h("p", { class: "hint legend" },
      h("span", {}, h("i", { class: "swatch own" }), "scored here, with its 95 % interval over patients"),
      data.lines.some((one) => one.kind === "baseline") ? h("span", {}, h("i", { class: "swatch aside" }), "baseline on the same items") : null,
      data.lines.some((one) => one.kind === "published") ? h("span", {}, h("i", { class: "swatch open" }), "published by others, without interval") : null));
}
