"""Reads an instance over SQL as programs do: by psycopg, and by the inspector of SQLAlchemy.

Arguments: the port, the id and the secret of a token that may ask the outputs of `one`.
"""

import datetime
import decimal
import os
import sys
import threading
import time
import uuid

import psycopg
import sqlalchemy

port, user, secret = sys.argv[1:4]
place = dict(host="127.0.0.1", port=port, user=user, password=secret)


def refused(state, call):
    try:
        call()
    except psycopg.Error as error:
        assert error.sqlstate == state, (error.sqlstate, str(error))
        return str(error)
    raise AssertionError(f"{state} was expected")


with psycopg.connect(dbname="one", **place) as connection:
    # Values of each type, as texts and in binary.
    expected = {
        "yes": True,
        "small": 7,
        "number": 9007199254740993,
        "huge": decimal.Decimal("170141183460469231731687303715884105727"),
        "price": decimal.Decimal("1.10"),
        "part": 0.5,
        "day": datetime.date(2024, 2, 29),
        "moment": datetime.datetime(2024, 2, 29, 12, 30, 0, 123456),
        "instant": datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc),
        "word": "é'\"",
        "bytes": b"\x00\xff",
        "id": uuid.UUID("5f5ee3a5-0b51-4d4b-a0a1-000000000001"),
        "list": [1, None, 3],
        "nothing": None,
    }
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        row = cursor.execute("SELECT * FROM types").fetchone()
        names = [column.name for column in cursor.description]
        assert dict(zip(names, row)) == expected, (binary, dict(zip(names, row)))

    # Parameters, prepared or not.
    for prepare in (False, True, True):
        read = connection.execute(
            "SELECT x FROM many WHERE x < %s AND x %% 2 = %s ORDER BY x", (10, 1), prepare=prepare
        )
        assert [x for (x,) in read.fetchall()] == [1, 3, 5, 7, 9]
    assert connection.execute("SELECT %s::text", ("'; DROP TABLE many; --",)).fetchone() == ("'; DROP TABLE many; --",)

    # Rows arrive while they are read.
    with connection.cursor() as cursor:
        read = cursor.stream("SELECT x FROM many ORDER BY x", size=500)
        assert [next(read) for _ in range(3)] == [(0,), (1,), (2,)]
        assert sum(1 for _ in read) == 99_997
    connection.commit()

    # Cursors, whose rows are fetched in parts, with values and in binary.
    with connection.cursor("own", binary=True) as cursor:
        cursor.execute("SELECT x, 1.5::DECIMAL(9, 2) AS price FROM many WHERE x >= %s ORDER BY x", (7,))
        assert [column.name for column in cursor.description] == ["x", "price"], cursor.description
        assert cursor.fetchone() == (7, decimal.Decimal("1.50"))
        assert [x for (x, _) in cursor.fetchmany(3)] == [8, 9, 10]
        cursor.scroll(100)
        assert cursor.fetchone()[0] == 111
        assert len(cursor.fetchall()) == 99_888 and cursor.fetchone() is None
    connection.commit()
    refused("34000", lambda: connection.execute("FETCH 1 FROM own"))
    connection.rollback()
    # One that is held outlives its transaction, and goes on beside other statements, also those that fail.
    held = connection.cursor("held", withhold=True)
    held.execute("SELECT x FROM many ORDER BY x")
    connection.commit()
    assert held.fetchmany(2) == [(0,), (1,)]
    connection.commit()
    assert held.fetchmany(2) == [(2,), (3,)]
    assert connection.execute("SELECT count(*) FROM many").fetchone() == (100_000,)
    assert held.fetchmany(2) == [(4,), (5,)]
    refused("42601", lambda: connection.execute("SELECT nothing FROM many"))
    connection.rollback()
    assert held.fetchmany(2) == [(6,), (7,)]
    # A cancel request between two statements ends none.
    connection.cancel()
    assert held.fetchmany(2) == [(8,), (9,)]
    connection.commit()
    # Going back to a savepoint ends the cursors that were declared behind.
    with connection.cursor("before") as before, connection.cursor("behind") as behind:
        before.execute("SELECT x FROM many ORDER BY x")
        connection.execute("SAVEPOINT here")
        behind.execute("SELECT x FROM many ORDER BY x DESC")
        assert (before.fetchone(), behind.fetchone()) == ((0,), (99_999,))
        refused("42601", lambda: connection.execute("SELECT nothing FROM many"))
        connection.execute("ROLLBACK TO here")
        assert before.fetchone() == (1,)
        refused("34000", lambda: behind.fetchone())
        connection.rollback()
    for state, sql in [
        ("0A000", "DECLARE c SCROLL CURSOR FOR SELECT 1"),
        ("25006", "DECLARE c CURSOR FOR DELETE FROM many"),
        ("42501", "DECLARE c CURSOR FOR SELECT * FROM read_csv('/etc/passwd')"),
        ("42P03", "DECLARE held CURSOR FOR SELECT 1"),
        ("34000", "CLOSE nothing"),
    ]:
        refused(state, lambda: connection.execute(sql))
        connection.rollback()
    connection.execute("CLOSE held")
    connection.commit()
    connection.autocommit = True
    assert "transaction" in refused("25P01", lambda: connection.execute("DECLARE c CURSOR FOR SELECT 1"))
    connection.autocommit = False

    # Cursors whose clients look at their first rows hold up nobody, and go on.
    others = [psycopg.connect(dbname="one", **place) for _ in range(min(os.cpu_count() or 1, 11) + 1)]
    cursors = [other.cursor("own") for other in others]
    for cursor in cursors:
        cursor.execute("SELECT x FROM many ORDER BY x")
        assert cursor.fetchmany(2) == [(0,), (1,)]
    assert connection.execute("SELECT count(*) FROM many").fetchone() == (100_000,)
    for cursor in cursors:
        assert cursor.fetchmany(2) == [(2,), (3,)]
    for other in others:
        other.close()

    # Lists and intervals are values too.
    read = connection.execute(
        "SELECT list_sum(%s), DATE '2024-02-29' + %s, 'b' = ANY(%s)",
        ([1, 2, None], datetime.timedelta(days=1, seconds=5), ["a", "b"]),
    ).fetchone()
    assert read == (3, datetime.datetime(2024, 3, 1, 0, 0, 5), True), read
    connection.commit()

    # Rows as lines.
    with connection.cursor().copy("COPY (SELECT x, 'a\tb' AS word, NULL AS none FROM few) TO STDOUT") as copy:
        assert list(copy.rows()) == [(str(x), "a\tb", None) for x in range(3)]
    with connection.cursor().copy("COPY many TO STDOUT (FORMAT csv, HEADER)") as copy:
        lines = b"".join(copy).decode().splitlines()
        assert lines[:2] == ["x", "0"] and len(lines) == 100_001
    connection.commit()

    # An error in a transaction fails it, and a rollback makes it good.
    refused("42501", lambda: connection.execute("SELECT * FROM nowhere"))
    refused("25P02", lambda: connection.execute("SELECT 1"))
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)

    # A savepoint is one to go back to.
    with connection.transaction():
        try:
            with connection.transaction():
                connection.execute("SELECT * FROM nowhere")
        except psycopg.Error as error:
            assert error.sqlstate == "42501"
        assert connection.execute("SELECT 1").fetchone() == (1,)
    refused("3B001", lambda: connection.execute("ROLLBACK TO nowhere"))
    connection.rollback()

    # An error in the middle of the rows is told, and the session lives.
    def in_the_middle():
        for _ in connection.cursor().stream("SELECT CASE WHEN x = 99999 THEN ('too late' || x)::INTEGER END FROM many"):
            pass

    refused("42601", in_the_middle)
    connection.rollback()

    for state, sql in [
        ("25006", "INSERT INTO many VALUES (1)"),
        ("25006", "DROP TABLE many"),
        ("25006", "CREATE TABLE more AS SELECT 1"),
        ("25006", "WITH a AS (SELECT 1) DELETE FROM many"),
        ("25006", "ATTACH '/tmp/x'"),
        ("0A000", "COPY many TO PROGRAM 'id'"),
        ("0A000", "COPY many FROM '/etc/passwd'"),
        ("42501", "SELECT * FROM read_csv('/etc/passwd')"),
        ("42501", "SELECT * FROM '/etc/passwd'"),
        ("42501", "SELECT getenv('HOME')"),
        ("42501", "SELECT * FROM duckdb_settings()"),
        ("42501", "SELECT * FROM pg_catalog.pg_class, read_text('/etc/passwd')"),
        ("42501", "SELECT * FROM pg_catalog.pg_class, many"),
        ("42501", "SELECT * FROM pg_catalog.pg_class, seen.session"),
        ("42501", "SELECT pg_catalog.pg_read_file('/etc/passwd')"),
        ("42501", "EXPLAIN SELECT * FROM many"),
        ("42601", "SELECT FROM WHERE"),
        ("25006", "SELEC 1"),
    ]:
        refused(state, lambda: connection.execute(sql))
        connection.rollback()
    # A statement that is called off ends at once, and the session lives.
    begun = time.monotonic()
    threading.Timer(0.3, connection.cancel).start()
    refused("57014", lambda: connection.execute("SELECT count(*) FROM many a, many b, many c WHERE a.x + b.x + c.x = -1"))
    assert time.monotonic() - begun < 5
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM many").fetchone() == (100_000,)

