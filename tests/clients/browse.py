"""Lists the tables of a database with their columns, keys and comments, and prints the seconds that takes."""

import sys
import time

from sqlalchemy import create_engine, inspect

url, tables = sys.argv[1], int(sys.argv[2])
engine = create_engine(url)
with engine.connect():
    pass
begun = time.perf_counter()
inspector = inspect(engine)
names = inspector.get_table_names()
assert len(names) == tables, len(names)
columns = inspector.get_multi_columns()
assert all(len(own) == 4 for own in columns.values()), columns
inspector.get_multi_pk_constraint()
inspector.get_multi_foreign_keys()
inspector.get_multi_indexes()
inspector.get_multi_table_comment()
print(time.perf_counter() - begun)
