-- When an aircraft leaves late, is its next flight from the same airport late as well?
-- Only turnarounds of the same day count, and only flights that did leave.
WITH turnarounds AS (
    SELECT
        departure_delay,
        lag(departure_delay) OVER (
            PARTITION BY tail_number, origin, local_time::DATE
            ORDER BY scheduled_at, carrier, flight_number, destination
        ) AS delay_before
    FROM departures
    WHERE outcome <> 'cancelled' AND tail_number IS NOT NULL
)
SELECT
    CASE
        WHEN delay_before <= 0 THEN 'on time'
        WHEN delay_before < 30 THEN 'up to half an hour late'
        WHEN delay_before < 60 THEN 'up to an hour late'
        ELSE 'more than an hour late'
    END AS flight_before,
    count(*) AS turnarounds,
    round(avg(departure_delay), 1) AS mean_delay_after,
    min(delay_before) AS from_minutes
FROM turnarounds
WHERE delay_before IS NOT NULL
GROUP BY flight_before
