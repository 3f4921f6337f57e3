"""Tumour and brain masks of a brain MRI: the data set's own, or a network's.

study      one study from its files to mask, JSON and, where it brings none, brain mask
inputs     the four series as networks were trained on them       grid        resampling, orientation
networks   Swin-UNETR and SegResNet: channel order, parameters    checkpoint  weights, checked
inference  sliding window, flips, precision                       brain       deepbet
result     the JSON, and what views take from it
"""
