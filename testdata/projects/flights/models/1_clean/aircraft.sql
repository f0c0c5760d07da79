-- What is known about each aircraft?
-- The registry has a cruising speed for less than one in a hundred: that column is left out.
SELECT
    tailnum AS tail_number,
    year AS built_in,
    manufacturer,
    model,
    seats,
    engine
FROM planes
