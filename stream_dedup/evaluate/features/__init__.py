"""What is extracted from a text for comparison: its words or K-grams, and the weight of each.

Knows the weights of the literature; knows nothing of similarity.
"""
