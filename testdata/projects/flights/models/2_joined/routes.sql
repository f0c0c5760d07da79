-- Which routes are there, who flies them, and how long do they take?
SELECT
    origin,
    destination,
    places.place,
    count(*) AS scheduled,
    count(DISTINCT carrier) AS carriers,
    any_value(miles) AS miles,
    round(avg(minutes_in_air)) AS minutes_in_air,
    round(avg(arrival_delay), 1) AS mean_arrival_delay
FROM departures
JOIN places ON places.code = departures.destination
GROUP BY origin, destination, places.place
