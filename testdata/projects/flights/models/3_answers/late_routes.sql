-- Which busy routes are late most often?
-- What counts as late and as busy are variables: `late_minutes` stands in watershed.yaml,
-- `busy_route_flights` there and in .env, which wins. Try `--env late_minutes=60`.
SELECT
    origin,
    destination,
    count(*) AS arrivals,
    round(
        100.0 * count(*) FILTER (arrival_delay > {{ .env.late_minutes }}) / count(*), 1
    ) AS percent_late
FROM {{ ref "departures" }}
WHERE outcome = 'arrived'
GROUP BY origin, destination
HAVING count(*) >= {{ .env.busy_route_flights }}
