"""A simulated CUDA device in host memory, on which ``gpu_tests`` run on machines without a GPU."""
