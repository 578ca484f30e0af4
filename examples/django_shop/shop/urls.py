"""The pages of the shop."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from .models import Order
from .tasks import send_receipt


def place(request: HttpRequest, article: str) -> HttpResponse:
    with transaction.atomic():  # the order and its task: both, or neither
        order = Order.objects.create(article=article)
        result = send_receipt.enqueue(order.pk)
        if article == "sold-out":
            transaction.set_rollback(True)
    return JsonResponse({"order": order.pk, "task": result.id}, status=202)


def show(request: HttpRequest, id: str) -> HttpResponse:
    result = send_receipt.get_result(id)
    value = result.return_value if result.is_finished else None
    return JsonResponse({"status": result.status, "value": value})


urlpatterns = [path("orders/<str:article>", place), path("tasks/<str:id>", show)]
