"""Class N: the drafter's vocabulary is another one."""
