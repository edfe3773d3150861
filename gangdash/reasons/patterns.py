"""Upstream texts by meaning, as regular expressions: KAI's own first, kube-scheduler's beside them.

Versions differ in numbers, order and punctuation, so patterns take the words that carry the meaning.
"""

from __future__ import annotations

NOT_PLACED = (
    r"no nodes with enough resources were found|Resources were (not )?found for|Unable to schedule",
    r"\d+/\d+ nodes are available",
)
"""True beside almost any cause of not being placed."""
GPUS = (r"didn't have enough resources?: GPUs", r"Insufficient (nvidia|amd)\.com/gpu")
AMOUNTS = (
    r"didn't have enough resources?: (?!GPUs|GPU memory)",
    r"Not enough resources due to pod overhead",
    r"Insufficient (?!nvidia\.com/gpu|amd\.com/gpu)\S+",
)
DOMAINS = (
    r"node-group.*can allocate only",
    r"node-group\(s\) didn't have enough",
    r"couldn't be satisfied for job",
    r"not enough resources in .* to allocate the job",
)
LARGEST_NODE = (r"No node in the .*node-pool has", r"MaxNodePoolResources")
TAINTS = (r"had untolerated taint",)
SELECTORS = (r"didn't match Pod's node affinity/selector", r"didn't match node selector")
NOT_READY_GANG = (r"(Job is not ready for scheduling|Waiting for \d+ pods)",)
BINDING = (r"Failed to bind pod", r"BindingError")
