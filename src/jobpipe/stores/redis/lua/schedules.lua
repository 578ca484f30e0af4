come_due()
return { string.format('%.17g', now), packed_list(redis.call('HVALS', P .. 'schedules')) }
