"""Merged cases are all run, and the one that fails is named."""

import inspect

import pytest

from tests.support.merged_cases import merged


def test_every_case_runs_and_the_one_that_fails_is_named():
    seen = []

    @pytest.mark.slow
    @pytest.mark.parametrize("first", [1, pytest.param(2, id="two")])
    @pytest.mark.parametrize(("second", "third"), [("a", "b"), ("c", "d")])
    def test(first, second, third):
        seen.append((first, second, third))
        assert len(seen) < 4

    run_all = merged(test)
    assert [mark.name for mark in run_all.pytestmark] == ["slow"]
    with pytest.raises(AssertionError) as caught:
        run_all()
    assert sorted(seen) == [(1, "a", "b"), (1, "c", "d"), (2, "a", "b"), (2, "c", "d")]
    assert caught.value.__notes__[0].startswith("in the case ")
    assert str(seen[-1][2]) in caught.value.__notes__[0]


def test_cases_with_fixtures_marks_or_nothing_stay():
    def plain():
        pass

    @pytest.mark.parametrize("one", [1])
    def with_fixture(one, tmp_path):
        pass

    @pytest.mark.parametrize("one", [pytest.param(1, marks=pytest.mark.slow)])
    def with_mark(one):
        pass

    assert [merged(test) for test in (plain, with_fixture, with_mark)] == [None] * 3


def test_a_fixture_that_all_cases_share_is_handed_to_each():
    seen = []

    @pytest.mark.parametrize("number", [1, 2])
    def test(number, server):
        seen.append((number, server))

    assert merged(test) is None
    run_all = merged(test, lambda name: name == "server")
    assert list(inspect.signature(run_all).parameters) == ["server"]
    run_all(server="it")
    assert seen == [(1, "it"), (2, "it")]


def test_a_test_is_skipped_when_all_its_cases_are():
    @pytest.mark.parametrize("number", [1, 2])
    def test(number):
        if number < first_that_runs:
            pytest.skip("not this one")

    first_that_runs = 2
    merged(test)()
    first_that_runs = 3
    with pytest.raises(pytest.skip.Exception):
        merged(test)()
