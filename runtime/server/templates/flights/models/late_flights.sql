-- Which flights left later than a traveller forgives? A template: the limit is a variable of the project.
SELECT date, hour, carrier, origin, destination, departure_delay
FROM {{ ref "departures" }}
WHERE departure_delay > {{ .env.late_minutes }}
