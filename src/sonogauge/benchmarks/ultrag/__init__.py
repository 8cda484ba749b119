"""UltraG-Bench: answers that show their pixels. Facts from masks, questions from templates, official files, scoring.

The repository of the authors shows no licence; everything here is written from a specification, and no text of theirs
is in it. Texts made here differ from the official ones (`reference_origin: toolkit`), so scores on them do not compare
with published ones.

Making items:
- `build.build_ultrag(data, out, *, parameters, split, keep_negatives, category, coords, cell_of, writer, ...)`: cases
  or official files -> benchmark folder, with `records/<Category>.jsonl` and `audit/` beside its tables.
- `facts.image_facts(raw, size, category, source, prefix, cell_of) -> ImageFacts` of `MaskFact`; `facts.grid_cell(x, y,
  width, height)`, for a box centre or a mask centroid.
- `questions.segmentation_tasks | grounded_vqa | grounded_report(masks, category)`: template items as official dicts.
- `writer.write_questions(pairs, writer)`, `writer.filter_questions(written, masks, category)`; any model through
  `models.question_writer.ModelWriter(model)`.
- `official.read_official(folder, counts)`, `official.write_official(bench, out)`; `audit.audit_files`, `write_audit`.
- `vocabulary.load_category(name)`: `.targets`, `.canonical(raw, source)`, `.named(text)`, `.mentions(normalised)`;
  `category_of_source(name)`. Categories are `categories/*.yaml`; `others/` holds the simulated images.

Items: tasks SEG (form `mask`), VQA (`grounded`), RPT (`grounded_report`). Reference: `masks` (rows of `tables.MASK`,
their union is the evidence, none = no target), `texts` (the answer), of a report `sentences` with `mask_ids`. `meta`:
`width`, `height`, `spacing_x`, `spacing_y`, `category`, `organ`, `sample_id`, `reference_origin`, `answer_type`,
`requires_grounding` ("1", "0"), `answerability`, `finding_types` and `sections` (JSON lists, one entry a sentence).
`variables["facts"]` is the JSON object that the question shows.

Replies: JSON as `answers.mask` says; `models.drawing.mask_json(rows)` writes masks as a model may. Parsed strictly by
`FORMS.load(form).parse(text, spec)` -> `mask.Grounded` or `grounded_report.GroundedReport`; drawn by
`.settle(value, spec, (width, height), sent)` -> `drawn.Drawn` (`.answer`, `.mask` row, `.empty`, `.hint`, `.points`) or
`DrawnReport` (`.sentences` of `.text`, `.finding_type`, `.drawn`). Hints keep their shapes in `Grounded.shown.shapes`,
for a segmenter to refine. Coordinates: `AnswerSpec.unit` or `score(coords=...)`, "SPACE[:ORDER]": `answers.convention`.
In score_items a prediction holds `masks`, `texts`, `points`, `sentences`; its values hold `iou`, `dice`, `correct`,
`grounded` and `error_KIND` = 1 for the error gallery (kinds: `metrics.masks.ERRORS`, `right_wrong_pixels`,
`wrong_right_pixels`, and of a report sentence the reason why its mask did not read).

What texts say: `semantics` (answers, flags, cells, sizes); `text_scores`; `published.score_cell` is their scorer.
"""
