-- Which airlines kept flying?
-- @materialize: true
SELECT
    airlines.name AS airline,
    count(*) AS planned,
    count(*) FILTER (cancelled) AS cancelled,
    round(100.0 * count(*) FILTER (cancelled) / count(*), 1) AS percent_cancelled
FROM departures
JOIN airlines USING (carrier)
GROUP BY airlines.name
ORDER BY percent_cancelled
