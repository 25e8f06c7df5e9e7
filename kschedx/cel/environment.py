"""The functions and types that Kubernetes provides to device selectors.

Upstream: apiserver/pkg/cel/environment/base.go and dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from kschedx.cel.functions import Function, single
from kschedx.cel.library import addresses, kubernetes, lists, standard, texts
from kschedx.cel.types import (
    ANY,
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)
from kschedx.cel.values import NO_OVERLOAD, Budget, Fault, Value, equal, is_list
from kschedx.kube.devices import Features

_LONGEST_LIST = 48  # values in all lists of a device (ResourceSliceMaxAttributeValuesPerDevice)


def _includes(budget: Budget, target: Value, item: Value) -> Value:
    if not is_list(target):
        return equal(target, item, budget) is True
    for index, element in enumerate(target):
        if index >= _LONGEST_LIST:
            return Fault(f"'includes' function cannot be applied to lists longer than {_LONGEST_LIST} values")
        if equal(element, item, budget) is True:
            return True
    return False


_INCLUDES = single("includes", "dra_includes_dyn_dyn", "dyn.(dyn) -> bool", _includes)


def _authorizer_functions() -> tuple[Function, ...]:
    """Declared in every environment, although a selector has no authorizer."""
    rows = (
        ("path", "Authorizer.(string) -> PathCheck"),
        ("group", "Authorizer.(string) -> GroupCheck"),
        ("serviceAccount", "Authorizer.(string, string) -> Authorizer"),
        ("resource", "GroupCheck.(string) -> ResourceCheck"),
        ("subresource", "ResourceCheck.(string) -> ResourceCheck"),
        ("namespace", "ResourceCheck.(string) -> ResourceCheck"),
        ("name", "ResourceCheck.(string) -> ResourceCheck"),
        ("fieldSelector", "ResourceCheck.(string) -> ResourceCheck"),
        ("labelSelector", "ResourceCheck.(string) -> ResourceCheck"),
        ("check", "PathCheck.(string) -> Decision"),
        ("check", "ResourceCheck.(string) -> Decision"),
        ("allowed", "Decision.() -> bool"),
        ("reason", "Decision.() -> string"),
        ("errored", "Decision.() -> bool"),
        ("error", "Decision.() -> string"),
    )
    return tuple(
        single(name, f"{signature.partition('.')[0].lower()}_{name}", signature, lambda *_: NO_OVERLOAD)
        for name, signature in rows
    )


TYPES: dict[str, Type] = {
    named_type.name: named_type
    for named_type in (BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, TYPE, UINT, IP, CIDR, ANY)
} | {
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "optional_type": optional_of(DYN),
    "google.protobuf.Value": DYN,
    "google.protobuf.ListValue": list_of(DYN),
    "google.protobuf.Struct": map_of(STRING, DYN),
}


class Environment:
    def __init__(self, features: Features) -> None:
        attribute = DYN if features.list_attributes else ANY
        self.device_fields = {
            "driver": STRING,
            "attributes": map_of(STRING, map_of(STRING, attribute)),
            "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
        }
        if features.multiple_allocations:
            self.device_fields["allowMultipleAllocations"] = BOOL
        self._features = features

    @cached_property
    def functions(self) -> dict[str, Function]:
        """By name, the overloads of all libraries."""
        functions_by_name: dict[str, Function] = {}
        own = (_INCLUDES,) if self._features.includes else ()
        for function in (
            *standard.STANDARD_FUNCTIONS,
            *lists.LIST_FUNCTIONS,
            *kubernetes.KUBERNETES_FUNCTIONS,
            *addresses.ADDRESS_FUNCTIONS,
            *texts.TEXT_FUNCTIONS,
            *_authorizer_functions(),
            *own,
        ):
            known = functions_by_name.get(function.name)
            if known is not None:
                function = Function(
                    name=function.name,
                    overloads=(*known.overloads, *function.overloads),
                    run=known.run or function.run,
                    takes=known.takes or function.takes,
                    checks_its_arguments=known.checks_its_arguments or function.checks_its_arguments,
                )
            functions_by_name[function.name] = function
        return functions_by_name


@lru_cache(maxsize=8)
def environment(features: Features) -> Environment:
    return Environment(features)
