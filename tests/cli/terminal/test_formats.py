"""Rows as text: what is null, what has line ends and tabs, and that rows are written while they arrive."""

import csv
import io
import json

import pytest

from hms_gateway.cli.terminal.formats import FORMATS, ROWS_MEASURED, write_rows

COLUMNS = ("name", "n", "is_x")
ROWS = [("a\tb\nc\\", 1, True), (None, None, False), ("漢字", 22, None), ("", 0, None)]


def written(form, rows=ROWS):
    stream = io.StringIO()
    assert write_rows(stream, form, COLUMNS, rows) == len(rows)
    return stream.getvalue()


def test_a_table_is_aligned():
    assert written("table") == (
        "name      n     is_x\n"
        "--------  ----  -----\n"
        "a\\tb\\nc\\  1     true\n"
        "NULL      NULL  false\n"
        "漢字      22    NULL\n"
        "          0     NULL\n"
    )


def test_json_has_an_object_in_each_line_and_null_is_null():
    assert [json.loads(line) for line in written("json").splitlines()] == [
        dict(zip(COLUMNS, row, strict=True)) for row in ROWS
    ]


def test_tsv_escapes_tabs_and_line_ends():
    assert written("tsv") == "name\tn\tis_x\na\\tb\\nc\\\\\t1\ttrue\n\\N\t\\N\tfalse\n漢字\t22\t\\N\n\t0\t\\N\n"


def test_csv_is_read_by_its_reader():
    found = list(csv.reader(io.StringIO(written("csv"))))
    assert found == [list(COLUMNS), ["a\tb\nc\\", "1", "true"], ["", "", "false"], ["漢字", "22", ""], ["", "0", ""]]


def test_vertical_has_a_line_for_each_cell():
    assert written("vertical", ROWS[:1]) == "-- row 1\nname  a\\tb\\nc\\\nn     1\nis_x  true\n"


@pytest.mark.parametrize("form", FORMATS)
def test_terminals_and_readers_get_no_control_characters_in_tables(form):
    text = written(form, [("\x1b[31m", 1, None)])
    assert ("\x1b" in text) == (form in ("csv", "tsv"))


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_written_while_they_arrive(form):
    stream = io.StringIO()
    seen = []

    def rows():
        for number in range(ROWS_MEASURED * 3):
            if number == ROWS_MEASURED * 2:
                seen.append(stream.getvalue().count("x1999"))
            yield f"x{number}", number, None

    write_rows(stream, form, COLUMNS, rows())
    assert seen == [1]


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_a_result_too(form):
    assert write_rows(io.StringIO(), form, COLUMNS, []) == 0
