-- How do delays grow over the day?
-- The hour is that of the timetable, on the clock in New York.
-- @materialize: true
SELECT
    extract(hour FROM local_time) AS hour,
    origin,
    count(*) AS scheduled,
    count(departure_delay) AS departed,
    avg(departure_delay) AS mean_delay,
    quantile_cont(departure_delay, 0.9) AS delay_of_the_worst_tenth
FROM departures
GROUP BY hour, origin
