"""Several Spark sessions at once, and a gateway or a bridge that goes away under one."""

import pytest

from tests.bridge.bridge_process import BridgeProcess

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.whole
def test_two_sessions_see_each_others_changes_at_once(place, second_session):
    one, other = place.spark, second_session
    one.sql("CREATE DATABASE shared")
    one.sql("CREATE TABLE shared.t (id INT) PARTITIONED BY (k INT) STORED AS TEXTFILE")
    for number in range(10):
        writer, reader = (one, other) if number % 2 else (other, one)
        writer.sql(f"INSERT INTO shared.t PARTITION (k = {number}) VALUES ({number})")
        assert reader.sql("SELECT count(*), max(k) FROM shared.t") == [[number + 1, number]]
        assert len(reader.sql("SHOW PARTITIONS shared.t")) == number + 1
        writer.sql(f"ALTER TABLE shared.t SET TBLPROPERTIES ('round' = '{number}')")
        assert reader.sql("SHOW TBLPROPERTIES shared.t ('round')") == [["round", str(number)]]
        writer.sql(f"CREATE VIEW shared.v{number} AS SELECT {number} AS n")
        assert reader.sql(f"SELECT n FROM shared.v{number}") == [[number]]
    other.sql("ALTER TABLE shared.t RENAME TO shared.u")
    assert one.sql("SELECT count(*) FROM shared.u") == [[10]]
    other.sql("DROP DATABASE shared CASCADE")
    assert one.sql("SHOW DATABASES LIKE 'shared'") == []


@pytest.mark.whole
def test_sessions_write_to_one_table_at_the_same_time(place, second_session):
    place.spark.sql("CREATE DATABASE written")
    place.spark.sql("CREATE TABLE written.t (id INT) PARTITIONED BY (k INT) STORED AS TEXTFILE")
    sessions = (place.spark, second_session)
    for number, session in enumerate(sessions):
        inserts = [f"INSERT INTO written.t PARTITION (k = {10 * number + k}) VALUES ({k})" for k in range(6)]
        session.send({"parallel": inserts})
    answers = [answer for session in sessions for answer in session.receive()["parallel"]]
    assert answers == [{"rows": []}] * 12
    assert place.spark.sql("SELECT count(*), count(DISTINCT k), sum(id) FROM written.t") == [[12, 12, 30]]
    place.spark.sql("DROP DATABASE written CASCADE")


def test_a_session_outlives_its_gateway(place, gateway):
    place.spark.sql("CREATE DATABASE lasting")
    place.spark.sql("CREATE TABLE lasting.t (id INT) PARTITIONED BY (k INT) STORED AS TEXTFILE")
    for number in range(3):
        gateway.kill()
        place.spark.send({"sql": f"INSERT INTO lasting.t PARTITION (k = {number}) VALUES ({number})"})
        gateway.start()
        assert place.spark.receive() == {"rows": []}
    assert place.spark.sql("SELECT count(*), sum(id) FROM lasting.t") == [[3, 3]]
    place.spark.sql("DROP DATABASE lasting CASCADE")


def test_a_wrong_password_is_said_in_spark(place, gateway, bridge):
    bridge.stop()
    with BridgeProcess(gateway, password="not it", port=bridge.port):
        answer = place.spark.ask({"sql": "SHOW DATABASES"})
    bridge.start()
    assert "does not accept user admin: HTTP 401" in answer["text"]
    assert ["default"] in place.spark.sql("SHOW DATABASES")
