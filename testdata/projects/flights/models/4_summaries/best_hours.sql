-- When should I leave, and from which airport, to be least delayed?
-- Mean minutes late at departure, by the hour of the timetable. An airport's figure is left out
-- where fewer than 100 flights a year leave in that hour.
-- @materialize: true
SELECT
    format('{:02d}:00', hour) AS leaving_at,
    round(sum(mean_delay * departed) / sum(departed), 1) AS all_airports,
    round(any_value(mean_delay) FILTER (origin = 'EWR'), 1) AS newark,
    round(any_value(mean_delay) FILTER (origin = 'JFK'), 1) AS kennedy,
    round(any_value(mean_delay) FILTER (origin = 'LGA'), 1) AS la_guardia
FROM delays_by_hour
WHERE scheduled >= 100
GROUP BY hour
ORDER BY hour
