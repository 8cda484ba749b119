// The data of the page: facts by place, names, numbers as words.
const data = JSON.parse(document.getElementById("data").textContent);
const names = data.strings;
const state = { protocol: data.shown };
const PROTOCOLS = data.protocols.map((one) => one.name);
const DASH = "\u2013";

const index = new Map();
{
  const f = data.facts;
  const { line, protocol, task, dataset, slice, metric } = f;
  for (let row = 0; row < line.length; row++) {
    const key = `${protocol[row]}|${line[row]}|${names[task[row]]}|${names[dataset[row]]}|${names[slice[row]]}|${names[metric[row]]}`;
    if (!index.has(key)) index.set(key, row);
  }
}

function fact(line, task, metric, dataset = "", slice = "") {
  const own = data.lines[line].kind === "published" ? -1 : PROTOCOLS.indexOf(state.protocol);
  const row = index.get(`${own}|${line}|${task}|${dataset}|${slice}|${metric}`);
  if (row === undefined) return null;
  const get = (name) => data.facts[name][row];
  return {
    line, task, metric, dataset, slice,
    value: get("value"), low: get("low"), high: get("high"), chance: get("chance"),
    n: get("n"), valid: get("valid"), excluded: get("excluded"), groups: get("groups"),
    reliable: get("reliable"), down: get("down") === 1,
    signature: names[get("signature")], why: names[get("why")], doubt: names[get("doubt")], source: names[get("source")],
  };
}

function unit(metric, task) {
  return task ? data.metrics[metric] || "plain" : "total";
}

function digits(value, kind) {
  let shown;
  if (Math.abs(value) >= 1e5) shown = value.toExponential(1);
  else if (kind === "percent") shown = (100 * value).toFixed(1);
  else if (kind === "percent2") shown = (100 * value).toFixed(2);
  else if (kind === "total") shown = value.toFixed(4);
  else if (kind === "natural") shown = value.toFixed(Math.max(0, Math.min(3, 3 - String(Math.trunc(Math.abs(value))).length)));
  else shown = value.toFixed(3);
  return /^-0\.?0*$/.test(shown) ? shown.slice(1) : shown.replace("-", "\u2212");
}

const sign = (kind) => (kind.startsWith("percent") ? " %" : "");

function number(value, metric, task, withSign = true) {
  if (value === null || value === undefined) return DASH;
  const kind = unit(metric, task);
  return digits(value, kind) + (withSign ? sign(kind) : "");
}

function interval(one) {
  if (one.low === null || one.high === null) return "";
  const kind = unit(one.metric, one.task);
  return `${digits(one.low, kind)} to ${digits(one.high, kind)}${sign(kind)}`;
}

const METRIC_NAMES = {
  macro_f1: "macro-F1", rmse: "RMSE", rmse_scaled: "scaled RMSE", mae: "MAE", mae_scaled: "scaled MAE", bleu4: "BLEU-4", rouge_l: "ROUGE-L", bertscore: "BERTScore",
  iou: "IoU", giou: "gIoU", nsd: "NSD", dice: "Dice", hd95: "HD95", g_acc: "G-Acc", sem_acc: "SemAcc", fact_f1: "fact F1", auroc: "AUROC",
};
const composite = (name) => data.composites.find((one) => one.name === name);
// A metric as readers write it; its name in tables and files stands in the signature.
const metricName = (name) => METRIC_NAMES[name] || (name.endsWith("_cases") ? `${metricName(name.slice(0, -6))}, by cases` : ((composite(name) || {}).title || name.replaceAll("_", " ")));
const task = (code) => data.tasks.find((one) => one.code === code) || { code, title: code, headline: "" };
const lineLabel = (line) => data.lines[line].label;

const KINDS = {
  model: "Scored here",
  in_domain: "Trained in-domain",
  baseline: "Baselines on the same items",
  published: "Published, not computed here",
};
const GROUPS = { open: "open weights", closed: "closed", medical: "medical", baseline: "baseline" };

// Higher is better, from 0 to 1: what a heat map shades and a total adds up.
function quality(one) {
  if (!one || one.value === null) return null;
  if (one.down) return unit(one.metric, one.task) === "natural" ? null : Math.max(0, Math.min(1, 1 - one.value));
  return Math.max(0, Math.min(1, one.value));
}

// Models and in-domain models: those with a scores folder, in the order in which they were given.
const scoredLines = () => data.lines.map((one, line) => line).filter((line) => data.lines[line].scores !== null).sort((a, b) => data.lines[a].scores - data.lines[b].scores);

const OUTCOMES = { right: "right", wrong: "wrong", failed: "no valid answer", graded: "graded", excluded: "excluded" };
const VERDICTS = {
  above: ["▲", "above the best baseline that does not look at the image"],
  "not distinguishable": ["◆", "not distinguishable from the best baseline that does not look at the image"],
  below: ["▼", "below the best baseline that does not look at the image"],
};

function verdict(line, code) {
  return state.protocol === "strict" ? ((data.verdicts[line] || {})[code] || null) : null;
}
