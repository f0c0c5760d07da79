-- Which airline should I choose, all in all?
-- Punctuality counts double, then cancellations, then the age of the fleet. An age is shown only
-- where the aircraft of at least half of the flights are known.
-- For whoever has no SQL at hand, the rows stand in a file, too.
-- @materialize: true
-- @output.connector: local_file
-- @output.path: exports/carrier_scorecard.csv
WITH fleets AS (
    SELECT
        carrier,
        CASE WHEN 2 * count(years_old) >= count(*) THEN round(avg(years_old), 1) END AS mean_years_old
    FROM departures_by_aircraft
    GROUP BY carrier
),
ranks AS (
    SELECT
        airline,
        scheduled,
        percent_on_time,
        percent_cancelled,
        mean_years_old,
        2 * rank() OVER (ORDER BY percent_on_time DESC)
            + rank() OVER (ORDER BY percent_cancelled)
            + rank() OVER (ORDER BY mean_years_old NULLS LAST) AS points
    FROM delays_by_carrier
    LEFT JOIN fleets USING (carrier)
)
SELECT rank() OVER (ORDER BY points) AS position, * EXCLUDE (points)
FROM ranks
ORDER BY position, airline
