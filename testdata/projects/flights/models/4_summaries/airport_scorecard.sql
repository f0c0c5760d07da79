-- Which of the three airports is best?
WITH years AS (
    SELECT
        origin,
        sum(scheduled)::BIGINT AS scheduled,
        round(100.0 * sum(cancelled) / sum(scheduled), 2) AS percent_cancelled,
        round(sum(mean_delay * departed) / sum(departed), 1) AS mean_delay,
        count(*) FILTER (mean_delay > 45) AS bad_days
    FROM airport_days
    GROUP BY origin
)
SELECT
    places.place AS airport,
    years.* EXCLUDE (origin),
    (
        SELECT first(destination ORDER BY position)
        FROM busiest_routes
        WHERE busiest_routes.origin = years.origin
    ) AS busiest_destination
FROM years
JOIN places ON places.code = years.origin
ORDER BY mean_delay
