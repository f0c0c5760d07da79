-- Which aircraft flew each flight, and how old was it?
SELECT
    departures.*,
    aircraft.manufacturer,
    aircraft.model,
    aircraft.seats,
    extract(year FROM departures.local_time) - aircraft.built_in AS years_old
FROM departures
LEFT JOIN aircraft USING (tail_number)
