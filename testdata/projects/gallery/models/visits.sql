-- How many came in each day, and in what weather? Nobody came to one of the shops for a week.
-- @materialize: true
SELECT
    DATE '2024-01-01' + CAST(d AS INTEGER) AS day,
    shop,
    CASE (d * 5) % 3 WHEN 0 THEN 'sun' WHEN 1 THEN 'rain' ELSE 'fog' END AS weather,
    seats * 3 + (d * 37 + seats * 11) % 50 AS came,
    (seats * 3 + (d * 37 + seats * 11) % 50) * (40 + (d * 3) % 30) // 100 AS bought,
    5 + (d * 17 + seats) % 20 AS waited
FROM range(120) t(d), read_csv('data/shops.csv')
WHERE NOT (shop = 'Quay' AND d BETWEEN 60 AND 66)
