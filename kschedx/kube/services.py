"""Services, as far as kschedx reads them: the pods that they select, and the address of their load balancer."""

from __future__ import annotations

from msgspec import Struct

from kschedx.kube.types import KubernetesObject, Labels


class _ServiceSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selector: Labels | None = None
    type: str = "ClusterIP"


class _Ingress(Struct, frozen=True, kw_only=True):
    ip: str = ""
    hostname: str = ""


class _LoadBalancer(Struct, frozen=True, kw_only=True):
    ingress: tuple[_Ingress, ...] = ()


class _ServiceStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    load_balancer: _LoadBalancer = _LoadBalancer()


class Service(KubernetesObject, frozen=True, kw_only=True):
    spec: _ServiceSpec = _ServiceSpec()
    status: _ServiceStatus = _ServiceStatus()

    @property
    def awaits_address(self) -> bool:
        """Whether no controller has given its load balancer an address."""
        return self.spec.type == "LoadBalancer" and not self.status.load_balancer.ingress
