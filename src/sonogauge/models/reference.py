"""An image-reading reference model: plain image features and scikit-learn models fitted on the training items.

It shows what a small in-domain reader reaches on a benchmark with a training part, and is reported in a block of its
own: it is trained on the very kind of image it is asked about. Of the items it answers it sees the question side only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput
from sonogauge.answers.place import place_of
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.candidates import Candidates, Picture, decode, field_features, line_ends, spots

Rows = NDArray[np.float64]

NAME: Final = "reference"
_TREES: Final = 120
_NOT_VISIBLE: Final = "not visible"
_NEAR: Final = 9.0  # pixels between a line's end and the reference point
_MINIMUM_IOU: Final = 0.35


@dataclass(frozen=True)
class Sight:
    """What the model makes of one image, before any question."""

    picture: Picture
    spots: Candidates
    ends: Candidates
    field_shape: Rows


@dataclass(frozen=True)
class Found:
    """What a finder says of an image: a label, and of the object its centre and diameter in the 256-pixel frame."""

    label: str
    centre: Rows | None
    diameter: float


def look(data: bytes) -> Sight:
    """Compute the candidates and features of an encoded image; raise BadInput if it is none."""
    picture = decode(data)
    return Sight(picture, spots(picture), line_ends(picture), field_features(picture))


def _look_at_all(images: Sequence[bytes]) -> list[Sight]:
    # Decoding and filters run outside the interpreter's lock, so two threads halve the time.
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(look, images))


class Finder:
    """Finds at most one object of a kind in an image and names it.

    A forest rates the candidates by label; a second one, on the best candidate, decides for the image; a third one
    corrects the candidate's box and diameter.
    """

    def __init__(self, absent: str, seed: int) -> None:
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        common = {"n_estimators": _TREES, "random_state": seed, "min_samples_leaf": 2, "n_jobs": 1}
        self._absent = absent
        self._usual = 0.0
        # Weights per subsample leave the drawing of samples alone, so that each candidate has trees that never saw it.
        self._rate = ExtraTreesClassifier(**common, bootstrap=True, oob_score=True, class_weight="balanced_subsample")
        self._decide = ExtraTreesClassifier(**common, class_weight="balanced")
        self._correct = ExtraTreesRegressor(**common)

    def fit(self, images: Sequence[Candidates], labels: Sequence[str], targets: Sequence[Rows | None]) -> None:
        """Fit on images with their label and, where there is an object, its x, y, w, h and diameter."""
        marks = [_match(one, target) for one, target in zip(images, targets, strict=True)]
        names = [
            np.where(mark, label, "")
            for mark, label in zip(marks, labels, strict=True)  # the empty name = background
        ]
        features = np.vstack([one.features for one in images])
        with np.errstate(all="ignore"):
            self._rate.fit(features, np.concatenate(names))
        rated = np.nan_to_num(self._rate.oob_decision_function_)
        stops = np.cumsum([len(one.features) for one in images])[:-1]
        parts = np.split(rated, stops)
        self._decide.fit([self._summary(one, part)[0] for one, part in zip(images, parts, strict=True)], labels)
        hits = [
            (one.features[mark], _correction(one.boxes[mark], target))
            for one, mark, target in zip(images, marks, targets, strict=True)
            if target is not None and mark.any()
        ]
        sizes = [target[4] for target in targets if target is not None and target[4] > 0]
        self._usual = float(np.median(sizes)) if sizes else 0.0
        self._correct.fit(np.vstack([part for part, _ in hits]), np.vstack([part for _, part in hits]))

    def _summary(self, one: Candidates, rated: Rows) -> tuple[Rows, int]:
        """Return the features on which the image is decided, and which candidate is the best (-1: there is none)."""
        width = self._rate.n_features_in_
        kinds = len(self._rate.classes_)
        if not len(one.features):
            return np.zeros(width + kinds), -1
        objects = [index for index, name in enumerate(self._rate.classes_) if name]
        best = int(rated[:, objects].sum(axis=1).argmax())
        return np.concatenate([one.features[best], rated[best]]), best

    def find(self, images: Sequence[Candidates]) -> list[Found]:
        """Return what is found in each image."""
        full = [one.features for one in images if len(one.features)]
        if not full:
            return [Found(self._absent, None, self._usual) for _ in images]
        rated = iter(_split(self._rate.predict_proba(np.vstack(full)), full))
        summaries = [self._summary(one, next(rated) if len(one.features) else np.zeros((0, 0))) for one in images]
        labels = self._decide.predict(np.stack([summary for summary, _ in summaries]))
        seen = [(one, best) for one, (_, best) in zip(images, summaries, strict=True) if best >= 0]
        moves = iter(self._correct.predict(np.stack([one.features[best] for one, best in seen])))
        found = []
        for one, (_, best), label in zip(images, summaries, labels, strict=True):
            if best < 0:
                found.append(Found(self._absent, None, self._usual))
                continue
            move = next(moves)
            size = float(one.boxes[best, 2:].max())
            # A question about a size says that there is something to measure, even where nothing was seen.
            diameter = size * float(np.exp(move[2]))
            centre = None if label == self._absent else one.centres[best] + move[:2] * size
            found.append(Found(str(label), centre, diameter))
        return found


def _split(rows: Rows, like: Sequence[Rows]) -> list[Rows]:
    return np.split(rows, np.cumsum([len(one) for one in like])[:-1])


def _match(one: Candidates, target: Rows | None) -> NDArray[np.bool_]:
    """Return which candidates are the target: boxes by their overlap, points by their distance."""
    if target is None or not len(one.boxes):
        return np.zeros(len(one.boxes), dtype=bool)
    x, y, w, h = target[:4]
    if w <= 1 and h <= 1:
        return np.asarray(np.hypot(*(one.centres - target[:2]).T) < _NEAR)
    low = np.maximum(one.boxes[:, :2], [x, y])
    high = np.minimum(one.boxes[:, :2] + one.boxes[:, 2:], [x + w, y + h])
    shared = np.prod(np.maximum(high - low, 0), axis=1)
    return np.asarray(shared / (np.prod(one.boxes[:, 2:], axis=1) + w * h - shared) > _MINIMUM_IOU)


def _correction(boxes: Rows, target: Rows) -> Rows:
    """Return the move of the centre in units of the size, and the logarithm of diameter to size."""
    size = boxes[:, 2:].max(axis=1)
    centre = target[:2] + target[2:4] / 2
    moves = (centre - boxes[:, :2] - boxes[:, 2:] / 2) / size[:, None]
    diameter = target[4] if target[4] > 0 else max(target[2:4])
    return np.column_stack([moves, np.log(diameter / size)])


@dataclass(frozen=True)
class Subject:
    """What a finder looks for: where its label, its place and its measurement are asked."""

    kind: str
    label_of: tuple[str, str | None]  # task and data set, None = any
    place_task: str
    measured: str  # data set of CVE, empty = none
    absent: str


_SUBJECTS: Final = (
    Subject("lesion", ("DD", None), "LL", "lesion", "no lesion"),
    Subject("tube", ("VRA", "section"), "OD", "tube", "no tube"),
    Subject("bone", ("KD", None), "KD", "", _NOT_VISIBLE),
)
_PROBE: Final = ("VRA", "probe")
# How much a fact counts when a training text is looked up: probe, then label and place of each subject.
_FACT_WEIGHTS: Final = (2.0, 4.0, 2.0, 3.0, 1.0, 1.0, 1.0)


class ReferenceModel:
    """The fitted model; make it with `fit_reference`."""

    def __init__(self, finders: Mapping[str, Finder], probe: Any, texts: Mapping[str, list[tuple[Any, str]]]) -> None:
        self._finders = finders
        self._probe = probe
        self._texts = texts

    def replies(self, items: Sequence[Item], images: Sequence[bytes]) -> list[str]:
        """Return one reply for each item and its image (encoded bytes); the items' references are not read."""
        distinct = list(dict.fromkeys(images))
        sights = {data: index for index, data in enumerate(distinct)}
        seen = _look_at_all(distinct)
        if not seen:
            return []
        probes = [str(name) for name in self._probe.predict(np.stack([one.field_shape for one in seen]))]
        found = {
            subject.kind: self._finders[subject.kind].find([_candidates(subject, one) for one in seen])
            for subject in _SUBJECTS
        }
        replies = []
        for item, data in zip(items, images, strict=True):
            index = sights[data]
            objects = {kind: per_image[index] for kind, per_image in found.items()}
            replies.append(self._reply(item, seen[index].picture, probes[index], objects))
        return replies

    def _reply(self, item: Item, picture: Picture, probe: str, objects: Mapping[str, Found]) -> str:
        if (item.task, item.dataset) == _PROBE:
            return probe
        if item.task in self._texts:
            facts = _facts(picture, probe, objects)
            known = self._texts[item.task]
            scores = [
                sum(weight for weight, a, b in zip(_FACT_WEIGHTS, facts, one, strict=True) if a == b)
                for one, _ in known
            ]
            return known[int(np.argmax(scores))][1]
        for subject in _SUBJECTS:
            if item.task == "CVE" and item.dataset == subject.measured:
                return f"{objects[subject.kind].diameter * picture.scale * _spacing(item):.1f}"
            if item.task == subject.place_task:
                return _place(picture, objects[subject.kind])
            if item.task == subject.label_of[0] and subject.label_of[1] in (None, item.dataset):
                return objects[subject.kind].label
        raise BadInput(f"the reference model knows no scenario {item.task}/{item.dataset}")


