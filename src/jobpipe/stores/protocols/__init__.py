"""What a store does, a protocol for each noun: jobs, durable state, schedules, transfer, watch; `stores.base` combines them."""
