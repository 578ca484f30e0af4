"""The tests of the shop: `python manage.py test`. Tasks are noted, or called; no worker runs."""

import django
from django.test import TestCase, override_settings

from .models import Order
from .tasks import send_receipt

BACKENDS = "django.tasks.backends" if django.VERSION >= (6, 0) else "django_tasks.backends"
DUMMY = {"default": {"BACKEND": f"{BACKENDS}.dummy.DummyBackend", "QUEUES": ["default", "mail"]}}
IMMEDIATE = {"default": {"BACKEND": f"{BACKENDS}.immediate.ImmediateBackend", "QUEUES": ["default", "mail"]}}


class OrderTests(TestCase):
    @override_settings(TASKS=DUMMY)
    def test_an_order_is_stored_with_its_task(self) -> None:
        answer = self.client.post("/orders/bread", headers={"host": "localhost"})
        order = Order.objects.get()
        self.assertEqual((answer.status_code, answer.json()["order"]), (202, order.pk))
        (result,) = send_receipt.get_backend().results
        self.assertEqual((result.task.func, result.args), (send_receipt.func, [order.pk]))

    @override_settings(TASKS=IMMEDIATE)
    def test_the_receipt_names_the_article(self) -> None:
        order = Order.objects.create(article="bread")
        result = send_receipt.enqueue(order.pk)
        self.assertEqual(result.return_value, f"receipt {order.pk}: bread, attempt 1")
