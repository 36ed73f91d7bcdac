"""specverify decides whether an implementation of speculative decoding emits exactly what its target would have."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("specverify-suite")
except PackageNotFoundError:  # a checkout on the path, not installed
    __version__ = "0.1.0"
