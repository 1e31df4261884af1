"""What lies outside is counted and named in little room, with roots that would hold it."""

import pytest

from hms_gateway.catalog.directories.known_places import OutsidePlaces, RootsToName
from hms_gateway.catalog.directories.places import DatabasePlace, TablePlace
from hms_gateway.metastore.vocabulary.names import TableId
from hms_gateway.storage.files.directories import Directories


def roots_of(*locations: str, refused: tuple[str, ...] = ()) -> list[str]:
    roots = RootsToName(lambda location: location not in refused)
    for location in locations:
        roots.add(location)
    return list(roots)


def test_a_root_holds_the_neighbours() -> None:
    assert roots_of("file:/data/lake/a", "file:/data/lake/b/c", "s3a://b/x/y/t") == ["file:/data/lake", "s3a://b/x/y"]
    assert roots_of("file:/data/lake/a/b", "file:/data/lake/c") == ["file:/data/lake"]


def test_no_root_is_higher_than_it_has_to_be() -> None:
    assert roots_of("file:/lake", "file:/data/t") == ["file:/data/t", "file:/lake"]
    assert roots_of("file:/srv/hms/t", refused=("file:/srv/hms",)) == ["file:/srv/hms/t"]
    assert roots_of("file:/srv/hms", refused=("file:/srv/hms",)) == []


def test_many_roots_become_few() -> None:
    assert roots_of(*(f"file:/data/lake/d{number}/t" for number in range(30))) == ["file:/data/lake"]
    assert roots_of(*(f"file:/data/t{number}" for number in range(1_000))) == ["file:/data"]


@pytest.mark.slow
def test_what_is_left_out_is_said() -> None:
    roots = RootsToName(lambda location: location != "file:/data")
    for number in range(100):
        roots.add(f"file:/data/t{number}")
    assert len(list(roots)) == 20
    assert not roots.are_all


def test_a_line_for_all() -> None:
    found = OutsidePlaces(Directories({}, ["file:/warehouse"]), lambda location: True)
    assert not found
    found.add_database(DatabasePlace("inside", ("file:/warehouse/d.db",)))
    for number in range(7):
        found.add_table(TablePlace(TableId(number), "d", f"t{number}", f"file:/old/d/t{number}", True, (), 0))
    found.add_table(TablePlace(TableId(8), "d", "external", "file:/x/y/z", False, (), 0))
    found.add_partitions("d.p", "file:/old/d/p/ds=1", 1_000)
    assert str(found) == (
        "outside the directories this server manages lie tables 7 (d.t0, d.t1, d.t2, d.t3, d.t4, ...), "
        "partitions 1,000 (d.p); they stay as they are, and their files too; "
        'to manage them again set file_roots = ["file:/old/d"]'
    )
