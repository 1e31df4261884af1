"""The collector and imports."""

import gc

import pytest

from hms_gateway.cli.terminal.importing import gc_paused


@pytest.fixture(autouse=True)
def unfrozen():
    yield
    gc.unfreeze()


def test_what_is_made_meanwhile_is_left_out_of_collections():
    with gc_paused():
        assert not gc.isenabled()
        made = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= len(made)


def test_the_collector_works_again_when_an_import_fails():
    with pytest.raises(ImportError), gc_paused():
        raise ImportError
    assert gc.isenabled()
