"""Host ports on a node, and which of a pod's is taken. Upstream: pkg/scheduling/hostportusage.go."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

from kschedx.api.types import Pod


class HostPort(Struct, frozen=True):
    ip: str
    port: int
    protocol: str

    def facts(self, whose: str) -> Iterator[str]:
        """As serrors sorts them."""
        address = _address(self.ip)
        yield f"{whose}-hostport-ip={'<nil>' if address is None else address}"
        yield f"{whose}-hostport-port={self.port}"
        yield f"{whose}-hostport-protocol={self.protocol}"

    def is_same(self, other: HostPort) -> bool:
        """An address that stands for all meets every other one."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        mine, theirs = _address(self.ip), _address(other.ip)
        return mine == theirs or any(one is not None and one.is_unspecified for one in (mine, theirs))


def _address(ip: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(ip)
    except ValueError:
        return None


def ports_of(pod: Pod) -> tuple[HostPort, ...]:
    """Of its containers; init containers have none for Karpenter."""
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.host_port, port.protocol or "TCP")
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    )


class PortUsage:
    """The ports of a node, by the pod that has them."""

    def __init__(self, taken: dict[str, tuple[HostPort, ...]] | None = None) -> None:
        self._taken = dict(taken or {})

    def copy(self) -> PortUsage:
        return PortUsage(self._taken)

    def add(self, pod: Pod) -> None:
        self._taken[pod.key] = ports_of(pod)

    def conflict(self, pod: Pod) -> tuple[HostPort, HostPort, str] | None:
        """A port that the pod asks for, the one that is in its way, and whose that is."""
        for asked in ports_of(pod):
            for key, ports in self._taken.items():
                for one in ports:
                    if key != pod.key and asked.is_same(one):
                        return asked, one, key
        return None
