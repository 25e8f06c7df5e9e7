"""Which checks a level of the Pod Security Standards has in each release, and what they come to.

Upstream: policy/registry.go and policy/checks.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kschedx.api.pod_security import checks
from kschedx.api.pod_security.checks import Edition, Rule, Violation
from kschedx.api.pod_security.judged import Judged
from kschedx.api.pod_security.policy import Level, LevelVersion


class Check(Struct, frozen=True, kw_only=True):
    name: str
    rule: Rule
    level: Level = Level.BASELINE
    since: int = 0
    """The release of Kubernetes 1 that has it first."""
    overrides: str = ""
    """The check of baseline in whose place it is made."""


_CHECKS = (
    Check(name="appArmorProfile", rule=checks.app_armor),
    Check(name="capabilities_baseline", rule=checks.baseline_capabilities),
    Check(name="hostNamespaces", rule=checks.host_namespaces),
    Check(name="hostPathVolumes", rule=checks.host_path_volumes),
    Check(name="hostPorts", rule=checks.host_ports),
    Check(name="hostProbesAndHostLifecycle", rule=checks.hosts_of_probes, since=34),
    Check(name="privileged", rule=checks.privileged),
    Check(name="procMount", rule=checks.baseline_proc_mount),
    Check(name="seLinuxOptions", rule=checks.se_linux),
    Check(name="seccompProfile_baseline", rule=checks.baseline_seccomp),
    Check(name="sysctls", rule=checks.sysctls),
    Check(name="windowsHostProcess", rule=checks.windows_host_process),
    Check(name="allowPrivilegeEscalation", rule=checks.allow_privilege_escalation, level=Level.RESTRICTED, since=8),
    Check(
        name="capabilities_restricted",
        rule=checks.restricted_capabilities,
        level=Level.RESTRICTED,
        since=22,
        overrides="capabilities_baseline",
    ),
    Check(
        name="procMount_restricted",
        rule=checks.proc_mount,
        level=Level.RESTRICTED,
        since=35,
        overrides="procMount",
    ),
    Check(
        name="restrictedVolumes",
        rule=checks.restricted_volumes,
        level=Level.RESTRICTED,
        overrides="hostPathVolumes",
    ),
    Check(name="runAsNonRoot", rule=checks.run_as_non_root, level=Level.RESTRICTED),
    Check(name="runAsUser", rule=checks.run_as_user, level=Level.RESTRICTED, since=23),
    Check(
        name="seccompProfile_restricted",
        rule=checks.restricted_seccomp,
        level=Level.RESTRICTED,
        since=19,
        overrides="seccompProfile_baseline",
    ),
)
"""In the order in which they are told: baseline first, each level by name."""


class Standards(Struct, frozen=True, kw_only=True):
    """What an API server knows of the standards."""

    minor: int
    """Its release of Kubernetes 1."""
    relaxes_own_users: bool = False
    """UserNamespacesPodSecurityStandards."""

    def edition(self, wanted: LevelVersion) -> Edition:
        """A version that is newer than the API server counts as its own."""
        minor = self.minor if wanted.minor is None else min(wanted.minor, self.minor)
        return Edition(minor=minor, relaxes_own_users=self.relaxes_own_users)


def violations(pod: Judged, wanted: LevelVersion, standards: Standards) -> tuple[Violation, ...]:
    """What a level forbids of a pod, in the order in which it is told."""
    edition = standards.edition(wanted)
    found = (check.rule(pod, edition) for check in _checks(wanted.level, edition.minor))
    return tuple(one for one in found if one is not None)


def told(found: tuple[Violation, ...]) -> str:
    return ", ".join(map(str, found))


def _checks(level: Level, minor: int) -> Iterator[Check]:
    made = [check for check in _CHECKS if check.level <= level and check.since <= minor]
    overridden = {check.overrides for check in made}
    return (check for check in made if check.name not in overridden)