for wrong in [dict(password=secret + "0"), dict(user="0" * 16), dict(password="")]:
    try:
        psycopg.connect(dbname="one", **{**place, **wrong})
        raise AssertionError("somebody was let in")
    except psycopg.OperationalError as error:
        assert "wrong" in str(error) or "password" in str(error), error

told = []
for database in ("two", "nowhere", "ONE", "one' OR 'a"):
    try:
        psycopg.connect(dbname=database, **place)
        raise AssertionError("somebody was let in")
    except psycopg.OperationalError as error:
        told.append(str(error).split("FATAL:")[-1].replace(database, "NAME"))
assert all(one == told[0] for one in told[:2]), told

url = sqlalchemy.URL.create("postgresql+psycopg", user, secret, "127.0.0.1", int(port), "one")
engine = sqlalchemy.create_engine(url)
inspector = sqlalchemy.inspect(engine)
assert inspector.default_schema_name == "main"
assert sorted(inspector.get_schema_names()) == ["information_schema", "main", "metrics"], inspector.get_schema_names()
assert sorted(inspector.get_table_names()) == ["many", "types"], inspector.get_table_names()
assert inspector.get_view_names() == ["few"], inspector.get_view_names()
columns = {column["name"]: column["type"] for column in inspector.get_columns("types")}
assert list(columns) == list(expected)
assert isinstance(columns["number"], sqlalchemy.BIGINT) and isinstance(columns["word"], sqlalchemy.TEXT)
assert (columns["price"].precision, columns["price"].scale) == (9, 2)
assert inspector.get_pk_constraint("types")["constrained_columns"] == []
assert inspector.get_indexes("types") == [] and inspector.get_foreign_keys("types") == []
assert inspector.get_unique_constraints("types") == [] and inspector.get_table_comment("types") == {"text": None}
assert inspector.has_table("many") and not inspector.has_table("nowhere")
table = sqlalchemy.Table("many", sqlalchemy.MetaData(), autoload_with=engine)
with engine.connect() as connection:
    read = connection.execute(sqlalchemy.select(table.c.x).where(table.c.x > 99_990).order_by(table.c.x).limit(2))
    assert [x for (x,) in read] == [99_991, 99_992]
engine.dispose()

# One caller has so many sessions, and no more.
held = [psycopg.connect(dbname="one", **place) for _ in range(64)]
try:
    psycopg.connect(dbname="one", **place)
    raise AssertionError("there is no bound")
except psycopg.OperationalError as error:
    assert "sessions open already" in str(error), error
held.pop().close()
for _ in range(100):
    try:
        psycopg.connect(dbname="one", **place).close()
        break
    except psycopg.OperationalError:
        pass
else:
    raise AssertionError("the place of a session that ended is not free")
print("done")
