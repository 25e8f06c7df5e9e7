"""What the API server refuses in the claims of a pod and in persistent volume claims; as `validation` for the pod."""

from __future__ import annotations

import msgspec

from kschedx.api.field_errors import duplicate, forbidden, invalid, not_found, not_supported, quoted, required
from kschedx.api.names import dns_label_errors, dns_subdomain_errors
from kschedx.api.pod_volumes import PersistentVolumeClaimSpec
from kschedx.api.quantity import parse_quantity
from kschedx.api.selector_validation import validate_label_selector
from kschedx.api.types import ContainerClaim, PodResourceClaim
from kschedx.api.validation_parts import Errors, one_of, syntax
from kschedx.errors import InputError, Place

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def validate_claim_spec(spec: PersistentVolumeClaimSpec, field: str) -> Errors:
    """The spec of a PersistentVolumeClaim, defaulted."""
    modes = spec.access_modes
    if not modes:
        yield required(f"{field}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.selector, f"{field}.selector")
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported(f"{field}.accessModes", quoted(mode), ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES[:3] for mode in modes):
        yield forbidden(f"{field}.accessModes", "may not use ReadWriteOncePod with other access modes")
    yield from _storage(spec, f"{field}.resources[storage]")
    if spec.storage_class_name:
        yield from syntax(dns_subdomain_errors, spec.storage_class_name, f"{field}.storageClassName")
    yield from one_of(spec.volume_mode, VOLUME_MODES, f"{field}.volumeMode")


def _storage(spec: PersistentVolumeClaimSpec, field: str) -> Errors:
    written = spec.resources.requests.get("storage")
    if written is None:
        yield required(field, "")
        return
    try:
        quantity = parse_quantity(written)
    except InputError as error:
        yield error.at(Place(field=field))
        return
    if quantity.mantissa <= 0:
        yield invalid(field, quoted(str(quantity)), "must be greater than zero")


def validate_resource_claims(claims: tuple[PodResourceClaim, ...], field: str) -> Errors:
    """spec.resourceClaims of a pod."""
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{field}[{index}]"
        if not claim.name:
            yield required(f"{where}.name", "")
        elif claim.name in seen:
            yield duplicate(f"{where}.name", quoted(claim.name))
        else:
            yield from syntax(dns_label_errors, claim.name, f"{where}.name")
            seen.add(claim.name)
        named, template = claim.resource_claim_name, claim.resource_claim_template_name
        if named is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(where, _internal(claim), detail)
        if named is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(where, _internal(claim), detail)
        if named is not None:
            yield from syntax(dns_subdomain_errors, named, f"{where}.resourceClaimName")
        if template is not None:
            yield from syntax(dns_subdomain_errors, template, f"{where}.resourceClaimTemplateName")


def _internal(claim: PodResourceClaim) -> str:
    """The claim as JSON under the names of the API server's own type."""
    return msgspec.json.encode(
        {
            "Name": claim.name,
            "ResourceClaimName": claim.resource_claim_name,
            "ResourceClaimTemplateName": claim.resource_claim_template_name,
        }
    ).decode()


def validate_used_claims(used: tuple[ContainerClaim, ...], claims: tuple[PodResourceClaim, ...], field: str) -> Errors:
    """resources.claims of a container: of those that the pod has, none twice, and none beside one of its requests."""
    known = sorted({claim.name for claim in claims})
    detail = "must be one of the names in pod.spec.resourceClaims"
    detail += f": {', '.join(known)}" if known else " which is empty"
    seen: set[str] = set()
    for index, claim in enumerate(used):
        where, name = f"{field}[{index}]", claim.name
        if not name:
            yield required(where, "")
            continue
        key = f"{name}/{claim.request}" if claim.request else name
        if name in seen:
            yield duplicate(where, quoted(name))
        else:
            if claim.request:
                yield from syntax(dns_label_errors, claim.request, f"{where}.request")
            if key in seen:
                yield duplicate(where, quoted(key))
            elif not claim.request:
                yield from (duplicate(where, quoted(name)) for other in seen if other.startswith(f"{name}/"))
            seen.add(key)
        if name not in known:
            yield not_found(where, quoted(name), detail)
