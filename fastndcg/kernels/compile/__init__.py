"""How a function is compiled, kept and chosen. The map is in `fastndcg.kernels`."""
