SELECT queue, type, status, count, total FROM jobpipe.counted
