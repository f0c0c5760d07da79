-- Which flights were scheduled, and what became of them?
-- One row per scheduled departure: `scheduled_at` is an instant, `local_time` what clocks in New York showed.
-- Delays are in minutes, negative when early. A flight without a departure time never left; one that left and
-- has no arrival delay ended at another airport.
-- @materialize: true
SELECT
    carrier,
    flight AS flight_number,
    tailnum AS tail_number,
    origin,
    dest AS destination,
    distance AS miles,
    time_hour + to_minutes(minute) AS scheduled_at,
    make_timestamp(year, month, day, hour, minute, 0) AS local_time,
    time_hour AS weather_hour,
    CASE
        WHEN dep_time IS NULL THEN 'cancelled'
        WHEN arr_delay IS NULL THEN 'diverted'
        ELSE 'arrived'
    END AS outcome,
    dep_delay AS departure_delay,
    arr_delay AS arrival_delay,
    air_time AS minutes_in_air
FROM flights
