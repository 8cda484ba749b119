from pathlib import Path

import pytest

from sonogauge._errors import BadInput

pytestmark = pytest.mark.part("tables")


def test_every_place_is_named_in_order() -> None:
    error = BadInput("odd value", file=Path("d/a.tsv"), row=3, field="label", fix="write a number")
    assert str(error) == "d/a.tsv, row 3, field 'label': odd value; write a number"


def test_places_that_are_not_known_are_left_out() -> None:
    assert str(BadInput("nothing usable")) == "nothing usable"
    assert str(BadInput("nothing usable", row=1)) == "row 1: nothing usable"


def test_the_message_is_one_line_even_with_hostile_input() -> None:
    assert str(BadInput("no item 'a\nb\r\n\tc'", file="x\ny")) == "x y: no item 'a b c'"
