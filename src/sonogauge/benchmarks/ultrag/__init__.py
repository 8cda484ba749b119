"""UltraG-Bench: answers that show their pixels. Facts from masks, questions from templates, official files, scoring.

The repository of the authors shows no licence; everything here is written from a specification, and no text of theirs
is in it. Texts made here differ from the official ones (`reference_origin: toolkit`), so scores on them do not compare
with published ones.

- `build.build_ultrag(data, out, ...)`: cases folder(s) or official layout -> benchmark folder.
- `facts`: mask facts of a case; `questions`: template items; `writer`: questions written by a model, filtered.
- `official`: reader and writer of the JSONL + COCO layout; `audit`: the rule audit.
- `vocabulary`: the 13 categories (`categories/*.yaml`); `semantics`: what a text says; `published`: their scorer.
"""
