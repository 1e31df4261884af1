"""What the benchmark of loads and commits sends, made beforehand, is answered without a refusal each time."""

from benchmarks.iceberg_rest import append_body, property_body
from hms_gateway.iceberg.appends import REBASE

PATH = "namespaces/sales/tables/orders"


def test_prepared_commits_change_the_table_each_time(rest):
    made = rest.table(properties={REBASE: "true"})
    places = {made["metadata-location"]}
    for value in "abab":
        status, found = rest.send("POST", PATH, content=property_body(made, value))
        assert status == 200
        places.add(found["metadata-location"])
    assert len(places) == 5
    for number in 1, 2:
        place = f"{made['metadata']['location']}/metadata/{number}.avro"
        assert rest.send("POST", PATH, content=append_body(made, number, place, number))[0] == 200
