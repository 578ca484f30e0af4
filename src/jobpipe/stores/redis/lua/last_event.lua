come_due()
return tonumber(redis.call('GET', P .. 'event') or 0)
