-- What did the blizzard of 8 February do to each airport, and what was the weather like?
-- @materialize: true
SELECT
    departures.date,
    departures.origin,
    count(*) AS planned,
    count(*) FILTER (cancelled) AS cancelled,
    round(100.0 * count(*) FILTER (cancelled) / count(*), 1) AS percent_cancelled,
    round(avg(departure_delay), 1) AS mean_delay_minutes,
    any_value(wind_mph) AS wind_mph,
    any_value(visibility_miles) AS visibility_miles
FROM departures
LEFT JOIN weather USING (date, origin)
GROUP BY departures.date, departures.origin
ORDER BY departures.date, departures.origin
