-- Are old aircraft late more often?
-- Aircraft that the registry does not know have no age: they are one group of their own.
SELECT
    CASE
        WHEN years_old IS NULL THEN 'unknown'
        WHEN years_old < 5 THEN 'under 5'
        WHEN years_old < 10 THEN '5 to 9'
        WHEN years_old < 15 THEN '10 to 14'
        WHEN years_old < 25 THEN '15 to 24'
        ELSE '25 and over'
    END AS age_group,
    min(years_old) AS youngest,
    count(DISTINCT tail_number) AS aircraft,
    count(*) AS scheduled,
    round(avg(departure_delay), 1) AS mean_delay,
    round(avg(arrival_delay), 1) AS mean_arrival_delay
FROM departures_by_aircraft
WHERE tail_number IS NOT NULL
GROUP BY age_group
