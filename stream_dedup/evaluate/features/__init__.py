"""What is kept of a text before it is compared: which words or grams it has, and what each of them weighs.

Knows weights of the literature; knows nothing of similarity.
"""
