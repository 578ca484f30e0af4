"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    article = models.CharField(max_length=50)
    receipt = models.CharField(max_length=200, default="")
