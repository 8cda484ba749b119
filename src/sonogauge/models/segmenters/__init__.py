"""Segmenters: masks from a phrase, a box or points; found by name, other packages add theirs by entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge._registry import Registry
from sonogauge.models.segmenters.base import Instance, Segmenter, SegmenterFault, UnsupportedPrompt

# A maker takes what stands behind the colon of the name (a folder, an address, empty) and keyword options.
SEGMENTERS: Final[Registry[Callable[..., Segmenter]]] = Registry(
    "segmenter",
    {
        "oracle": "sonogauge.models.segmenters.oracle:Oracle",
        "box-fill": "sonogauge.models.segmenters.shapes:BoxFill",
        "ellipse": "sonogauge.models.segmenters.shapes:InscribedEllipse",
        "otsu": "sonogauge.models.segmenters.classical:Otsu",
        "grabcut": "sonogauge.models.segmenters.classical:GrabCut",
        "sam3": "sonogauge.models.segmenters.sam:Sam3",
        "sam3-tracker": "sonogauge.models.segmenters.sam:Sam3Tracker",
        "sam2": "sonogauge.models.segmenters.sam:Sam2",
        "sam": "sonogauge.models.segmenters.sam:Sam",
        "unet": "sonogauge.models.segmenters.unet:UNetSegmenter",
        "http": "sonogauge.models.segmenters.http:HttpSegmenter",
    },
    group="sonogauge.segmenters",
)


def load_segmenter(text: str, **options: Any) -> Segmenter:
    """Return the segmenter written NAME, NAME:WHERE or NAME:WHERE?KEY=VALUE,KEY=VALUE.

    WHERE is a folder, a name of the hub or an address, as the back-end needs it. Options given as arguments win.

    Raises:
        BadInput: no such segmenter, or it refuses where or an option.

    >>> load_segmenter("otsu?polarity=bright").name
    'otsu?polarity=bright'
    """
    head, _, query = text.partition("?")
    name, _, where = head.partition(":")
    maker = SEGMENTERS.load(name)
    given = {**_options(query), **{key: value for key, value in options.items() if value is not None}}
    try:
        signature(maker).bind(where, **given)
    except TypeError as error:
        raise BadInput(f"segmenter {name} does not take these options ({error})", field="segmenter") from None
    return maker(where, **_typed(name, maker, given))


def _options(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, query.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BadInput(f"not KEY=VALUE: '{pair}'", field="segmenter", fix="write for example otsu?polarity=bright")
        found[key] = value
    return found


def _typed(name: str, maker: Callable[..., Segmenter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as the types that the maker declares; a parameter without a type gets what was written."""
    from pydantic import TypeAdapter, ValidationError

    declared = signature(maker, eval_str=True).parameters
    found: dict[str, Any] = {}
    for key, value in given.items():
        kind = declared[key].annotation if key in declared else Any
        try:
            found[key] = TypeAdapter(Any if kind is Parameter.empty else kind).validate_python(value)
        except ValidationError as error:
            fault = error.errors()[0]["msg"]
            raise BadInput(f"segmenter {name} cannot use {key}={value} ({fault})", field="segmenter") from None
    return found


__all__ = ["SEGMENTERS", "Instance", "Segmenter", "SegmenterFault", "UnsupportedPrompt", "load_segmenter"]
