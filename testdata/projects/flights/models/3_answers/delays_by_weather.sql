-- How much does the weather matter?
SELECT
    conditions,
    count(*) AS scheduled,
    round(avg(departure_delay), 1) AS mean_delay,
    round(100.0 * count(*) FILTER (outcome = 'cancelled') / count(*), 1) AS percent_cancelled
FROM departures_in_weather
GROUP BY conditions
