"""KubeSchedulerConfiguration: loading a parsed configuration into profiles of a version.

`load_profiles` decodes strictly, sets defaults, validates, and expands MultiPoint as kube-scheduler does at its start.
It refuses what kube-scheduler refuses.
"""

from __future__ import annotations

from kschedx.framework.config.decoding import Extender as Extender
from kschedx.framework.config.decoding import ExtenderManagedResource as ExtenderManagedResource
from kschedx.framework.config.decoding import Profile as Profile
from kschedx.framework.config.decoding import SchedulerConfig as SchedulerConfig
from kschedx.framework.config.loading import load_profiles as load_profiles
