-- Which routes are flown most, from each airport?
SELECT
    origin,
    rank() OVER (PARTITION BY origin ORDER BY scheduled DESC) AS position,
    destination,
    place,
    scheduled,
    carriers,
    mean_arrival_delay
FROM routes
QUALIFY position <= 10
