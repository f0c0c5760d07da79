"""Asks the statements by which drivers look around, here and of a real Postgres that has the same tables: columns have equal
names, and rows are equal but where `DIFFERENT` says why not.

Arguments: the port, the id and the secret of a token that may ask the outputs of `one`, the address of the Postgres, the file.
"""

import sys

import psycopg

# Parts of statements whose columns have other names here.
OTHER_NAMES = {
    "db.oid,db.*": "a column more since Postgres 16",
    "a.*,pg_catalog.pg_get_expr": "columns in another order since Postgres 16",
    "(information_schema._pg_expandarray(i.indkey)).n": "a field of a row has the name of the expression",
    "'pg_class'::regclass::oid": "the engine takes this type for its own, and forgets the name",
}
# Parts of statements whose rows are others here.
DIFFERENT = {
    "AS TABLE_TYPE": "the tables of the project",
    "nspname AS TABLE_SCHEM": "schemas of Postgres' own",
    "n.oid,n.*": "schemas of Postgres' own",
    "t.oid,t.*": "types without their privileges",
    "session_user": "the user",
    "FROM pg_namespace": "schemas of Postgres' own",
    "pg_total_relation_size": "numbers of things",
    "server_version": "the version",
    "s.n_live_tup": "an estimate there",
    "SELECT ct.relname": "keys of Postgres' own tables",
    "has_table_privilege": "who may only read",
    "information_schema.table_privileges": "tables of Postgres' own",
    "pg_get_keywords": "words of the engine",
}

port, user, secret, real, file = sys.argv[1:6]
own = psycopg.connect(host="127.0.0.1", port=port, user=user, password=secret, dbname="one", autocommit=True)
real = psycopg.connect(real, autocommit=True)
for sql in [
    "CREATE SCHEMA main",
    "CREATE TABLE main.many AS SELECT range AS x FROM generate_series(0::BIGINT, 99999) AS t(range)",
    "CREATE VIEW main.few AS SELECT * FROM main.many WHERE x < 3",
    "ANALYZE main.many",
    "SET search_path TO main",
]:
    real.execute(sql)

with open(file) as text:
    lines = "".join(line for line in text if not line.startswith("--"))
# No statement of the file has a semicolon within.
statements = [sql.strip() for sql in lines.split(";") if sql.strip()]
equal = 0
for sql in statements:
    (names, rows), (real_names, real_rows) = (
        ([column.name for column in cursor.description], cursor.fetchall())
        for cursor in (connection.execute(sql) for connection in (own, real))
    )
    if any(part in sql for part in OTHER_NAMES):
        continue
    assert names == real_names, (sql, names, real_names)
    if not any(part in sql for part in DIFFERENT):
        assert rows == real_rows, (sql, rows, real_rows)
        equal += 1
assert equal >= 6, equal
print("done")
