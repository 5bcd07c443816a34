"""The studies that several parts come from, as these name them, and the K of the K-gram study.

Knows names and numbers; knows nothing of what the studies describe.
"""

COMPARISON = "comparison for public-opinion data, 2017, doi 10.15888/j.cnki.csa.005745"
KGRAMS = "doi 10.15888/j.cnki.csa.006123"
GRAM_LENGTHS = range(2, 8)  # the values of K that the study compares