def _spacing(item: Item) -> float:
    try:
        spacing = float(item.variables["pixel_size_mm"])
    except (KeyError, ValueError) as error:
        raise BadInput(f"item {item.item_id} gives no pixel size", field="variables", fix="build it again") from error
    return spacing


def _candidates(subject: Subject, sight: Sight) -> Candidates:
    return sight.ends if subject.kind == "bone" else sight.spots


def _place(picture: Picture, found: Found) -> str:
    if found.centre is None:
        return _NOT_VISIBLE
    x, y = found.centre * picture.scale / np.asarray(picture.native)
    return place_of(float(x), float(y))


def _facts(picture: Picture, probe: str, objects: Mapping[str, Found]) -> tuple[str, ...]:
    parts = [probe]
    for subject in _SUBJECTS:
        found = objects[subject.kind]
        parts += [found.label, _place(picture, found)]
    return tuple(parts)


def fit_reference(bench: Folder, seed: int = 0) -> ReferenceModel:
    """Fit the reference model on the training items of a built synthetic benchmark.

    Raises:
        BadInput: the benchmark has no training items of a kind that the model needs.
    """
    from sklearn.ensemble import ExtraTreesClassifier

    asked: dict[str, dict[tuple[str, str], Item]] = {}
    for row in bench.rows("items"):
        item = Item.from_row(row)
        if item.split == "train" and item.reference_state == "ok" and item.images:
            asked.setdefault(item.images[0].case_id, {})[item.task, item.dataset] = item
    media = _media(bench, set(asked))
    cases = sorted(asked)
    sights = dict(zip(cases, _look_at_all([media[case_id] for case_id in cases]), strict=True))

    finders: dict[str, Finder] = {}
    truths: dict[str, dict[str, Found]] = {case_id: {} for case_id in sights}
    for number, subject in enumerate(_SUBJECTS):
        rows = []
        for case_id, sight in sights.items():
            truth = _truth(subject, asked[case_id], sight.picture)
            if truth is not None:
                label, target = truth
                centre = None if target is None else target[:2] + target[2:4] / 2
                truths[case_id][subject.kind] = Found(label, centre, 0.0)
                rows.append((_candidates(subject, sight), label, target))
        labels = [label for _, label, _ in rows]
        hit = any(_match(one, target).any() for one, _, target in rows)
        if len(set(labels)) < 2 or not hit:
            raise BadInput(f"too few training items about the {subject.kind}", file=bench.path, field="split")
        finder = Finder(subject.absent, seed + number)
        finder.fit([one for one, _, _ in rows], labels, [target for _, _, target in rows])
        finders[subject.kind] = finder

    probes = {case_id: items[_PROBE].reference["choices"][0] for case_id, items in asked.items() if _PROBE in items}
    if not probes:
        raise BadInput("no training items about the probe", file=bench.path, field="split")
    probe = ExtraTreesClassifier(n_estimators=_TREES, random_state=seed)
    probe.fit(
        np.stack([sights[case_id].field_shape for case_id in sorted(probes)]), [probes[c] for c in sorted(probes)]
    )

    texts: dict[str, list[tuple[Any, str]]] = {}
    for case_id, sight in sights.items():
        if case_id in probes and len(truths[case_id]) == len(_SUBJECTS):
            facts = _facts(sight.picture, str(probes[case_id]), truths[case_id])
            for item in asked[case_id].values():
                if item.answer.form == "text":
                    texts.setdefault(item.task, []).append((facts, str(item.reference["texts"][0])))
    return ReferenceModel(finders, probe, texts)


