-- When was it worst? Hours of each day, those with the most late flights first.
WITH planned AS (
    SELECT date, hour, count(*) AS planned FROM departures GROUP BY date, hour
),
late AS (
    SELECT date, hour, count(*) AS late FROM late_flights GROUP BY date, hour
)
SELECT date, hour, planned, coalesce(late, 0) AS late
FROM planned
LEFT JOIN late USING (date, hour)
ORDER BY late DESC, date, hour
