-- In what weather was each flight meant to leave?
-- Joined by instant, not by the clock on the wall: in the night when summer time ends, one hour
-- comes twice. Flights whose hour nobody measured stay, as 'unknown'.
-- @materialize: true
SELECT
    departures.*,
    coalesce(conditions, 'unknown') AS conditions,
    fahrenheit,
    wind_mph,
    inches_of_rain,
    miles_of_sight
FROM departures
LEFT JOIN hourly_weather USING (origin, weather_hour)
