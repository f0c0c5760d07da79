-- Which airlines keep to their timetable?
-- @materialize: true
SELECT
    airlines.name AS airline,
    carrier,
    count(*) AS scheduled,
    round(avg(arrival_delay), 1) AS mean_arrival_delay,
    round(100.0 * count(*) FILTER (arrival_delay <= 0) / count(arrival_delay), 1) AS percent_on_time,
    round(100.0 * count(*) FILTER (outcome = 'cancelled') / count(*), 2) AS percent_cancelled
FROM departures
JOIN airlines USING (carrier)
GROUP BY airlines.name, carrier
