"""The random calls of torch, and tensors whose elements nobody has looked at yet."""

from specverify.intercept.torch import lazy_handlers as lazy_handlers  # tensors know their operations from the first
from specverify.intercept.torch import reshaped as reshaped
