"""DynamicResources (pkg/scheduler/framework/plugins/dynamicresources): claims get devices, or have them already.

`plugin` asks `decision` about pods that use devices: that asks `claims` what the pod claims and `allocator` whether a
node can give it. A module per subject below them.
"""

from kschedx.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
