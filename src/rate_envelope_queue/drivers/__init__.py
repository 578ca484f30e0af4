"""What the queues on threads and on asyncio are made of, besides the rules in `core`. None of it is public."""
