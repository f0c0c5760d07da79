-- On which days was a journey most likely to be ruined?
-- Ruined means cancelled, or more than an hour late.
SELECT
    day,
    sum(scheduled)::BIGINT AS scheduled,
    round(100.0 * sum(cancelled + over_an_hour_late) / sum(scheduled), 1) AS percent_ruined,
    round(100.0 * sum(cancelled) / sum(scheduled), 1) AS percent_cancelled,
    round(sum(mean_delay * departed) / sum(departed), 1) AS mean_delay
FROM airport_days
GROUP BY day
ORDER BY percent_ruined DESC, day
LIMIT 20
