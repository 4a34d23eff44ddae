"""Benchmarks against the roofline and other tools. README.md in this folder describes the method."""
