"""The random calls of torch, and tensors with symbolic elements."""

from specverify.intercept.torch import filled as filled
from specverify.intercept.torch import handlers as handlers  # tensors have their operations from the first
