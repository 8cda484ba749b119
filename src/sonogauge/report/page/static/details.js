// What stands behind a number: a dialog with its counts, its signature and the manifest it comes from.
const detailsBox = document.getElementById("details");
let detailsBack = null;

function rows(list, pairs) {
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  }
  return list;
}

const code = (text) => h("code", {}, text);

function place(one) {
  const where = one.task ? `${one.task} ${task(one.task).title}` : "Total";
  return [where, one.dataset, one.slice].filter(Boolean).join(" · ");
}

function openDetails(one, from) {
  const line = data.lines[one.line];
  const recipe = line.scores === null ? null : data.scores[line.scores];
  const counts = rows(h("dl", { class: "pairs" }), [
    ["Value", number(one.value, one.metric, one.task)],
    ["Interval, 95 %", interval(one) || (line.kind === "published" ? "none: published numbers carry no interval here" : "none")],
    ["Why there is no value", one.value === null ? one.why : ""],
    ["Note", one.value !== null ? one.why : ""],
    ["Direction", one.down ? "lower is better" : "higher is better"],
    ["n, failures included", one.n],
    ["Valid answers", one.valid],
    ["Excluded items", one.excluded],
    ["Groups (patients)", one.groups],
    ["Reliable", one.reliable === null ? "" : one.reliable ? "yes" : "no: fewer than 20 groups"],
    ["Chance", one.chance === null ? "" : number(one.chance, one.metric, one.task)],
    ["Doubt", one.doubt],
    ["Source", one.source],
  ]);
  const parts = one.signature ? one.signature.split("|") : [];
  const recipeRows = rows(h("dl", { class: "pairs" }), parts.map((part) => {
    const cut = part.indexOf(":");
    return cut > 0 ? [part.slice(0, cut), code(part.slice(cut + 1))] : ["choice", code(part)];
  }));
  const judged = verdict(one.line, one.task);
  const headline = one.task && one.metric === task(one.task).headline && !one.dataset && !one.slice;
  detailsBox.replaceChildren(
    h("form", { method: "dialog", class: "bar" }, h("h2", { id: "details-title" }, modelName(line.label)), h("button", { class: "quiet" }, "Close")),
    h("p", { class: "lead" }, `${place(one)} · ${metricName(one.metric)} · ${line.kind === "published" ? "published, not computed here" : state.protocol}`),
    counts,
    ...(headline && judged
      ? [h("h3", {}, "Against not looking"), h("p", {}, verdictText(judged))]
      : []),
    ...(parts.length ? [h("h3", {}, "Signature"), recipeRows, h("p", { class: "mono" }, `${one.metric}|${one.signature}`)] : []),
    ...(recipe
      ? [
          h("h3", {}, "Manifest"),
          rows(h("dl", { class: "pairs" }), [
            ["Scores folder", code(recipe.hash)],
            ...recipe.inputs.map((input) => [`Input: ${input.role} ${input.name}`, code(input.hash)]),
            ["Made by", recipe.maker],
          ]),
        ]
      : []),
    ...(line.kind === "baseline" ? [h("p", { class: "hint" }, "A baseline is a function of the benchmark; it was scored with the models beside it.")] : []),
  );
  detailsBack = from;
  detailsBox.showModal();
}

detailsBox.addEventListener("close", () => detailsBack && detailsBack.isConnected && detailsBack.focus());
for (const box of document.querySelectorAll("dialog")) {
  box.addEventListener("click", (event) => event.target === box && box.close());
}

function verdictText(judged) {
  if (judged.difference === null) return `No verdict: ${judged.why || "no difference"}.`;
  const shown = (value) => (value > 0 ? "+" : "") + digits(value, "plain");
  const bounds = judged.low === null ? `no interval: ${judged.why || "not estimable"}` : `${shown(judged.low)} to ${shown(judged.high)}`;
  return `${judged.word || "no verdict"}: ${shown(judged.difference)} (${bounds}) against ${judged.baseline}; positive is better.`;
}
