-- The four days in one table.
-- @materialize: true
SELECT
    date,
    sum(planned)::INTEGER AS planned,
    sum(cancelled)::INTEGER AS cancelled,
    round(100.0 * sum(cancelled) / sum(planned), 1) AS percent_cancelled,
    max(wind_mph) AS strongest_wind_mph
FROM days
GROUP BY date
ORDER BY date
