"""Class E: NaN, zero mass, rounding and temperatures near 0."""
