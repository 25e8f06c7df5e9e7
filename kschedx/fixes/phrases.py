"""Phrases in the titles of fixes, and advice for messages of kubelets and storage drivers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kschedx.explain.advice import Advice, FixGroup
from kschedx.findings import RequirementMatch
from kschedx.kube.autoscalers import DO_NOT_DISRUPT, Machine
from kschedx.kube.escaping import add_cluster_options, shell_command
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.patterns import lazy_pattern
from kschedx.wording import list_names

_MOST_BUDGETS = 3


def requirement_text(match: RequirementMatch) -> str:
    """Return a requirement as text: `disk=ssd`, `zone in (a, b)`, `gpu exists`."""
    values = ", ".join(match.values)
    match match.operator:
        case "=" | "==":
            return f"{match.key}={values}"
        case "In":
            return f"{match.key}={values}" if len(match.values) == 1 else f"{match.key} in ({values})"
        case "NotIn":
            return f"{match.key} not in ({values})"
        case "Exists":
            return f"{match.key} exists"
        case "DoesNotExist":
            return f"{match.key} does not exist"
        case operator:
            return f"{match.key} {'>' if operator == 'Gt' else '<'} {values}"


def resource_name(resource: str) -> str:
    return "CPU" if resource == "cpu" else resource


def amount_text(resource: str, amount: int) -> str:
    """Return an amount as text: `500m CPU`, `2Gi memory`."""
    return f"{format_quantity(amount, Unit.of(resource))} {resource_name(resource)}"


def budgets_by_drain(node: str, budgets: Sequence[str]) -> Advice:
    """Return the fix for PodDisruptionBudgets that keep a node from being emptied."""
    title = f"let PDB {list_names(budgets, _MOST_BUDGETS)} allow a disruption: a drain shows how"
    command = add_cluster_options(shell_command("kschedx drain {}", node))
    return Advice(title=title, commands=(command,), group=FixGroup.CLUSTER)


def unguard_pod(key: str) -> Advice:
    """Return the fix for the annotation with which a pod keeps its node from Karpenter."""
    namespace, _, name = key.partition("/")
    title = f"remove {DO_NOT_DISRUPT} from {key} and its template, or wait until it ends"
    command = shell_command(f"kubectl annotate pod {{}} -n {{}} {DO_NOT_DISRUPT}-", name, namespace)
    return Advice(title=title, commands=(command,), group=FixGroup.WORKLOAD)


def open_pool_budget(pool: str, place: int) -> Advice:
    """Return the fix for a disruption budget of a NodePool that is 0: it allows one node, the simplest number that is
    not a share of an unknown size."""
    patch = [{"op": "replace", "path": f"/spec/disruption/budgets/{place}/nodes", "value": "1"}]
    title = f"allow 1 node in disruption budget {place + 1} of NodePool {pool}"
    command = shell_command("kubectl patch nodepool {} --type json -p {}", pool, patch)
    return Advice(title=title, commands=(command,), group=FixGroup.CLUSTER)


def join_phrases(parts: Iterable[str]) -> str:
    """Return a list as text: `a`, `a and b`, `a, b, and c`."""
    *first, last = parts
    return last if not first else f"{first[0]} and {last}" if len(first) == 1 else f"{', '.join(first)}, and {last}"


def join_names(names: list[str], most: int) -> str:
    """Return all names as text, or the first `most` and the number of the others."""
    more = len(names) - most
    return join_phrases([*names[:most], f"{more:,} more"] if more > 0 else names)


PULLS = (
    (r"pull policy of Never", "load {image} onto {node}, or set imagePullPolicy: IfNotPresent"),
    (r"toomanyrequests|rate limit", "wait, or pull {image} with credentials: its registry limits pulls"),
    (r"retrieve some image pull secrets", "create the Secret that imagePullSecrets of the pod names, in its namespace"),
    (r"may require", "correct the image {image}, or give the pod an imagePullSecret that may pull it"),
    (
        r"unauthorized|authoriz|authenticat|basic auth|denied|forbidden|\b40[13]\b",
        "give the pod an imagePullSecret for {image}",
    ),
    (r"not found|manifest unknown|does not exist|parse|invalid reference", "correct the image {image}"),
    (r"[Ss]ignature", "sign the image {image}, or change the policy of {node} that requires a signature"),
    (r"media type", "push {image} again in a format that the container runtime of {node} supports"),
    (r"no space left", "free disk space on {node}"),
    (r"HTTP response to HTTPS client", "let the registry of {image} serve HTTPS, or let {node} use HTTP for it"),
    (r"x509|certificate", "let {node} trust the certificate of the registry of {image}, or replace that"),
    (r"timeout|no such host|connection refused|dial tcp", "let {node} reach the registry of {image}"),
)
"""Patterns of the messages of a failed image pull, and the advice for each."""
NO_DRIVER = lazy_pattern(
    r"driver name (?P<name>\S+) not found in|CSINode \S+ does not contain driver (?P<unlisted>\S+)"
)
STARTS = (
    (r"^Pulling ", "wait until {node} has pulled the image, or use a smaller one"),
    (r"PostStartHook", "correct the postStart hook of the container, or what it needs"),
    (r"memory limit too low", "raise limits.memory of the container: it is too low for the container to start"),
    (r"chdir to cwd", "correct workingDir of the container, or let its user enter that directory"),
    (r"unable to find (?:user|group)", "set runAsUser and runAsGroup to numbers, or use an image that has the name"),
    (r"to rootfs at|mount a directory onto a file",
     "correct mountPath or subPath of the container: it mounts a file over a directory, or the other way round"),
    (r"nvidia-container-cli|nvml error|libnvidia", "repair the GPU driver and its container toolkit on {node}"),
    (r"cgroup configuration", "repair the container runtime of {node}: it cannot set up the container's cgroup"),
    (r"seccomp profile", "put the seccomp profile on {node}, or name another one in the pod"),
    (r"[Aa]pp[Aa]rmor profile", "load the AppArmor profile on {node}, or name another one in the pod"),
    (r"secrets store objects", "correct the SecretProviderClass or what its provider may read, or repair the provider"),
    (r"address already in use", "stop the process that uses the host port on {node}, or use another port"),
    (r"executable file not found|exec: .*no such file or directory|permission denied: unknown",
     "correct the command of the container, or use an image that has it"),
    (r"not found in the list of registered CSI drivers|CSINode \S+ does not contain driver",
     "run the node plugin of {driver} on {node}, where it is not registered{agents}"),
    (r"too many open files|resource temporarily unavailable|cannot allocate memory",
     "free processes, open files, or memory on {node}, or raise its limits on them"),
    (r"object \S+ not registered|fetch token: pod",
     "delete the pod and create it again if this lasts: its kubelet lost track of it"),
    (r"prepare subPath", "create the path of subPath in the volume, or correct it in the pod"),
    (r"sandbox image", "let {node} pull the sandbox image, or name another one in its container runtime"),
    (r"is reserved for \"", "wait, or restart the container runtime of {node}, where an earlier attempt still runs"),
    (r"failed to assign an IP address|no (?:more )?(?:available )?(?:IPs?|ip)\b|not enough IPs|IPAMError",
     "give {node} more pod IP addresses: a larger subnet or range, or fewer pods"),
    (r"cni plugin not initialized|cni config uninitialized|no networks found|failed to find plugin",
     "install or repair the CNI plugin on {node}{agents}"),
    (r"VF pci addr is required", "request the resource that the NetworkAttachmentDefinition names (resourceName)"),
    (r"branch ENI", "delete the pod, and see that the VPC resource controller may patch pods and has branch ENIs left"),
    (r"plugin type=|[Cc][Nn][Ii]|network: |setup network", "repair the CNI plugin on {node}{agents}"),
    (r"support user namespaces|user namespaces? (?:is|are) not supported|idmap(?:ped)? mounts?",
     "run the pod on a node whose container runtime and kernel support user namespaces, or set hostUsers: true"),
    (r"runtime handler|no runtime for",
     "install the runtime of {runtime} on {node}, or let its scheduling.nodeSelector select nodes that have it"),
    (r"[Mm]ax\w* (?:number|count) of (?:\w+ ){0,2}(?:volumes|disks)|AttachmentLimitExceeded|attachment limit exceeded",
     "cordon {node} and delete the pod: as many volumes are attached there as can be"),
    (r"already mounted|device or resource busy|target is busy", "unmount the volume where another process has it"),
    (r"UnauthorizedOperation|AuthorizationFailed|not authorized to perform",
     "give the storage driver the permission that its cloud refuses"),
    (r"access denied by server|Permission denied|permission denied|not authorized|AccessDenied",
     "let {node} access the volume: the storage system refuses it"),
    (r"volume \S+ not scheduled|[Rr]eplica [Ss]cheduling",
     "let Longhorn place the replicas of the volume: add nodes or disk space, or lower its numberOfReplicas"),
    (r"not ready for workloads|operation with the given Volume ID",
     "find out from the storage driver why the volume is not ready, or what its earlier operation waits for"),
    (r"NodeExpandVolume|expanding volume", "find out from the storage driver why it cannot expand the volume"),
    (r"[Ff]ailed to resolve|no such host", "let {node} resolve the name of the storage system, or correct the name"),
    (r"wrong fs type|can't read superblock|fsck", "repair the file system of the volume"),
    (r"/sbin/mount\.<type> helper|unknown filesystem type",
     "install the mount helper of the volume's file system on {node}, such as nfs-common"),
    (r'path "[^"]+" does not exist', "create the path of the volume on {node}, or run the pod on the node that has it"),
    (r"NotFound desc|Volume\.NotFound|[Vv]olume (?:\S+ )?(?:was |does )?not (?:found|exist)",
     "restore the volume in the storage system, or delete and recreate its claim, without the data"),
    (r"NodePrepareResources|[Pp]repare dynamic resources",
     "repair the node plugin of the device driver on {node}{agents}"),
    (r"conflicting SELinux labels",
     "give all pods of the volume the same seLinuxOptions, or set seLinuxChangePolicy: Recursive in them"),
    (r"PodCertificateRequest", "let its signer issue the PodCertificateRequest, or correct signerName in the pod"),
    (r"[Cc]luster[Tt]rust[Bb]undle", "create the ClusterTrustBundle, or make it optional in the pod's volume"),
    (r"hostPath type check failed", "create on {node} what the hostPath names, or set its type to one that creates it"),
    (r"runAsNonRoot", "set runAsUser to a user other than 0, or use an image that does not run as root"),
    (r"couldn't find key \S+ in|non-existent config key",
     "add the key to the ConfigMap or Secret, or correct its name in the pod"),
    (r"timed out|timeout|[Cc]onnection refused|no route to host|DeadlineExceeded",
     "let {node} reach the storage system, and repair {driver} if it is not running there"),
    (r"(?:Attach|Mount|Map)Volume\.", "find out from the storage driver why it cannot attach or mount the volume"),
)  # fmt: skip
"""Patterns of the kubelet's messages about starting containers, volumes, and networks, and the advice for each."""
_CURES = (
    (r"^UnexpectedAdmissionError .*maximum request size for shared resources is 1\b",
     "request one shared device in each container: {node} gives a container no more"),
    (r"^UnexpectedAdmissionError .*requested number of devices unavailable",
     "restart the kubelet of {node}, which has fewer devices left than reported"),
    (r"^UnexpectedAdmissionError .*not enough cpus", "free exclusive CPUs on {node}, whose kubelet pins them to pods"),
    (r"^UnexpectedAdmissionError .*\[memorymanager\]",
     "free memory in a NUMA node of {node}, whose kubelet pins it to pods"),
    (r"^UnexpectedAdmissionError", "repair the device plugin on {node}"),
    (r"^TopologyAffinityError", "make room in one NUMA node of {node}, or relax its topology policy"),
    (r"^SMTAlignmentError .*not multiple",
     "request a multiple of the CPUs of a core: the CPU manager of {node} divides none"),
    (r"^SMTAlignmentError", "request whole cores, or free some on {node}: its CPU manager divides none"),
    (r"^ResourceReservationTimeout",
     "make room for all placeholders of the gang, raise placeholderTimeoutInSeconds, or use gangSchedulingStyle=Soft"),
    (r"^Evicted .*DiskPressure", "free disk space on {node}"),
    (r"^Evicted .*MemoryPressure", "free memory on {node}"),
    (r"^Evicted .*(?:PIDPressure|resource: pids)", "free process IDs on {node}"),
    (r"^Evicted .*(?:exceeds the total limit of containers|exceeded its local ephemeral storage limit)",
     "raise limits.ephemeral-storage to what the pod writes, or mount a volume for it"),
    (r"^Evicted .*[Uu]sage of EmptyDir volume", "raise sizeLimit of the emptyDir volume, or write less to it"),
    (r"^Evicted .*(?:ephemeral|disk)", "free disk space on {node}, or request and limit ephemeral-storage"),
    (r"^Evicted .*memory", "raise requests.memory to what the pod uses, or free memory on {node}"),
    (r"^DeadlineExceeded", "raise activeDeadlineSeconds, or make the work faster"),
    (r"^VolumeAttachmentLimitExceeded",
     "set nodeAllocatableUpdatePeriodSeconds of its CSIDriver: more volumes are attached to {node} than CSINode says"),
    (r"^AppArmor", "load the AppArmor profile on {node}, or name another one in the pod"),
    (r"^SysctlForbidden", "allow the sysctl on {node} (kubelet's allowedUnsafeSysctls), or remove it from the pod"),
    (r"^PodOSNotSupported", "run the pod on nodes of its spec.os: select kubernetes.io/os"),
    (r"^(?:InitContainerRestartPolicyForbidden|PodLevelResourcesNotSupported|PodFeatureUnsupported)",
     "upgrade the kubelet of {node}, which is too old for the pod, or select newer nodes"),
)  # fmt: skip
"""Patterns of a kubelet's reasons for failing a pod, and what lets the next one run."""
RECREATED = (
    (r"^(?:NodeShutdown|Terminated|Shutdown)", "delete the pod and create it again: {node} was shut down"),
    (r"^Preempt", "delete the pod and create it again, with a higher priority than the pods that preempt it"),
    (r"^(?:DeletionBy|EvictionBy|TerminationBy)", "delete the pod and create it again: it was evicted"),
    (r"^TaintToleration", "delete the pod and create it again, without nodeName or with a toleration for {node}"),
    (r"^(?:NodeAffinity|MatchNodeSelector|OutOf\S+|NodeName|NodePorts)",
     "delete the pod and create it again, without nodeName if it sets it: the kubelet of {node} refuses it"),
)  # fmt: skip
"""Patterns of reasons for which the same node or pod need not change; a controller of the pod creates another pod."""
FAILURES = (*_CURES, *RECREATED)
REJECTIONS = (
    (r"^OutOf", "free resources on {node}, or cordon it: its kubelet counts more in use than kube-scheduler"),
    (
        r"^UnexpectedAdmissionError .*requested number of devices unavailable",
        "restart the kubelet of {node}, which has fewer devices left than reported; cordon it until then",
    ),
    (
        r"^UnexpectedAdmissionError (?!.*(?:maximum request size|not enough cpus|memorymanager))",
        "repair the device plugin on {node}; cordon it until then",
    ),
    *_CURES,
)
"""Patterns of a kubelet's reasons for failing every pod of a workload, and the advice for each."""
OF_JOBS = (
    (r"^(?:Termination\w+|Terminated|NodeShutdown|Shutdown)",
     "let podFailurePolicy ignore condition DisruptionTarget, or raise backoffLimit: nodes were shut down"),
    (r"^(?:Preempt|Eviction|Deletion)\w+",
     "let podFailurePolicy ignore condition DisruptionTarget, or raise the Job's priority"),
    ("OOMKilled", "raise limits.memory in its pod template: its containers were OOMKilled"),
    *REJECTIONS,
)  # fmt: skip
"""Patterns of how most pods of a failed Job ended, and the advice for each; the logs of these pods show nothing."""

