-- How was the weather, hour by hour, at each airport?
-- One reading says 1,048 miles an hour: anything beyond a hurricane counts as not measured.
WITH readings AS (
    SELECT
        origin,
        time_hour AS weather_hour,
        temp AS fahrenheit,
        CASE WHEN wind_speed < 150 THEN wind_speed END AS wind_mph,
        precip AS inches_of_rain,
        visib AS miles_of_sight
    FROM weather
)
SELECT
    *,
    CASE
        WHEN inches_of_rain > 0 AND fahrenheit <= 32 THEN 'snow or ice'
        WHEN inches_of_rain >= 0.1 THEN 'heavy rain'
        WHEN inches_of_rain > 0 THEN 'light rain'
        WHEN miles_of_sight < 3 THEN 'fog or haze'
        WHEN wind_mph >= 25 THEN 'strong wind'
        ELSE 'fair'
    END AS conditions
FROM readings
