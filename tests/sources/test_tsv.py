import csv
import hashlib
from pathlib import Path

import pytest

from sonogauge import _errors
from sonogauge.sources import tsv
from sonogauge.sources.tsv import TsvFile

pytestmark = [pytest.mark.part("u2bench import"), pytest.mark.lookalike]


def _file(tmp_path: Path, data: bytes) -> TsvFile:
    path = tmp_path / "a.tsv"
    path.write_bytes(data)
    return TsvFile(path, name="a.tsv")


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_endings_byte_order_mark_blank_lines_and_hash(tmp_path: Path, newline: bytes, mark: bytes) -> None:
    data = mark + newline.join([b"a\t b ", b"1\t04", b"", b'"x\ty"\t"say ""hi"""', "ü\tNone".encode(), b""])
    file = _file(tmp_path, data)
    rows = list(file)
    assert file.columns == ("a", "b")
    assert [row.number for row in rows] == [1, 2, 3]
    assert [row.cells for row in rows] == [
        {"a": "1", "b": "04"},
        {"a": "x\ty", "b": 'say "hi"'},
        {"a": "ü", "b": "None"},
    ]
    assert file.hash == hashlib.sha256(data).hexdigest()


def test_a_cell_of_22_million_characters_passes_and_the_limit_of_csv_is_restored(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    file = _file(tmp_path, b"a\tb\n" + b"A" * 22_000_000 + b"\t1\n")
    (row,) = list(file)
    assert len(row.cells["a"]) == 22_000_000 and row.cells["b"] == "1"
    assert csv.field_size_limit() == before


def test_a_spoiled_row_stays_alone(tmp_path: Path) -> None:
    rows = list(_file(tmp_path, b"a\tb\n1\t2\n3\n4\t5\t6\n\xff\t7\n8\t\x00\n9\t10\n"))
    assert [row.fault for row in rows] == [
        None,
        "wrong number of cells",
        "wrong number of cells",
        "not UTF-8",
        "NUL character",
        None,
    ]
    assert rows[-1].number == 6


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        ("a\tb\n".encode("utf-16"), "UTF-16"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"a\ta\n1\t2\n", "two columns of this name"),
        (b'a\tb\n1\t"open\n3\t4\n5\t6\n', "row 1.*quote is never closed"),
        (b'a\tb\n1\t"open', "row 1.*quote is never closed"),
        (b'a\tb\tc\n1\t"open\n3\t4\t5\n', "row 1.*several rows"),
    ],
)
def test_a_broken_file_is_bad_input_that_names_it(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(_errors.BadInput, match=rf"a\.tsv.*{words}"):
        list(_file(tmp_path, data))


def test_quotes_inside_a_cell_are_text(tmp_path: Path) -> None:
    rows = list(_file(tmp_path, b'a\tb\n1\t5" probe\n2\t"A" is odd\n'))
    assert [row.cells["b"] for row in rows] == ['5" probe', "A is odd"]


def test_a_cell_over_the_limit_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv, "FIELD_LIMIT", 1000)
    with pytest.raises(_errors.BadInput, match=r"row 1.*field limit"):
        list(_file(tmp_path, b"a\tb\n" + b"A" * 1001 + b"\t1\n"))


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(_errors.BadInput, match="cannot be read"):
        list(TsvFile(tmp_path / "none.tsv"))