REFUSALS = (
    (
        "node label selector",
        "keep nodeSelector within what annotation scheduler.alpha.kubernetes.io/node-selector of the namespace allows",
    ),
    (
        "status unknown for quota",
        "wait until kube-controller-manager has counted the quota's usage, or see whether it runs",
    ),
    ("blockOwnerDeletion", "allow the service account of the controller to update finalizers of the owner"),
    (
        "value of priority|value of PreemptionPolicy|Pod's Overhead",
        "remove the field from the pod template, or from the webhook that sets it",
    ),
    (
        r'pods "\S+" already exists',
        "delete the pod of that name, which has another owner or none, or wait until it is gone",
    ),
    ("image policy webhook", "use images that the backend of the image policy webhook allows"),
    ("database space exceeded", "compact and defragment etcd, then disarm its alarm (etcdctl alarm disarm)"),
    (
        r"etcdserver|in the time allotted|request did not complete",
        "repair the API server and etcd, which do not answer in time",
    ),
    (r"User \S+ cannot create", "restore the ClusterRoleBinding of the controller that the message names"),
)
"""Patterns of refusals whose rule is not in a dump, and the advice for each."""


def advice_for(known: Iterable[tuple[str, str]], failure: str) -> str:
    """Return the advice of the first pattern that a kubelet's reason and message match; empty if none does."""
    return next((advice for pattern, advice in known if re.search(pattern, failure)), "")


def machine_repair(machine: Machine) -> str:
    """Return the title of the repair of a machine without a node. Its controller does not retry in phase Failed."""
    is_over = machine.status.phase == "Failed" and machine.metadata.controller is not None
    does = (
        f"delete machine {machine.name}, which is then created again" if is_over else f"repair machine {machine.name}"
    )
    return f"{does}: {machine.failure}"
