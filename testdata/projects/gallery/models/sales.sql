-- What was sold, when, where and to whom? Made of numbers alone, so that it is the same everywhere.
-- @materialize: true
WITH every AS (
    SELECT
        i,
        (i * 7919) % 104729 AS chance,
        TIMESTAMP '2024-01-01 07:00:00' + INTERVAL (i // 30) DAY + INTERVAL ((i * 13) % 11) HOUR AS sold_at
    FROM range(3600) t(i)
)
SELECT
    sold_at,
    shops.shop,
    shops.region,
    CASE
        WHEN shops.region = 'south' AND chance % 9 = 0 THEN 'Pretzel of the south'
        WHEN chance % 5 = 0 THEN 'Rye'
        WHEN chance % 5 = 1 THEN 'Wheat'
        WHEN chance % 5 = 2 THEN 'A cake with a name of forty letters, no more'
        WHEN chance % 5 = 3 THEN ''
        ELSE 'Bun'
    END AS product,
    CASE chance % 7 WHEN 0 THEN NULL WHEN 1 THEN 'cash' WHEN 2 THEN 'cash' ELSE 'card' END AS paid,
    'guest ' || (chance % 40) AS guest,
    1 + chance % 4 AS pieces,
    (1 + chance % 4) * (2.2 + chance % 5) AS amount,
    (1 + chance % 4) * (0.9 + chance % 3) AS cost
FROM every
JOIN (SELECT *, row_number() OVER (ORDER BY seats) - 1 AS place FROM read_csv('data/shops.csv')) AS shops
    ON shops.place = (every.chance // 3) % 4
