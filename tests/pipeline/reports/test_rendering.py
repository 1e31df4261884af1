"""Pages as a parser sees them: well formed, nothing loaded, nothing run, everything in them as it was given."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.pipeline.reports import Bar, Bars, Fact, Page, Section, Table, Tone, Unit, render

ODD = "<script>alert('x')</script> & \"<b>\" ]]> --> \u202e\udc80\x00 é"
# Elements that can load or run something, and attributes with addresses.
LOADING = {"script", "link", "img", "iframe", "object", "embed", "image", "use", "base", "form", "a"}
ADDRESSES = {"src", "href", "style", "action", "data", "background"}

texts = st.text(st.characters() | st.sampled_from("<>&\"'\x00\udfff"), max_size=30)
numbers = st.integers(0, 10**15) | st.floats(0, 1e12)
tones = st.sampled_from(Tone)
units = st.sampled_from(Unit)
cells = texts | numbers | tones | st.none()
tables = st.integers(1, 4).flatmap(
    lambda width: st.builds(
        Table,
        columns=st.lists(texts, min_size=width, max_size=width),
        rows=st.lists(st.lists(cells, min_size=width, max_size=width), max_size=4),
        units=st.lists(units | st.none(), max_size=width),
        title=texts,
        left_out=st.integers(0, 3),
    )
)
bars = st.builds(Bars, texts, st.lists(st.builds(Bar, texts, numbers, tones), max_size=5), units, st.none() | numbers)
pages = st.builds(
    Page,
    texts,
    texts,
    st.lists(st.builds(Fact, texts, texts, tones), max_size=3),
    st.lists(st.builds(Section, texts, st.lists(tables | bars, max_size=3), texts), max_size=3),
    texts,
)


def parsed(page):
    text = render(page)
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n").encode("utf-8"))


def shown(root):
    return "".join(root.find("body").itertext())


@pytest.mark.slow
@given(pages)
def test_any_page_is_well_formed_and_loads_and_runs_nothing(page):
    root = parsed(page)
    for element in root.iter():
        assert element.tag not in LOADING
        assert not ADDRESSES & set(element.attrib)
        assert not [name for name in element.attrib if name.startswith("on")]
    assert not re.search(r"url\(|@import", root.find("head/style").text)


def test_texts_are_shown_as_they_are_without_what_a_page_may_not_have():
    page = Page(
        ODD,
        ODD,
        [Fact(ODD, ODD)],
        [Section(ODD, [Table([ODD], [[ODD]], title=ODD), Bars(ODD, [Bar(ODD, 1)])], ODD)],
        ODD,
    )
    root = parsed(page)
    expected = ODD.replace("\u202e", "\ufffd").replace("\udc80", "\ufffd").replace("\x00", "\ufffd")
    assert shown(root).count(expected) == 12
    assert root.find("head/title").text == expected


def test_a_table_writes_numbers_in_their_units_at_the_right():
    rows = [["orders", 3_000, 2_048], ["none", None, 0]]
    root = parsed(
        Page("t", sections=[Section("s", [Table(["name", "files", "size"], rows, [None, None, Unit.BYTES])])])
    )
    cells = [[(cell.text, cell.get("class")) for cell in row] for row in root.iter("tr")]
    assert cells == [
        [("name", None), ("files", "number"), ("size", "number")],
        [("orders", None), ("3,000", "number"), ("2 KiB", "number")],
        [("none", None), (None, None), ("0 B", "number")],
    ]


def test_a_table_says_how_much_it_leaves_out():
    def text(left_out):
        return shown(parsed(Page("t", sections=[Section("s", [Table(["a"], [["x"]], left_out=left_out)])])))

    assert "not shown" not in text(0)
    assert "1 more row is not shown." in text(1)
    assert "12,345 more rows are not shown." in text(12_345)


def test_a_tone_is_said_in_words_too():
    root = parsed(Page("t", sections=[Section("s", [Table(["severity"], [[Tone.ERROR]])])]))
    assert [(one.text, one.get("class")) for one in root.iter("span")] == [("error", "label error")]


def rectangles(plot, kind):
    root = parsed(Page("t", sections=[Section("s", [plot])]))
    return [one for one in root.iter("rect") if one.get("class") == kind]


def test_bars_are_as_long_as_their_values():
    found = rectangles(Bars("b", [Bar("all", 200), Bar("half", 100), Bar("little", 0.001), Bar("none", 0)]), "bar")
    full, half, little, none = (float(one.get("width")) for one in found)
    assert half == pytest.approx(full / 2, abs=0.1)
    assert little == 2
    assert none == 0


def test_bars_of_a_whole_are_shares_of_it():
    found = rectangles(Bars("b", [Bar("covered", 25)], Unit.PERCENT, whole=100), "bar")
    track = rectangles(Bars("b", [Bar("covered", 25)], Unit.PERCENT, whole=100), "track")
    assert float(found[0].get("width")) == pytest.approx(float(track[0].get("width")) / 4, abs=0.1)
