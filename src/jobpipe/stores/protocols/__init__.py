"""What a store does, a protocol for each noun: jobs, schedules, transfer, watch; `stores.base` combines them."""
