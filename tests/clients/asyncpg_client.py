"""Reads an instance over SQL by asyncpg: cursors by portals, a pool, a statement beside a cursor, and parameters.

Arguments: the port, the id and the secret of a token that may ask the outputs of `one`.
"""

import asyncio
import datetime
import decimal
import sys
import uuid

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


async def cursors_beside_each_other(connection):
    async with connection.transaction():
        up = await connection.cursor("SELECT x FROM many ORDER BY x")
        down = await connection.cursor("SELECT x FROM many WHERE x <= $1 ORDER BY x DESC", 99_999)
        for first in range(0, 30_000, 3_000):
            assert numbers(await up.fetch(3_000)) == list(range(first, first + 3_000))
            assert await connection.fetchval("SELECT count(*) FROM few") == 3
            last = 99_999 - first
            assert numbers(await down.fetch(3_000)) == list(range(last, last - 3_000, -1))
    assert await connection.fetchval("SELECT 1") == 1


async def most_cursors(connection):
    """An instance keeps so many answers open for those who look at first rows; the rest of further ones is left."""
    async with connection.transaction():
        cursors = [await connection.cursor("SELECT x FROM many ORDER BY x") for _ in range(20)]
        ends = []
        for cursor in cursors:
            assert numbers(await cursor.fetch(3)) == [0, 1, 2]
        for cursor in cursors:
            try:
                async with connection.transaction():
                    ends.append(numbers(await cursor.fetch(2)))
            except asyncpg.PostgresError as error:
                ends.append((error.sqlstate, "was left" in str(error)))
        assert ends.count([3, 4]) >= 16 and all(end in ([3, 4], ("34000", True)) for end in ends), ends


async def parameters(connection):
    """Types of parameters are those of what they stand beside, as asyncpg says none itself."""
    read = "SELECT x FROM many WHERE x >= $1 AND x < $2::INTEGER ORDER BY x LIMIT $3"
    assert numbers(await connection.fetch(read, 5, 100, 2)) == [5, 6]
    assert numbers(await connection.fetch("SELECT x FROM many WHERE x = ANY($1) ORDER BY x", [3, 1, 200_000])) == [1, 3]
    assert numbers(await connection.fetch("SELECT x FROM many WHERE x = ANY($1::BIGINT[]) ORDER BY x", [])) == []
    assert await connection.fetchval("SELECT count(*) FROM types WHERE word = ANY($1)", ["a", "é'\""]) == 1
    day, instant = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
    assert await connection.fetchval("SELECT count(*) FROM types WHERE instant < $1::timestamptz", instant) == 0
    values = (day, instant, decimal.Decimal("1.1"), "é'\"", b"\x00\xff", uuid.UUID("5f5ee3a5-0b51-4d4b-a0a1-000000000001"), True)
    read = (
        "SELECT count(*) FROM types WHERE day = $1 AND instant = $2 AND price = $3 AND word = $4 AND bytes = $5"
        " AND id = $6 AND yes = $7"
    )
    assert await connection.fetchval(read, *values) == 1
    assert await connection.fetchval(read, *(None for _ in values)) == 0
    statement = await connection.prepare(read)
    kinds = [one.name for one in statement.get_parameters()]
    assert kinds == ["date", "timestamptz", "numeric", "text", "bytea", "uuid", "bool"], kinds
    week = datetime.timedelta(weeks=1)
    assert await connection.fetchval("SELECT moment + $1::INTERVAL FROM types", week) == datetime.datetime(2024, 3, 7, 12, 30, 0, 123456)
    # A statement that can't be read says so, with or without parameters.
    try:
        await connection.fetch("SELECT nothing_of_this FROM many WHERE x = $1", 1)
        raise AssertionError("it was read")
    except asyncpg.PostgresError as error:
        assert error.sqlstate == "42601", (error.sqlstate, str(error))


async def main():
    connection = await asyncpg.connect(**place)
    assert numbers(await connection.fetch("SELECT x FROM few ORDER BY x")) == [0, 1, 2]
    await cursors(connection)
    await cursors_beside_each_other(connection)
    await most_cursors(connection)
    await parameters(connection)
    await connection.close()
    async with asyncpg.create_pool(min_size=1, max_size=1, **place) as pool:
        for _ in range(3):
            async with pool.acquire() as own:
                assert await own.fetchval("SELECT count(*) FROM many") == 100_000


asyncio.run(main())
print("done")
