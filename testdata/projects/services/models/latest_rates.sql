-- @materialize: true
SELECT currency, arg_max(rate, day) AS rate, max(day) AS day
FROM rates_by_day
GROUP BY currency
ORDER BY currency
