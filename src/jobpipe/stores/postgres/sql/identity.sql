SELECT store::text FROM jobpipe.identity
