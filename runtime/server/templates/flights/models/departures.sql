-- Which of the planned flights left, and how late?
SELECT
    date,
    hour,
    carrier,
    origin,
    destination,
    distance,
    departure_delay,
    arrival_delay,
    departure_delay IS NULL AS cancelled
FROM flights
