"""What the containers of a pod wait for, and how they ended."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.controllers import states
from kschedx.kube.conditions import condition_of
from kschedx.kube.types import ContainerStatus, Pod
from kschedx.patterns import lazy_pattern

_IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
"""Upstream: pkg/kubelet/images/types.go."""
_CONFIGURATION_REASONS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "RunContainerError",
    }
)
"""Upstream: pkg/kubelet/kuberuntime/kuberuntime_container.go."""
RESTARTING_PROBE = lazy_pattern(r"(?:Liveness|Startup) probe (?:failed|errored)")


def failed_container(pod: Pod) -> str:
    """Return the name of the first container that ended with an error; empty if there is none."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state is not None and status.state.terminated is not None and status.state.terminated.exit_code:
            return status.name
    return ""


def termination(pod: Pod, container: str, *, is_last: bool = False) -> str:
    """Return how a container ended, such as `OOMKilled, exit code 137`; if `is_last`, before it was restarted. Empty if
    it has not ended."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        state = status.last_state if is_last else status.state
        ended = None if state is None else state.terminated
        if status.name == container and ended is not None:
            return ", ".join(filter(None, (ended.reason, f"exit code {ended.exit_code}", ended.message.strip())))
    return ""


def waiting_container(pod: Pod) -> tuple[states.Waits, str, str, str] | None:
    """Return what the pod waits for, with the container, the reason, and the message. Init containers come first."""
    status = pod.status
    for init_container_status in status.init_container_statuses:
        if (waiting := _waiting_reason(init_container_status, is_init=True)) is not None:
            return waiting
    initializing = False
    for container_status in status.container_statuses:
        waiting = _waiting_reason(container_status, is_init=False)
        if waiting is not None and waiting[2] == "PodInitializing":
            initializing = True
        elif waiting is not None:
            return waiting
    if not initializing:
        return None
    state_by_name = {each.name: each.state for each in status.init_container_statuses}
    if all(state is None or state.waiting is not None for state in state_by_name.values()):
        return states.Waits.SANDBOX, next(iter(state_by_name), ""), "PodInitializing", ""  # none has started
    return (states.Waits.INIT, next((it.name for it in status.init_container_statuses if is_running(it)), ""), "", "")


def failing_container(pod: Pod) -> str:
    """Return `container app: CrashLoopBackOff: OOMKilled, exit code 137`; empty if no container waits."""
    if (waiting := waiting_container(pod)) is None or not waiting[2]:
        return ""
    _, name, reason, message = waiting
    return f"container {': '.join(filter(None, (name, reason, termination(pod, name, is_last=True) or message)))}"


def between_restarts(pod: Pod, event: str) -> tuple[states.Waits, str, str, str] | None:
    """Return what a running pod waits for that is not ready, and whose container has ended and is restarted: it has not
    started again, or its kubelet reports that it is about to end."""
    ready = condition_of(pod.status.conditions, "Ready")
    if pod.spec.restart_policy == "Never" or ready is None or ready.status == "True":
        return None
    is_reported = event.startswith("BackOff: ") or RESTARTING_PROBE.search(event)
    for status in pod.status.container_statuses:
        state = status.last_state if is_running(status) and is_reported else status.state
        if state is not None and state.terminated is not None and state.terminated.exit_code:
            return states.Waits.CRASH, status.name, "", ""
    return None


def other_waits(pod: Pod, container: str) -> Iterator[str]:
    """Yield why other containers wait, if one does not start."""
    for status in pod.status.container_statuses if container else ():
        waiting = _waiting_reason(status, is_init=False)
        if (
            waiting is not None
            and status.name != container
            and waiting[2] not in ("ContainerCreating", "PodInitializing")
        ):
            yield f"container {status.name} waits as well: {': '.join(filter(None, waiting[2:]))}"


def volume_without_image(pod: Pod, reports: str) -> str:
    """Return the image volume whose image the kubelet's messages name: its container waits for it as for its own."""
    named = (it.name for it in pod.spec.volumes if it.image is not None and f'"{it.image.reference}"' in reports)
    return next(named, "")


def unhealthy_devices(pod: Pod) -> Iterator[str]:
    """Yield the devices of the pod that their kubelet reports as unhealthy."""
    for status in pod.status.container_statuses:
        for allocated in status.allocated_resources_status:
            for device in allocated.resources:
                if device.health == "Unhealthy":
                    yield f"device {device.resource_id} ({allocated.name}) is unhealthy"


def is_running(status: ContainerStatus) -> bool:
    return status.state is not None and status.state.waiting is None and status.state.terminated is None


def _waiting_reason(status: ContainerStatus, *, is_init: bool) -> tuple[states.Waits, str, str, str] | None:
    state = status.state
    if state is None or state.waiting is None:
        if is_init and state is not None and state.terminated is not None and state.terminated.exit_code:
            ended = state.terminated
            return states.Waits.INIT, status.name, ended.reason or f"exit code {ended.exit_code}", ended.message
        return None
    reason, message = state.waiting.reason, state.waiting.message
    if is_init and reason == "PodInitializing":
        return None
    if reason == "ContainerCreating":
        return states.Waits.SANDBOX, status.name, reason, message
    waits = states.Waits.INIT if is_init else states.Waits.CONTAINER
    if reason in _IMAGE_REASONS:
        waits = states.Waits.IMAGE
    elif reason in _CONFIGURATION_REASONS:
        waits = states.Waits.CONFIGURATION
    elif reason == "CrashLoopBackOff" and not is_init:
        waits = states.Waits.CRASH
    return waits, status.name, reason, message