def _truth(subject: Subject, items: Mapping[tuple[str, str], Item], picture: Picture) -> tuple[str, Rows | None] | None:
    """Return label and target (x, y, w, h, diameter in the 256-pixel frame) of a training image, None if not asked."""
    task, dataset = subject.label_of
    label_item = next((one for key, one in items.items() if key[0] == task and dataset in (None, key[1])), None)
    place_item = next((one for key, one in items.items() if key[0] == subject.place_task), None)
    if label_item is None or place_item is None:
        return None
    spots_of = place_item.reference.get("boxes") or place_item.reference.get("points") or ()
    choices = label_item.reference.get("choices")
    label = str(choices[0]) if choices else ("present" if spots_of else subject.absent)
    if not spots_of:
        return label, None
    spot = spots_of[0]
    box = [spot["x"], spot["y"], spot.get("w", 1.0), spot.get("h", 1.0)]
    measured = items.get(("CVE", subject.measured))
    diameter = 0.0
    if measured is not None:
        diameter = float(measured.reference["number"]) / _spacing(measured)
    return label, np.asarray([*box, diameter]) / picture.scale


def _media(bench: Folder, wanted: set[str]) -> dict[str, bytes]:
    found = {}
    for row in bench.rows("cases", ["case_id", "image"]):
        if row["case_id"] in wanted:
            found[row["case_id"]] = row["image"]["bytes"]
    if missing := sorted(wanted - set(found)):
        raise BadInput(f"no case '{missing[0]}'", file=bench.file("cases"), field="case_id", fix="build it again")
    return found


def reference_replies(bench: Folder, items: Sequence[Item], seed: int = 0) -> Iterator[tuple[Item, str]]:
    """Fit on the training part of a benchmark and yield each item with the model's reply.

    The model gets the items without their references. Raises BadInput as `fit_reference` does.
    """
    model = fit_reference(bench, seed)
    media = _media(bench, {item.images[0].case_id for item in items})
    blind = [replace(item, reference={}, reference_state="absent", meta={}) for item in items]
    replies = model.replies(blind, [media[item.images[0].case_id] for item in items])
    yield from zip(items, replies, strict=True)
