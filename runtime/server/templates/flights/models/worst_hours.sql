-- When was it worst? Hours of each day by the share of late flights among those that left.
SELECT
    departures.date,
    departures.hour,
    count(*) AS planned,
    count(late_flights.date) AS late
FROM departures
LEFT JOIN late_flights USING (date, hour, carrier, origin, destination, departure_delay)
GROUP BY departures.date, departures.hour
ORDER BY late DESC
