DELETE FROM jobpipe.events WHERE number <= (SELECT max(number) FROM jobpipe.events) - %(kept)s
