local found = {}
for _, packed in ipairs(redis.call('HVALS', P .. 'workers')) do
  if cmsgpack.unpack(packed)[1] > now then found[#found + 1] = packed end
end
return packed_list(found)
