-- How did each day go at each airport?
-- The delay is in minutes, over the flights that did leave.
-- @materialize: true
SELECT
    origin,
    scheduled_at::DATE AS day,
    count(*) AS scheduled,
    count(departure_delay) AS departed,
    count(*) FILTER (outcome = 'cancelled') AS cancelled,
    count(*) FILTER (departure_delay > 60) AS over_an_hour_late,
    avg(departure_delay) AS mean_delay
FROM departures
GROUP BY origin, day
