come_due()
return {
  redis.call('HGETALL', P .. 'counts'), redis.call('HGETALL', P .. 'totals'), redis.call('SMEMBERS', P .. 'paused'),
}
