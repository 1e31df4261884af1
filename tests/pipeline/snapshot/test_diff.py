"""Two snapshots compared by Spark: exactly what was planted is found."""

import json
import random
from contextlib import nullcontext

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow
import pyarrow.parquet
from click.testing import CliRunner

from hms_gateway.cli.pipeline.commands import PIPELINE
from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.snapshot import diff as comparison
from hms_gateway.pipeline.snapshot.diff import DiffArguments, diff
from hms_gateway.pipeline.snapshot.manifest import KindFile, KindPart, Manifest
from hms_gateway.pipeline.snapshot.objects import KEYS, KINDS, as_hex, digest_of
from tests.support.sample import sample

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = pyarrow.schema([(name, pyarrow.string()) for name in (*KEYS[1:], "object")])


def write(path, objects, event, only=()):
    """A snapshot of objects that are given, in two files for each kind."""
    folder, kinds = State.of(str(path), {}), {}
    for kind in KINDS:
        rows = [(*key, text) for key, text in objects.items() if key[0] == kind]
        files = []
        for at, some in enumerate((rows[::2], rows[1::2])):
            if some:
                name = f"kind={kind}/part-{at}.parquet"
                columns = [dict(zip(SCHEMA.names, row[1:], strict=True)) for row in some]
                with folder.output(name) as file:
                    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(columns, SCHEMA), file)
                files.append(KindFile(name, len(some)))
        kinds[kind] = KindPart(len(rows), as_hex(digest_of(rows)), tuple(files))
    said = {"metastore": "", "version": "", "began": "", "taken": "", "run": "", "rounds": 1, "digest": ""}
    Manifest(event=event, only=tuple(only), kinds=kinds, **said).write(folder)
    return str(path)


def catalog(chance, size):
    objects = {}
    for _ in range(size):
        kind = chance.choice(KINDS)
        names = (f"d{chance.randrange(3)}", f"t{chance.randrange(40)}", f"k={chance.randrange(40)}", "x")
        fields = {f"f{number}": str(chance.randrange(9)) for number in range(chance.randrange(1, 5))}
        objects[(kind, *names)] = json.dumps({"same": "1", "parameters": fields}, sort_keys=True)
    return objects


@pytest.mark.parametrize("seed", range(1, sample(2, of=11)))
def test_what_was_planted_is_found_and_nothing_else(spark, tmp_path, seed):
    chance = random.Random(seed)
    before = catalog(chance, 400)
    after, planted = dict(before), set()
    keys = chance.sample(sorted(before), 40)
    for key in keys[:10]:
        del after[key]
        planted.add((key[0], "dropped", *key[1:], ""))
    for key in keys[10:30]:
        changed = json.loads(after[key])
        changed["parameters"]["planted"] = str(chance.random())
        changed["same"] = "2" if chance.random() < 0.5 else "1"
        after[key] = json.dumps(changed, sort_keys=True)
        planted.add((key[0], "changed", *key[1:], "parameters.planted"))
        if changed["same"] == "2":
            planted.add((key[0], "changed", *key[1:], "same"))
    for number in range(7):
        key = ("tables", "new", f"t{number}", "", "")
        after[key] = "{}"
        planted.add((key[0], "added", *key[1:], ""))
    given = DiffArguments(
        before=write(tmp_path / "a", before, 1),
        after=write(tmp_path / "b", after, 2),
        output=str(tmp_path / "changes"),
        shown=25,
    )
    result = diff(given, spark=spark)
    rows = pyarrow.parquet.read_table(given.output).to_pylist()
    assert {tuple(row.values())[:7] for row in rows} == planted
    assert (len(rows), result.total, result.exit_status) == (len(planted), 10 + 20 + 7, 1)
    assert sum(counts.get("dropped", 0) for counts in result.counts.values()) == 10
    assert sum(counts.get("changed", 0) for counts in result.counts.values()) == 20
    assert result.counts["tables"]["added"] == 7
    assert [tuple(each)[:7] for each in result.differences] == sorted(planted)[:25]


def test_fields_may_be_ignored_and_tables_chosen(spark, tmp_path):
    before = {("tables", "d", name, "", ""): json.dumps({"a": "1", "b": "1"}) for name in ("t", "u")}
    after = {key: json.dumps({"a": "2", "b": "1"}) for key in before}
    paths = {"before": write(tmp_path / "a", before, 1), "after": write(tmp_path / "b", after, 2)}
    assert diff(DiffArguments(**paths, ignored=("a",)), spark=spark).exit_status == 0
    chosen = diff(DiffArguments(**paths, only=("d.u",)), spark=spark)
    assert [each.table for each in chosen.differences] == ["u"]
    same = diff(DiffArguments(before=paths["before"], after=write(tmp_path / "c", before, 3)), spark=spark)
    assert (same.exit_status, same.total, same.before.event, same.after.event) == (0, 0, 1, 3)


def test_what_cannot_be_compared_is_refused(spark, tmp_path):
    whole = write(tmp_path / "a", {("tables", "d", "t", "", ""): "{}"}, 1)
    part = write(tmp_path / "b", {}, 1, only=["d.*"])
    with pytest.raises(UsageRefused, match=r"the snapshots are of everything and of d\.\*"):
        diff(DiffArguments(before=whole, after=part), spark=spark)
    assert diff(DiffArguments(before=whole, after=part, only=("d.*",)), spark=spark).total == 1
    with pytest.raises(UsageRefused, match="nothing is not a snapshot"):
        diff(DiffArguments(before=str(tmp_path / "nothing"), after=whole), spark=spark)
    write(tmp_path / "c", {("tables", "d", "t", "", ""): "{}"}, 1)
    file = tmp_path / "c" / "kind=tables" / "part-0.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(UsageRefused, match=r"file kind=tables/part-0\.parquet of snapshot .* is damaged"):
        diff(DiffArguments(before=whole, after=str(tmp_path / "c")), spark=spark)


def test_the_command_prints_and_its_status_says_whether_they_differ(spark, tmp_path, monkeypatch):
    # A session of its own would be this one, and would be stopped.
    monkeypatch.setattr(comparison, "session", lambda *_: nullcontext(spark))
    key = ("tables", "sales", "orders", "", "")
    before = write(tmp_path / "a", {key: json.dumps({"parameters": {"numRows": "5"}})}, 3)
    changed = {key: json.dumps({"parameters": {"numRows": "6"}}), ("columns", "sales", "orders", "", "[new]"): "{}"}
    after = write(tmp_path / "b", changed, 9)
    printed = CliRunner().invoke(PIPELINE, ["diff", before, after])
    assert printed.exit_code == 1, printed.output
    assert "+ columns      sales.orders [new]" in printed.output
    assert "~ tables       sales.orders parameters.numRows: '5' -> '6'" in printed.output
    assert "2 objects differ, event 3 to event 9" in printed.output
    as_json = CliRunner().invoke(PIPELINE, ["diff", after, before, "--json", "--only", "*.orders"])
    assert json.loads(as_json.stdout)["counts"] == {"columns": {"dropped": 1}, "tables": {"changed": 1}}
    same = CliRunner().invoke(PIPELINE, ["diff", before, before])
    assert (same.exit_code, same.output) == (0, "no difference, event 3 to event 3\n")
    assert CliRunner().invoke(PIPELINE, ["diff", before, str(tmp_path)]).exit_code == 2
