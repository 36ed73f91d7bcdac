"""Intercept the random calls of torch, and compute with tensors that have symbolic elements."""

from specverify.intercept.torch import filled as filled
from specverify.intercept.torch import handlers as handlers  # tensors have their operations from the first
