-- What are the answers, in one table?
SELECT 'flights scheduled' AS fact, count(*)::VARCHAR AS value FROM departures
UNION ALL
SELECT 'most punctual airline', first(airline ORDER BY percent_on_time DESC) FROM delays_by_carrier
UNION ALL
SELECT 'best hour to leave', first(leaving_at ORDER BY all_airports) FROM best_hours
UNION ALL
SELECT 'worst hour to leave', first(leaving_at ORDER BY all_airports DESC) FROM best_hours
UNION ALL
SELECT 'worst weather', first(conditions ORDER BY mean_delay DESC) FROM delays_by_weather
UNION ALL
SELECT 'worst day', first(day ORDER BY percent_ruined DESC)::VARCHAR FROM worst_days
UNION ALL
SELECT 'busiest route', first(origin || ' to ' || destination ORDER BY scheduled DESC)
FROM busiest_routes
UNION ALL
SELECT 'mean delay after a very late flight',
    first(mean_delay_after ORDER BY from_minutes DESC) || ' minutes'
FROM delay_spillover
