"""Decide whether an implementation of speculative decoding emits tokens with exactly the law of its target model."""

from specverify.reference_alias import install_reference_finder

install_reference_finder()


def __getattr__(name: str) -> str:
    """Return ``__version__``, looked up on first use: this lookup takes a tenth of the time of a short command.

    Any other ``name`` is an ``AttributeError``.
    """
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("specverify-suite")
    except PackageNotFoundError:  # a checkout on the path, not installed
        return "0.1.0"
