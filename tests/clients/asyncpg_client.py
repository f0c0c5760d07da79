"""Reads an instance over SQL by asyncpg: cursors by portals, a pool, and a statement beside a cursor.

Arguments: the port, the id and the secret of a token that may ask the outputs of `one`.
"""

import asyncio
import sys

import asyncpg

port, user, secret = sys.argv[1:4]
place = dict(host="127.0.0.1", port=int(port), user=user, password=secret, database="one", timeout=20)


def numbers(rows):
    return [x for (x,) in rows]


async def cursors(connection):
    async with connection.transaction():
        expected = 0
        async for (x,) in connection.cursor("SELECT x FROM many ORDER BY x", prefetch=999):
            assert x == expected
            expected += 1
        assert expected == 100_000


async def a_statement_beside_a_cursor(connection):
    try:
        async with connection.transaction():
            cursor = await connection.cursor("SELECT x FROM many ORDER BY x")
            assert numbers(await cursor.fetch(3)) == [0, 1, 2]
            assert await connection.fetchval("SELECT count(*) FROM few") == 3
            # The rest was left: to begin again would give rows twice.
            numbers(await cursor.fetch(3))
        raise AssertionError("the cursor went on")
    except asyncpg.PostgresError as error:
        assert error.sqlstate == "34000" and "one statement at a time" in str(error), (error.sqlstate, str(error))
    assert await connection.fetchval("SELECT 1") == 1


async def main():
    connection = await asyncpg.connect(**place)
    assert numbers(await connection.fetch("SELECT x FROM few ORDER BY x")) == [0, 1, 2]
    await cursors(connection)
    await a_statement_beside_a_cursor(connection)
    await connection.close()
    async with asyncpg.create_pool(min_size=1, max_size=1, **place) as pool:
        for _ in range(3):
            async with pool.acquire() as own:
                assert await own.fetchval("SELECT count(*) FROM many") == 100_000


asyncio.run(main())
print("done")
