-- with names.lua
-- told: the version of the schema that the program knows. Answers that of the store before.
local version = tonumber(redis.call('GET', P .. 'version') or 0)
if version < told then
  if version > 0 and version < 3 then recount() end -- of names, and of queued jobs by queue
  redis.call('SET', P .. 'version', told)
end
return version
