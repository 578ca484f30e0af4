-- told: the name.
return redis.call('HDEL', P .. 'schedules', told)
