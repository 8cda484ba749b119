"""The parts of the toolkit that docs/status.md lists: a test names its part with `@pytest.mark.part("name")`.

A part stands here before its first test exists, so that it shows up as untested.
"""

from __future__ import annotations

from typing import Final

# name -> what it promises
PARTS: Final[dict[str, str]] = {
    "tables": "schemas, folders, manifests, hashes; atomic writing and clear refusals",
    "known sources": "public image sets in their own layouts, imported by a declarative file each",
    "readers": "DICOM, video, NIfTI and MetaImage, arrays, COCO, CVAT, VIA, colour masks, records",
    "import": "any folder to cases: maps, explain, counts, hostile files refused",
    "download": "open sources over HTTP with resume, licence prompt and recorded hashes",
    "case geometry": "parts, places, ellipses, area and fan of masks",
    "u2bench import": "a U2-BENCH folder read as its specification says",
    "benchmark registry": "benchmarks as data: scenarios, options, ranges, sets",
    "prompts": "rendered prompts and the lint against prompt faults",
    "answers": "asking and strict parsing, one module per answer form",
    "answers that draw": "masks in replies: every written form, declared coordinates, faults by cause",
    "metrics of masks": "overlap, outlines, parts, errors by kind, beside other libraries",
    "ultrag": "UltraG-Bench: facts, questions, audit, official files, both protocols",
    "baselines": "random, majority, prior, constant, not-visible, oracle",
    "run": "a benchmark answered by a model",
    "metrics": "statistics of a reply and functions of their sums",
    "clinical content": "facts of reports and captions: negation, side, place, size, grade, inventions",
    "intervals": "clustered intervals of metrics and composites",
    "score strict": "replies to scores, the honest protocol",
    "judge": "free text judged by rules and models, verdicts stored, checked by physicians, the score corrected",
    "review": "exchange with annotation tools, votes, adjudication, the cleaned benchmark with its trail",
    "score published": "replies to scores as the benchmark's own scorer counts",
    "comparison": "two or more runs on the same items: differences, paired tests, corrections, ranks, ablations",
    "groups of models": "facts of models from models.yaml; adapted models and their bases, the model as unit",
    "score table": "any prediction file of any tool scored, with VLMEvalKit result files recognised",
    "rater agreement": "percent, Cohen, Gwet AC1, Krippendorff alpha within one role and question",
    "multi-choice and rankings": "sets of options and ordered differentials: reading, scoring, expectations",
    "medlesionvqa": "questions with several right answers, fused differentials, building, load-time checks",
    "physicians": "human answers as models: raters and items resampled, gaps on the same questions",
    "text-only ablation": "share kept without the image, questions solved without it",
    "error causes": "one taxonomy of wrong answers, partly filled in, with the raters' agreement",
    "slices": "values on parts of the items and the gaps between them",
    "report": "score tables as md, csv, latex, json",
    "page": "results as one file that opens from disk, with cases; figures",
    "fetal-gauge build": "planes, conformity, orientation, boxed structures and measures of fetal cases as questions",
    "analyses": "micro and macro, size bins, phantom and clinical, sources, paired runs, confusion, data sheet",
    "robustness": "rotations, shuffles, no image, prompts, repeats, perturbations; signs of contamination",
    "synthetic benchmark": "simulated images with exact references",
    "segmenters": "masks from a phrase, a box or points: oracle, shapes, classical, SAM, U-Net, over HTTP",
    "agents": "a planner and a segmenter as one model, every step in its trace",
    "demo": "build, run, score and report without data or key",
    "inspect": "benchmarks as tasks of Inspect, its logs as replies, runs as its logs",
    "docs": "documentation that builds without warnings and shows commands that exist",
    "command line": "commands, exit codes, one-line errors, start-up time",
    "recipes": "image sets to a benchmark: vocabulary, quality, splits, sampling, questions, drawn boxes, plan",
    "leakage audit": "groups, same pixels and near copies in two parts, with the recall measured",
    "engines": "the same stages on threads and on a Ray cluster; killed workers and killed commands",
    "export": "a benchmark for other tools and back; what may not be passed on stays",
}
