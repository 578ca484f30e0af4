"""What the shop does after the answer."""

from typing import Any

from jobpipe.integrations.django import task_options

from .models import Order

try:
    from django.tasks import task
except ImportError:  # Django before 6.0
    from django_tasks import task


@task(queue_name="mail", takes_context=True)
@task_options(max_retries=5, unique=lambda number: f"receipt-{number}")
def send_receipt(context: Any, number: int) -> str:
    """Safe to run twice: the receipt of an order is always the same."""
    order = Order.objects.get(pk=number)
    order.receipt = f"receipt {number}: {order.article}"
    order.save()
    return f"{order.receipt}, attempt {context.attempt}"


@task()
async def count_orders() -> int:
    return await Order.objects.acount()
