// Answers that draw: IoU, kinds of error, sentences linked to their masks, and the steps of an agent.
const KIND_NAMES = Object.fromEntries((data.gallery.kinds || []).map((one) => [one.kind, one.title]));
// What is marked on the image: mark = {line, role, ids, paths}; pinned = the button that keeps it.
const cited = { mark: null, pinned: null, draw: () => {} };

function setMark(mark) {
  cited.mark = mark;
  cited.draw();
}

function unpin() {
  if (cited.pinned) cited.pinned.button.setAttribute("aria-pressed", "false");
  cited.pinned = null;
}

// Hover and focus mark for as long as they last, a click or Enter until the next one.
function citing(mark, text, props) {
  const button = h("button", { type: "button", class: "cite", "aria-pressed": "false", ...props }, text);
  const back = () => setMark(cited.pinned ? cited.pinned.mark : null);
  for (const name of ["pointerenter", "focus"]) button.addEventListener(name, () => setMark(mark));
  for (const name of ["pointerleave", "blur"]) button.addEventListener(name, back);
  button.addEventListener("click", () => {
    const own = cited.pinned && cited.pinned.button === button;
    unpin();
    if (!own) {
      cited.pinned = { button, mark };
      button.setAttribute("aria-pressed", "true");
    }
    setMark(own ? null : mark);
  });
  return button;
}

const isCited = (each, line) => {
  const mark = cited.mark;
  return mark && each.role === mark.role && mark.ids.includes(each.id) && (each.role === "reference" || mark.line === line);
};

const citedPaths = () => ((cited.mark && cited.mark.paths) || []).filter(Boolean).map((d) => s("path", { class: "shape candidate cited", d, "fill-rule": "evenodd" }));

// The sentences of a reference (line "") or of a model's report.
function sentenceList(sentences, line, label) {
  const role = line === "" ? "reference" : "prediction";
  return h("ol", { class: "sentences", "aria-label": label }, sentences.map((one) => {
    const many = one.masks.length;
    const told = h("span", { class: `maskcount ${many ? role : ""}` }, many ? `${many} ${many === 1 ? "mask" : "masks"}` : "no mask");
    return h("li", {}, many ? citing({ line, role, ids: one.masks, paths: [] }, [words(one.text), " ", told]) : h("p", { class: "uncited" }, words(one.text), " ", told));
  }));
}

// The clinical facts of a text, those of the reference beside those of the reply.
function factTable(facts, label) {
  if (!facts) return null;
  const right = facts.filter((one) => one.correct).length;
  const rows = facts.map((one) => h("tr", {},
    h("td", {}, words(one.fact)),
    h("td", {}, one.in_reference === null ? DASH : words(one.in_reference)),
    h("td", {}, one.in_reply === null ? DASH : words(one.in_reply)),
    h("td", { class: one.correct ? "" : "strong" }, words(one.verdict))));
  return h("details", { class: "trace facts" },
    h("summary", {}, `Facts: ${right} of ${facts.length} right`),
    scroller(`Facts of ${label}`, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["Fact", "Reference", "Reply", "Verdict"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows))));
}

// IoU as scored, or of all pixels of a report; null where nothing was to be drawn.
function iouOf(answer) {
  if (answer.values.iou !== undefined) return `IoU ${number(answer.values.iou, "", "x")}`;
  return answer.iou === undefined ? "" : `IoU of all masks ${number(answer.iou, "", "x")}`;
}

const kindChips = (answer) => (answer.kinds || []).map((kind) => h("span", { class: "chip kind" }, KIND_NAMES[kind]));

function kindOptions() {
  const here = (kind) => data.gallery.cases.filter((one) => Object.values(one.answers).some((answer) => (answer.kinds || []).includes(kind))).length;
  return data.gallery.kinds.map((one) => {
    const all = Object.values(one.n).reduce((sum, n) => sum + n, 0);
    return [one.kind, `${one.title}: ${all} (${here(one.kind)} here)`];
  });
}

const pairOf = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

function targetSteps(one, line, place) {
  const rows = one.candidates.map((each, at) => h("tr", {},
    h("td", {}, each.d ? citing({ line, role: "candidate", ids: [], paths: [each.d] }, `candidate ${at + 1}`) : `candidate ${at + 1}`),
    h("td", { class: "r" }, each.score === null ? DASH : String(each.score)),
    h("td", { class: "r" }, each.area === null ? DASH : String(each.area)),
    h("td", {}, each.kept ? "kept" : "dropped")));
  return h("div", { class: "target" },
    h("h5", {}, `Target ${place + 1}: `, words(one.category)),
    h("dl", { class: "pairs" }, pairOf("Phrase", one.phrase ? words(one.phrase) : DASH), pairOf("Prompt", one.prompt ? words(one.prompt) : DASH), one.cause ? pairOf("No mask", words(one.cause)) : null),
    rows.length
      ? scroller(`Candidates of target ${place + 1}`, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Candidate"), h("th", { scope: "col", class: "r" }, "Score"), h("th", { scope: "col", class: "r" }, "Pixels"), h("th", { scope: "col" }, "Kept"))), h("tbody", {}, rows)))
      : h("p", { class: "hint" }, "No candidates."),
    one.facts.length ? h("dl", { class: "pairs" }, one.facts.map(([name, value]) => pairOf(visible(name.replaceAll("_", " ")), words(value || DASH)))) : null);
}

function traceBlock(trace, line) {
  if (!trace) return null;
  if (trace.cut) return h("p", { class: "hint" }, "The agent's steps are not in this page, which would grow too large; they stand in the run folder.");
  const plan = trace.plan;
  const head = (text) => h("h4", {}, text);
  return h("details", { class: "trace" },
    h("summary", {}, `Steps of the agent: ${trace.targets.length} ${trace.targets.length === 1 ? "target" : "targets"}, ${trace.faults.length} ${trace.faults.length === 1 ? "fault" : "faults"}, ${trace.retries} ${trace.retries === 1 ? "retry" : "retries"}`),
    h("dl", { class: "pairs" }, pairOf("Planner", words(trace.planner)), pairOf("Segmenter", words(trace.segmenter))),
    head("Plan"),
    plan
      ? h("dl", { class: "pairs" }, pairOf("By", words(plan.by)), pairOf("Task", words(plan.task || "not told")), plan.draft ? pairOf("Draft", words(plan.draft)) : null, plan.outline.length ? pairOf("Outline", words(plan.outline.join("; "))) : null,
          plan.targets.map((one) => pairOf(words(one.category), words(one.phrase), one.reason ? [" (", words(one.reason), ")"] : "")))
      : h("p", { class: "hint" }, "There is no plan."),
    head("Phrases, candidates, facts"),
    trace.targets.length ? trace.targets.map((one, place) => targetSteps(one, line, place)) : h("p", { class: "hint" }, "Nothing was looked for."),
    trace.replies.length ? [head("Replies of the planner"), h("dl", { class: "pairs" }, trace.replies.map((one) => pairOf(words(`${one.step} ${one.status}`), words(one.text || DASH))))] : null,
    head("Faults and retries"),
    trace.faults.length ? h("dl", { class: "pairs" }, trace.faults.map((one) => pairOf(words(one.step.replaceAll("_", " ")), words(one.what)))) : h("p", { class: "hint" }, "No faults."),
    h("p", { class: "hint" }, `Retries: ${trace.retries}. `, trace.fallback ? "The template took over from the planner." : "No fallback."));
}
