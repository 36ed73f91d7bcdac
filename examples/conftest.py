"""Leave the long examples to ``--thorough``, an option of this project's tests; in a copy, run them by their names."""

import pytest

LONG = ("huggingface_engine", "numpy_sampler", "rollout", "torch_verifier", "tree_verifier")


def pytest_ignore_collect(collection_path, config: pytest.Config) -> bool | None:
    """Leave the long examples out of a whole run; one that is named is run."""
    long = collection_path.stem.removeprefix("test_") in LONG
    named = any(str(collection_path.name) in argument for argument in config.args)
    return True if long and not named and not config.getoption("--thorough", default=False) else None
