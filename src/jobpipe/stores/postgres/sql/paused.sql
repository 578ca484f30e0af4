SELECT queue FROM jobpipe.paused
