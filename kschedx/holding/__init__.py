"""Who holds a pod before kube-scheduler sees it, or takes it in its place: what their objects say, as facts.

`kueue` follows a pod to its Workload and the quota that it waits for, `gates` says whose a scheduling gate is,
`schedulers` knows other schedulers, `groups` the pod groups of Kubernetes itself. `find_holding` asks all of them.
"""

from kschedx.holding.find import find_holding
from kschedx.holding.model import Holding

__all__ = ["Holding", "find_holding"]
