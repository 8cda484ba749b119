// Cases: a gallery with filters, and a dialog with image, overlays, question, reference and every reply.
const cases = { task: "", line: "", outcome: "", reason: "", kind: "", determinable: "", disagree: false, shown: [], at: 0, overlays: true, grid: true };
const EDGES = [0, 0.45, 0.55, 1];
const PLACES = ["upper left", "upper center", "upper right", "middle left", "center", "middle right", "lower left", "lower center", "lower right"];
const caseBox = document.getElementById("case");
let caseBack = null;

const answersOf = (one) => Object.entries(one.answers).filter(([line]) => !cases.line || line === cases.line);

function fits(one) {
  if (cases.task && one.task !== cases.task) return false;
  if (cases.determinable && one.determinable !== cases.determinable) return false;
  if (cases.disagree && !one.disagree) return false;
  if (cases.kind && !answersOf(one).some(([, answer]) => (answer.kinds || []).includes(cases.kind))) return false;
  if (!cases.outcome && !cases.reason) return !cases.line || answersOf(one).length > 0;
  return answersOf(one).some(([, answer]) => (!cases.outcome || answer.outcome === cases.outcome) && (!cases.reason || (answer.outcome === "failed" && answer.reason === cases.reason)));
}

// What an answer that is measured by degrees came to: its judged score, else the overlap of words.
const DEGREES = ["judge_score", "set_score", "text_match", "iou", "rouge_l"];
function degree(answer) {
  if (answer.iou !== undefined) return iouOf(answer);
  const name = DEGREES.find((one) => answer.values[one] !== undefined);
  return name ? `${metricName(name)} ${digits(answer.values[name], "plain")}` : OUTCOMES.graded;
}

const chip = (outcome, text) => h("span", { class: `chip ${outcome}` }, text || OUTCOMES[outcome] || outcome);

