select carrier, name, flights, round(mean_departure_delay, 1) as minutes_late
from delays_by_carrier
order by minutes_late desc
limit 10
