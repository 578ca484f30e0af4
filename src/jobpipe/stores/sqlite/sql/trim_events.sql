DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?