// A picture that is not there says so, with the case's id.
function picture(caseId, alt) {
  const found = data.gallery.pictures[caseId];
  const missing = (why) => h("span", { class: "nopicture" }, h("b", {}, caseId), h("span", {}, why));
  if (!found || !found.src) return missing((found && found.why) || "no image");
  const image = h("img", { src: found.src, alt, loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(missing("the thumbnail cannot be shown: its data are broken")));
  return image;
}

function card(one, place) {
  const counts = {};
  const degrees = answersOf(one).filter(([, answer]) => answer.outcome === "graded").map(([, answer]) => degree(answer));
  for (const [, answer] of answersOf(one)) if (answer.outcome !== "graded") counts[answer.outcome] = (counts[answer.outcome] || 0) + 1;
  const many = Object.keys(one.answers).length > 1;
  return h("li", {}, h("button", { type: "button", class: "card", "data-case": one.id, onclick: (event) => openCase(place, event.currentTarget) },
    h("span", { class: "thumb" }, one.images.length ? picture(one.images[0].case, "") : h("span", { class: "nopicture" }, "no image")),
    h("span", { class: "cardtext" }, h("b", {}, words(one.id)), h("span", { class: "one" }, words(one.reference || one.state)),
      h("span", { class: "chips" }, Object.entries(counts).map(([outcome, count]) => chip(outcome, many ? `${count} ${OUTCOMES[outcome]}` : OUTCOMES[outcome])), degrees.slice(0, 3).map((text) => chip("graded", text)), one.disagree ? chip("disagree", "models disagree") : null, [...new Set(answersOf(one).flatMap(([, answer]) => answer.kinds || []))].map((kind) => chip("kind", KIND_NAMES[kind]))))));
}

function drawGrid() {
  cases.shown = data.gallery.cases.filter(fits);
  document.getElementById("case-count").textContent = `${cases.shown.length} of ${data.gallery.cases.length} cases in this page; ${data.gallery.total} items were scored`;
  document.getElementById("grid").replaceChildren(...cases.shown.map(card));
  document.getElementById("no-case").hidden = cases.shown.length > 0;
}

function drawCases(panel) {
  const gallery = data.gallery;
  const parts = [h("h2", {}, "Cases")];
  for (const notice of gallery.notices) parts.push(h("p", { class: "banner partial" }, notice));
  if (!gallery.cases.length) {
    parts.push(h("p", { class: "empty" }, gallery.missing || (gallery.asked ? "These scores hold no single answers, so there are no cases to show." : "This page was made without a gallery (--gallery 0).")));
    panel.replaceChildren(h("section", {}, parts));
    return;
  }
  const held = (pick) => [...new Set(gallery.cases.flatMap(pick).filter(Boolean))].sort();
  const everyAnswer = (pick) => (one) => Object.values(one.answers).map(pick);
  const lines = scoredLines().filter((line) => gallery.cases.some((one) => one.answers[line]));
  const change = (name) => (value) => { cases[name] = value; drawGrid(); };
  const reasons = held(everyAnswer((answer) => answer.outcome === "failed" && answer.reason));
  const hidden = Object.values(gallery.pictures).filter((one) => one.restricted).length;
  parts.push(
    h("p", { class: "hint" }, "Chosen over tasks and ways to end, not at random: what stands here says nothing about how often something happens."),
    gallery.kinds.length ? h("p", { class: "hint" }, "Kinds of error are told with how many of all scored answers show them, and how many cases here.") : null,
    hidden ? h("p", { class: "hint" }, `${hidden} images are not shown, because their sources may not be redistributed or are private.`) : null,
    h("div", { class: "filters" },
      select("Task", [["", "all tasks"], ...held((one) => [one.task]).map((code) => [code, `${code} ${task(code).title}`])], cases.task, change("task")),
      lines.length > 1 ? select("Model", [["", "any model"], ...lines.map((line) => [line, lineLabel(line)])], cases.line, change("line")) : null,
      select("Outcome", [["", "all"], ...held(everyAnswer((answer) => answer.outcome)).map((one) => [one, OUTCOMES[one]])], cases.outcome, change("outcome")),
      reasons.length ? select("Reason", [["", "any reason"], ...reasons.map((one) => [one, one.replaceAll("_", " ")])], cases.reason, change("reason")) : null,
      gallery.kinds.length ? select("Kind of error", [["", "all"], ...kindOptions()], cases.kind, change("kind")) : null,
      select("One image can tell", [["", "all"], ...held((one) => [one.determinable]).map((one) => [one, one])], cases.determinable, change("determinable")),
      lines.length > 1 ? h("fieldset", { class: "checks" }, h("legend", {}, "Models"), h("label", {}, h("input", { type: "checkbox", id: "disagree", checked: cases.disagree, onchange: (event) => { cases.disagree = event.target.checked; drawGrid(); } }), "disagree")) : null,
      h("p", { class: "hint", id: "case-count", role: "status" })),
    h("ul", { class: "cards", id: "grid" }),
    h("p", { class: "empty", id: "no-case", hidden: true }, "No case fits these filters."));
  panel.replaceChildren(h("section", {}, parts.filter(Boolean)));
  drawGrid();
}

function sector(name) {
  const at = PLACES.indexOf(name);
  if (at < 0) return null;
  const [row, column] = [Math.floor(at / 3), at % 3];
  return { x: EDGES[column], y: EDGES[row], width: EDGES[column + 1] - EDGES[column], height: EDGES[row + 1] - EDGES[row] };
}

function shape(one, marked) {
  const name = s("title", {}, `${one.role}: ${one.label || one.kind}`);
  const kind = `shape ${one.role} ${one.kind}${marked ? " cited" : cited.mark ? " dimmed" : ""}`;
  if (one.kind === "mask") return s("path", { class: kind, d: one.d, "fill-rule": "evenodd" }, name);
  if (one.kind === "box") return s("rect", { class: kind, x: one.x, y: one.y, width: one.w, height: one.h }, name);
  if (one.kind === "point") return s("path", { class: kind, d: `M${one.x - 0.018} ${one.y}h.036M${one.x} ${one.y - 0.018}v.036` }, name);
  return null;
}

function overlay(one, line) {
  const kids = [];
  const picked = line === "" ? null : one.answers[line];
  if (cases.grid && one.form === "place") {
    for (const edge of [EDGES[1], EDGES[2]]) kids.push(s("line", { class: "band", x1: edge, x2: edge, y1: 0, y2: 1 }), s("line", { class: "band", x1: 0, x2: 1, y1: edge, y2: edge }));
    for (const name of one.places) kids.push(sector(name) && s("rect", { class: "sector reference", ...sector(name) }, s("title", {}, `reference: ${name}`)));
    for (const name of (picked && picked.places) || []) kids.push(sector(name) && s("rect", { class: "sector prediction", ...sector(name) }, s("title", {}, `prediction: ${name}`)));
  }
  if (cases.overlays || cited.mark) {
    const own = (data.gallery.pictures[one.images[0].case] || {}).shapes || [];
    // What the reference itself holds is drawn once, as the reference.
    const known = new Set(one.shapes.map((each) => JSON.stringify([each.kind, each.x, each.y, each.d])));
    kids.push(...own.filter((each) => !known.has(JSON.stringify([each.kind, each.x, each.y, each.d]))).map((each) => shape(each)), ...[...one.shapes, ...((picked && picked.shapes) || [])].map((each) => shape(each, isCited(each, line))), ...citedPaths());
  }
  return s("svg", { class: "overlay", viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" }, kids.filter(Boolean));
}

function figure(one) {
  if (!one.images.length) return h("p", { class: "empty" }, "This item has no image.");
  const pictures = data.gallery.pictures;
  const lines = Object.keys(one.answers);
  let line = cases.line && one.answers[cases.line] ? cases.line : lines[0] || "";
  const frame = h("div", { class: "frame" });
  const first = one.images[0];
  const shownFirst = picture(first.case, `Image of case ${first.case}`);
  const scored = h("p", { class: "hint iou" });
  const draw = () => {
    const shownLine = cited.mark && cited.mark.line ? cited.mark.line : line;
    frame.replaceChildren(shownFirst);
    if (shownFirst.tagName === "IMG") frame.append(overlay(one, shownLine));
    const told = shownLine && iouOf(one.answers[shownLine]);
    scored.replaceChildren(...(told ? [h("b", {}, told), " ", modelName(lineLabel(shownLine))] : []));
  };
  cited.draw = draw;
  shownFirst.addEventListener("error", () => frame.replaceChildren(picture(first.case, "").tagName === "IMG" ? h("span", { class: "nopicture" }, h("b", {}, first.case), h("span", {}, "the thumbnail cannot be shown: its data are broken")) : picture(first.case, "")));
  draw();
  const drawn = new Set();
  if (one.shapes.length || (one.form === "place" && one.places.length)) drawn.add("reference");
  if (Object.values(one.answers).some((answer) => answer.shapes || answer.places)) drawn.add("prediction");
  if (((pictures[first.case] || {}).shapes || []).length) drawn.add("annotation");
  const key = [["reference", "reference"], ["prediction", "prediction"], ["annotation", "case"]].filter(([name]) => drawn.has(name));
  const toggle = (name, text) => h("label", {}, h("input", { type: "checkbox", checked: cases[name], onchange: (event) => { cases[name] = event.target.checked; draw(); } }), text);
  const drawable = one.form === "place" || drawn.size;
  return h("figure", {},
    frame,
    one.images.slice(1).map((each) => h("div", { class: "frame more" }, picture(each.case, `Image of case ${each.case}`))),
    h("figcaption", {}, words(first.case), first.frame !== null ? ` · frame ${first.frame}` : "", one.images.length > 1 ? ` and ${one.images.length - 1} more` : "", (pictures[first.case] || {}).source ? ` · ${pictures[first.case].source}` : ""),
    drawable && pictures[first.case] && pictures[first.case].src
      ? h("fieldset", { class: "checks overlays" }, h("legend", {}, "Overlays"),
          one.form === "place" ? toggle("grid", "places") : null, drawn.has("annotation") || one.form !== "place" ? toggle("overlays", one.form === "place" || !drawn.has("prediction") ? "annotations" : "outlines") : null,
          lines.length > 1 && drawn.has("prediction") ? select("Prediction of", lines.map((each) => [each, lineLabel(each)]), line, (value) => { line = value; draw(); }) : null,
          h("p", { class: "hint key" }, key.map(([name, css]) => [h("i", { class: `swatch ${css}` }), name === "annotation" ? " annotation of the data set " : ` ${name} `])))
      : null,
    scored);
}

// The values that scoring counted, as a reader writes them.
function countsOf(one, answer) {
  const { reference_facts: facts, reply_facts: told, correct, correct_facts: right = correct, fact_f1: f1, iou, scaled_error: scaled, absolute_error: off, ...rest } = answer.values;
  const found = [];
  const plain = (value) => (Number.isInteger(value) ? String(value) : digits(value, "plain"));
  if (off !== undefined) found.push(`off by ${near(off)} ${one.unit}`.trim() + (scaled === undefined ? "" : `, ${digits(Math.abs(scaled), "percent")} % of the range`));
  else if (scaled !== undefined) found.push(`off by ${digits(Math.abs(scaled), "percent")} % of the range`);
  if (facts !== undefined) {
    found.push(`${right} of ${facts} facts of the reference right, ${told} facts told, fact F1 ${plain(f1)}`);
    // Of many kinds of fault only those that happened.
    const faults = Object.entries(rest).filter(([name, value]) => /_errors$|^hallucinated$|^missed$|^sections_missing$/.test(name) && value);
    found.push(...faults.map(([name, value]) => `${metricName(name)} ${value}`));
  }
  const others = Object.entries(rest).filter(([name]) => !/^correct|^error_/.test(name) && !(facts !== undefined && /_errors$|^hallucinated$|^missed$|^sections_missing$/.test(name)));
  return [...found, ...others.map(([name, value]) => `${metricName(name)} ${plain(value)}`)];
}

function answerBlock(one, line, answer) {
  const graded = countsOf(one, answer);
  return h("article", { class: "answer" },
    h("h3", {}, modelName(lineLabel(line)), " ", chip(answer.outcome, answer.outcome === "graded" ? degree(answer) : ""), kindChips(answer)),
    h("dl", { class: "pairs" },
      h("div", {}, h("dt", {}, "Read as"), h("dd", {}, answer.sentences ? sentenceList(answer.sentences, line, `Sentences of ${lineLabel(line)}`) : answer.prediction ? words(answer.prediction) : DASH)),
      answer.reason ? h("div", {}, h("dt", {}, "Reason"), h("dd", {}, `${answer.reason.replaceAll("_", " ")}${REASONS[answer.reason] ? `: ${REASONS[answer.reason]}` : ""}`)) : null,
      answer.status && answer.status !== "ok" ? h("div", {}, h("dt", {}, "Request"), h("dd", {}, answer.status)) : null,
      iouOf(answer) ? h("div", {}, h("dt", {}, "Pixels"), h("dd", { class: "strong" }, iouOf(answer))) : null,
      graded.length ? h("div", {}, h("dt", {}, "Counts"), h("dd", {}, graded.join("; "))) : null),
    answer.reply === undefined
      ? h("p", { class: "hint" }, "The reply itself is not in this page.")
      : h("pre", { class: "reply", dir: "auto", tabindex: 0, role: "region", "aria-label": `Reply of ${lineLabel(line)}` }, visible(answer.reply) || "(empty)"),
    answer.cut ? h("p", { class: "hint" }, `Shortened: ${answer.cut} more characters stand in the run folder.`) : null,
    factTable(answer.facts, lineLabel(line)),
    traceBlock(answer.trace, line));
}

function openCase(place, from) {
  if (from) caseBack = from;
  cases.at = place;
  cited.mark = cited.pinned = null;
  const one = cases.shown[place];
  const step = (by, text) => h("button", { type: "button", class: "quiet", disabled: !cases.shown[place + by], onclick: () => openCase(place + by) }, text);
  caseBox.replaceChildren(
    h("form", { method: "dialog", class: "bar" },
      h("h2", { id: "case-title" }, words(one.id)), h("span", { class: "hint" }, `${place + 1} of ${cases.shown.length}`), step(-1, "← Previous"), step(1, "Next →"), h("button", { class: "quiet", value: "close" }, "Close")),
    h("div", { class: "two" },
      figure(one),
      h("div", {},
        h("p", { class: "lead" }, `${one.task} ${task(one.task).title} · ${one.dataset}`),
        h("details", { open: Object.keys(one.answers).length < 3 }, h("summary", {}, "Question"), h("p", { class: "question", dir: "auto", tabindex: 0, role: "region", "aria-label": "Question" }, visible(one.question))),
        h("dl", { class: "pairs" },
          one.options.length ? h("div", {}, h("dt", {}, "Options"), h("dd", {}, one.options.map((option) => h("span", { class: "option" }, words(option))))) : null,
          one.range ? h("div", {}, h("dt", {}, "Range"), h("dd", {}, `${one.range[0]} to ${one.range[1]} ${one.unit}`)) : null,
          h("div", {}, h("dt", {}, "Reference"), h("dd", { class: one.sentences.length ? "" : "strong" }, one.sentences.length ? sentenceList(one.sentences, "", "Sentences of the reference") : one.reference ? words(one.reference) : `none (${one.state})`)),
          h("div", {}, h("dt", {}, "One image can tell"), h("dd", {}, one.determinable)),
          one.anatomy ? h("div", {}, h("dt", {}, "Anatomy"), h("dd", {}, one.anatomy)) : null,
          one.prompt ? h("div", {}, h("dt", {}, "Prompt"), h("dd", {}, code(one.prompt))) : null),
        Object.entries(one.answers).map(([line, answer]) => answerBlock(one, line, answer)))));
  if (!caseBox.open) caseBox.showModal();
  caseBox.scrollTop = 0;
}

caseBox.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select, input, pre")) return;
  if (cases.shown[cases.at + by]) {
    event.preventDefault();
    openCase(cases.at + by);
    caseBox.querySelector("button[value='close']").focus();
  }
});
caseBox.addEventListener("close", () => {
  // Back to the card of the case seen last, not of the one opened first.
  const now = document.querySelector(`[data-case="${CSS.escape((cases.shown[cases.at] || {}).id || "")}"]`);
  (now || caseBack)?.focus();
});
