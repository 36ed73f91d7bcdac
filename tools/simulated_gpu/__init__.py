"""A CUDA device made of the host's memory, on which gpu_tests run where there is no GPU."""
