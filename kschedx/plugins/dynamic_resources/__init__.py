"""DynamicResources (pkg/scheduler/framework/plugins/dynamicresources): allocates devices to claims and checks allocated
ones.

`plugin` calls `decision` for pods that use devices. `decision` gets the pod's claims from `claims` and searches devices
with `allocator`. `pools` and `totals` are below them.
"""

from kschedx.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
