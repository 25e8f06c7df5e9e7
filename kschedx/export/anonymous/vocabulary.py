"""The words that stay in an anonymized cluster: Kubernetes' own, and public ones that a rule reads by name.

A name is replaced word by word, so it stays if all of its words are listed here. No decision may depend on a word that
is not listed; the tests check every recorded decision.
"""

from __future__ import annotations

from kschedx.kube.kinds import KINDS
from kschedx.patterns import lazy_pattern
from kschedx.releases.plugins import PLUGINS
from kschedx.releases.release import POINTS, Messages, texts_of_all_releases
from kschedx.snapshot import events

WORD = lazy_pattern("[0-9A-Za-z\x80-\U0010ffff]+")
"""A word of a name, between `-`, `.`, `/`, `_`, `:`, and any other character that is neither a letter nor a digit."""

_LABELS = """
kubernetes.io/hostname kubernetes.io/os kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/arch
linux windows amd64 arm64 arm ppc64le s390x
topology.kubernetes.io/zone topology.kubernetes.io/region
failure-domain.beta.kubernetes.io/zone failure-domain.beta.kubernetes.io/region
node.kubernetes.io/instance-type beta.kubernetes.io/instance-type
node-role.kubernetes.io/control-plane node-role.kubernetes.io/master kubernetes.io/metadata.name metadata.name
app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/component app.kubernetes.io/part-of
app.kubernetes.io/version app.kubernetes.io/managed-by app k8s-app
pod-template-hash controller-revision-hash pod-template-generation statefulset.kubernetes.io/pod-name
apps.kubernetes.io/pod-index batch.kubernetes.io/job-name batch.kubernetes.io/job-completion-index
batch.kubernetes.io/controller-uid
scheduling.x-k8s.io/pod-group
svccontroller.k3s.cattle.io/svcname svccontroller.k3s.cattle.io/svcnamespace
pod-security.kubernetes.io/enforce pod-security.kubernetes.io/enforce-version pod-security.kubernetes.io/warn
pod-security.kubernetes.io/warn-version pod-security.kubernetes.io/audit privileged baseline restricted latest
k8s.io
"""

_GATES = """
kueue.x-k8s.io scheduling.volcano.sh karpenter.sh jobset.x-k8s.io
"""

_OTHER_SCHEDULERS = """
QuotaReserved Admitted Finished Evicted Requeued PodsReady Preempted DeactivationTarget Active Pending Inadmissible
AdmissionCheck Ready Retry Rejected StrictFIFO BestEffortFIFO Hold HoldAndDrain None Preemption PodsReadyTimeout
batch.kubernetes.io/job-tracking foregroundDeletion orphan kubernetes.io/pvc-protection kubernetes.io/pv-protection
external-attacher karpenter.sh/termination
ClusterQueueStopped LocalQueueStopped InactiveWorkload Waiting Started
Inqueue Running Unknown Completed Scheduled Unschedulable NotEnoughResources NotEnoughTasks Open Closed Closing
Initialized
kueue.x-k8s.io/queue-name kueue.x-k8s.io/pod-group-name kueue.x-k8s.io/podset kueue.x-k8s.io/managed
kueue-manager-config kueue.x-k8s.io/admission kueue.x-k8s.io/topology scheduling.k8s.io/group-name
UsageBasedAdmissionFairSharing NoAdmissionFairSharing Never LowerPriority LowerOrNewerEqualPriority Any
kai.scheduler/queue runai/queue pod-group-name volcano.sh/group-name volcano.sh/queue-name
quota.scheduling.koordinator.sh/name quota.scheduling.koordinator.sh/parent gang.scheduling.koordinator.sh/name
koordinator-default-quota koordinator-root-quota koordinator-system-quota
pod-group.scheduling.sigs.k8s.io pod-group.scheduling.sigs.k8s.io/name
yunikorn.apache.org/queue yunikorn.apache.org/app-id queue applicationId spark-app-selector root
yunikorn-configs queues.yaml vcore
volcano kai-scheduler runai-scheduler koord-scheduler yunikorn hami-scheduler kube-batch scheduler-plugins-scheduler
fargate-scheduler stork karpenter cluster-autoscaler
UnschedulableOnNodePool OverLimit NonPreemptibleOverQuota Available Succeeded Failed Expired Running Aborted
"""
"""States, keys of labels and annotations, and the names of schedulers and autoscalers."""

_TAINTS = """
node.kubernetes.io/not-ready node.kubernetes.io/unreachable node.kubernetes.io/unschedulable
node.kubernetes.io/memory-pressure node.kubernetes.io/disk-pressure node.kubernetes.io/pid-pressure
node.kubernetes.io/network-unavailable node.kubernetes.io/out-of-service node.kubernetes.io/out-of-disk
node.cloudprovider.kubernetes.io/uninitialized node.cloudprovider.kubernetes.io/shutdown
node-restriction.kubernetes.io
ToBeDeletedByClusterAutoscaler DeletionCandidateOfClusterAutoscaler agent-not-ready
karpenter.sh/unregistered karpenter.sh/disrupted aws-node-termination-handler CriticalAddonsOnly components.gke.io
cloud.google.com/impending-node-termination eks.amazonaws.com/compute-type virtual-kubelet.io
"""

_NAMES = """
default kube-system kube-public kube-node-lease system-cluster-critical system-node-critical default-scheduler
kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns component tier control-plane
latest sha256 svc true false yes no
"""

_RESOURCES = """
cpu memory ephemeral-storage storage pods requests.storage hugepages
nvidia.com/gpu amd.com/gpu gpu.intel.com alpha.kubernetes.io/nvidia-gpu
attachable-volumes-aws-ebs attachable-volumes-gce-pd attachable-volumes-azure-disk attachable-volumes-cinder
attachable-volumes-csi
limits.cpu configmaps persistentvolumeclaims replicationcontrollers resourcequotas secrets services
services.loadbalancers services.nodeports pod.alpha.kubernetes.io/opaque-int-resource deviceclass.resource.kubernetes.io
"""

_STORAGE = """
kubernetes.io/no-provisioner kubernetes.io/gce-pd kubernetes.io/aws-ebs kubernetes.io/cinder kubernetes.io/azure-disk
kubernetes.io/azure-file kubernetes.io/portworx-volume kubernetes.io/vsphere-volume
pd.csi.storage.gke.io ebs.csi.aws.com cinder.csi.openstack.org disk.csi.azure.com file.csi.azure.com pxd.portworx.com
csi.vsphere.vmware.com efs.csi.aws.com filestore.csi.storage.gke.io rbd.csi.ceph.com cephfs.csi.ceph.com
topology.gke.io/zone topology.ebs.csi.aws.com/zone topology.cinder.csi.openstack.org/zone
topology.disk.csi.azure.com/zone
projects/UNSPECIFIED/zones/regions/disks aws://vol
Managed managed Dedicated dedicated Shared shared
"""
"""Handles of translated volumes are compared with others, and consist of these words."""

_VALUES = """
In NotIn Exists DoesNotExist Gt Lt Equal
NoSchedule PreferNoSchedule NoExecute
TCP UDP SCTP
Always OnFailure Never PreemptLowerPriority RestartAllContainers Restart
DoNotSchedule ScheduleAnyway Honor Ignore
RollingUpdate Recreate AlwaysAllow IfHealthyBudget
Pending Running Succeeded Failed Unknown Bound Available Released Lost
True False PodScheduled PodResizePending PodResizeInProgress Infeasible Deferred DisruptionTarget PreemptionByScheduler
Ready MemoryPressure DiskPressure PIDPressure NetworkUnavailable OutOfDisk
Unschedulable SchedulingGated SchedulerError FailedScheduling Active Terminating Suspended ReplicaFailure FailedCreate
Progressing ProgressDeadlineExceeded OnDelete OrderedReady Parallel Forbid Replace Allow Complete SuccessCriteriaMet
FailureTarget ScalingActive ScalingLimited ScalingDisabled TooManyReplicas SyncFailed FileSystemResizePending Resizing
PodGroupScheduled PodGroupInitiallyScheduled ReadyForProvisioning
Waiting ImagePullBackOff ErrImagePull ErrImageNeverPull InvalidImageName CreateContainerConfigError CreateContainerError
ContainerCreating PodInitializing CrashLoopBackOff RunContainerError ContainersNotReady ContainersNotInitialized
OOMKilled Error Completed DeadlineExceeded Evicted ContainerCannotRun StartError ContainerStatusUnknown PodCompleted
NodeAffinity NodeLost Shutdown NodeShutdown Terminated UnexpectedAdmissionError Preempting PodReadyToStartContainers
BestEffort Burstable Guaranteed EvictionByEvictionAPI DeletionByTaintManager DeletionByPodGC TerminationByKubelet
NamespaceContentRemaining NamespaceFinalizersRemaining SomeResourcesRemain SomeFinalizersRemain
Filesystem Block ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Immediate WaitForFirstConsumer
Container
ExtendWebSocketsToKubelet InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
RestartAllContainersOnContainerExits UserNamespacesHostNetworkSupport
"""
"""Values of enumerations: operators, effects, phases, conditions, and features that kube-scheduler knows."""

_DEVICES = """
device driver attributes capacity allowMultipleAllocations has in true false null cel bind dyn type optional of none
all exists exists_one map filter orValue or hasValue value optMap quantity isQuantity sign isInteger asInteger
asApproximateFloat isGreaterThan isLessThan compareTo add sub semver isSemver major minor patch includes sum min max
isSorted sets contains equivalent intersects int uint double bool string bytes list duration timestamp
All ExactCount FromClass FromClaim pods podgroups resource.kubernetes.io resource.k8s.io v1beta2 v1alpha3 deviceclass
claim container request extended resources
"""
"""Words of CEL, and names that kube-scheduler itself defines."""

_KINDS = " ".join((
    "Pod Node PersistentVolumeClaim PodGroup v1 v1beta1 policy/v1 scheduling.k8s.io",
    *(f"{kind.name} {kind.api_version}" for kind in KINDS.values() if kind.template), *events.GROUPS, *events.REASONS,
))  # fmt: skip
"""Kinds, among them owners of pods, and events about them."""

_PLUGINS = " ".join((*(plugin.name for plugin in PLUGINS), *POINTS, "Reserve Permit PreBind Bind plugin running"))
_DATED_MESSAGES = " ".join(
    text for name in vars(Messages) if not name.startswith("_") for text in texts_of_all_releases(name)
)

_MESSAGES = """
0 nodes are available: Insufficient cpu, Too many pods. node(s) were unschedulable, had untolerated taint {}, that the
pod didn't tolerate, taints. didn't match the requested node name, hostname, ports. node selector. Pod's node
affinity/selector. scheduler-enforced. pod affinity terms conflict. didn't satisfy plugin(s) [NodeAffinity]
simultaneously. node is filtered out by the prefilter result. required features; declared features check failed -
unsatisfied requirements. didn't have free ports for. had memory pressure, disk pressure, pid pressure, unavailable
network, unknown conditions, not ready, out of disk space. pod topology spread constraints (missing required label).
pod affinity rules, anti-affinity rules; existing pods. PersistentVolume's. had volume node affinity conflict. find
available persistent volumes to bind. did not have enough free storage. unavailable due to one or more pvc(s) bound to
non-existent pv(s). pod has unbound immediate PersistentVolumeClaims (repeated times). PersistentVolumeClaim is not
bound. persistentvolumeclaim persistentvolume not found. waiting for ephemeral volume controller to create the. is
being deleted. PVC was not created for (pod is not owner). had no available volume zone. had no pv name and
storageClass storageclass name. with the access mode already in-use by another using same. exceed max volume count.
CSI driver is not installed on. no new claims to deallocate. still not schedulable. cannot allocate all claims.
waiting for scheduling gates. could not find ResourceClaim. ResourceClaim not created yet; neither nor is the owner.
request device class does not exist; unknown unsupported request type. resourceclaim not available on the node. cannot
schedule extended resource claim, cannot fit resource. invalid resource pools were encountered. selector CEL runtime
compile error: no such key; compilation failed: ERROR input undeclared reference to in container found no matching
overload for applied attribute unsupported value. division by zero, integer overflow. operation cancelled: actual cost
limit exceeded. program instantiation failed.
type conversion error from to. must evaluate to bool or the unknown type, not. undefined field. expected type but found.
index out of bounds. invalid matches argument. CEL result of type could not be converted. attribute. cannot add device
because a
claim constraint would not be satisfied. number of requested devices exceeds the claim limit. asks for all devices but
resource pool is currently being updated. deallocation deletion of ResourceClaim completed, unreserved for PodGroup.
preemption: not eligible due to preemptionPolicy=Never. Preemption is not helpful for scheduling. No preemption
victims found for incoming pod. on node. no nodes available to schedule pods. node(s) had. Successfully assigned to
"""
"""kube-scheduler's messages are replaced word by word, too: words in them that are not names must stay."""

_AUTOSCALER = """
cluster-autoscaler-status cluster-autoscaler-priority-expander status priorities cluster-autoscaler.kubernetes.io
time autoscalerStatus Running Initializing message clusterWide nodeGroups name health nodeCounts registered total
notStarted suspended beingDeleted unready resourceUnready longUnregistered unregistered cloudProviderTarget minSize
maxSize lastProbeTime lastTransitionTime scaleUp scaleDown candidates backoffInfo errorCode errorMessage Healthy
Unhealthy NoActivity InProgress Backoff NoCandidates CandidatesPresent null UTC
Cluster-autoscaler status at Cluster-wide NodeGroups Name Health ScaleUp ScaleDown LastProbeTime LastTransitionTime
eks.amazonaws.com/nodegroup alpha.eksctl.io/nodegroup-name cloud.google.com/gke-nodepool gke grp
kubernetes.azure.com/agentpool agentpool aks vmss eks eksctl kops.k8s.io/instancegroup worker.gardener.cloud/pool
cluster.x-k8s.io/deployment-name MachineDeployment MachineSet node.openshift.io/machineset
cloud.google.com/gke-accelerator k8s.amazonaws.com/accelerator kubernetes.azure.com/accelerator cluster-api/accelerator
startup-taint.cluster-autoscaler.kubernetes.io ignore-taint.cluster-autoscaler.kubernetes.io
status-taint.cluster-autoscaler.kubernetes.io daemonset-pod pod-scale-up-delay kubernetes.io/config.mirror
NotTriggerScaleUp TriggeredScaleUp pod didn't trigger triggered scale-up: max node group size reached
in backoff after failed scale-up not ready for scale-up exceeded quota cluster-wide resources limit
"""

_KARPENTER = """
karpenter.sh/nodepool karpenter.sh/capacity-type karpenter.sh/registered karpenter.sh/initialized
karpenter.sh/disrupted karpenter.sh/unregistered karpenter.sh/do-not-disrupt on-demand spot reserved
karpenter.k8s.aws/ec2nodeclass EC2NodeClass karpenter.azure.com/aksnodeclass AKSNodeClass
karpenter.k8s.gcp/gcenodeclass GCENodeClass NodePool NodeClaim NodeOverlay
active expiring default capacity-block
capacity-reservation-id capacity-reservation-type instance-hypervisor instance-encryption-in-transit-supported
instance-category instance-family instance-generation instance-size instance-local-nvme instance-cpu
instance-cpu-manufacturer instance-cpu-sustained-clock-speed-mhz instance-memory instance-ebs-bandwidth
instance-network-bandwidth instance-gpu-name instance-gpu-manufacturer instance-gpu-count instance-gpu-memory
instance-accelerator-name instance-accelerator-manufacturer instance-accelerator-count topology.k8s.aws/zone-id
sku-name sku-family sku-version sku-cpu sku-memory sku-gpu-name sku-gpu-manufacturer sku-gpu-count
sku-networking-accelerated sku-storage-premium-capable sku-storage-ephemeralos-maxsize
nitro xen intel amd aws nvidia habana node.kubernetes.io/windows-build Gte Lte
WhenEmpty WhenUnderutilized WhenEmptyOrUnderutilized Underutilized Empty Drifted Never nodes
ValidationSucceeded NodeClassReady NodeRegistrationHealthy Launched Registered Initialized Consolidatable
InstanceTerminating Drained VolumesDetached Unconsolidatable DisruptionBlocked
"""
"""Labels, conditions, and values of enumerations."""

_KARPENTER_MESSAGES = """
Failed to schedule pod, did not tolerate taint (taint=) all available instance types exceed limits for nodepool
node limits have been exhausted checking host port usage, hostport conflicts with existing configuration
incompatible volume requirements, is not in and others requirements= resources= unsatisfiable topology constraint for
spread affinity anti-affinity key= counts podDomains nodeDomains map no instance type met the scheduling or had enough
resources required offering which satisfied all minValues requirement (CPU request >= 1 Million, m vs M typo?)
getting persistent volume claim failed validate pvc with immediate binding mode must be bound does contain annotation
considered unbound because it define a storage class
"""

_SET_REQUESTS = "LimitRanger plugin set Pod resources updated by container init request limit"
"""Words in the annotations of a LimitRange and of a VerticalPodAutoscaler."""

_FACTS_OF_NODES = """
ai alibabacloud aliyun amazon cast cattle cilium civo confidentialcontainers dev digitalocean exoscale gvisor hetzner
huawei ibm k3s katacontainers kubevirt linode mellanox microsoft nutanix oraclecloud ovh qualcomm rke scaleway spotinst
talos vultr xilinx accelerators architecture datacenter gpus kernel lifecycle machine model provider rack ssd
"""
"""Words in labels that state facts, which no fix sets."""

_STATES = """
ContainersReady Initialized PodReadyToStartContainers HasSufficientResources ReconciledState
DeploymentPaused DeploymentResumed NewReplicaSetAvailable NewReplicaSetCreated FoundNewReplicaSet ReplicaSetUpdated
ReplicaSetCreateError MinimumReplicasAvailable MinimumReplicasUnavailable FailedDelete
BackoffLimitExceeded PodFailurePolicy MaxFailedIndexesExceeded FailedIndexes JobSuspended JobResumed CompletionsReached
SuccessPolicy AbleToScale SucceededGetScale FailedGetScale ReadyForNewScale ValidMetricFound FailedGetResourceMetric
FailedGetExternalMetric FailedGetObjectMetric FailedGetPodsMetric FailedComputeMetricsReplicas TooFewReplicas
DesiredWithinRange BackoffBoth InsufficientPods SufficientPods DisruptionAllowed NoPods
OutOfcpu OutOfmemory OutOfpods OutOfephemeral OutOfnvidia TopologyAffinityError SMTAlignmentError NodeName NodePorts
InitContainerRestartPolicyForbidden PodOSNotSupported PodLevelResourcesNotSupported PreStartHookError PostStartHookError
NetworkNotReady RegistryUnavailable SignatureValidationFailed ErrImagePullBackOff
KubeletReady KubeletNotReady NodeStatusUnknown NodeStatusNeverUpdated KubeletHasSufficientMemory
KubeletHasInsufficientMemory KubeletHasNoDiskPressure KubeletHasDiskPressure KubeletHasSufficientPID
KubeletHasInsufficientPID
FailedMount FailedAttachVolume FailedMapVolume FailedCreatePodSandBox FailedPrepareDynamicResources Unhealthy
"""
"""Types and reasons of conditions, and states of containers."""

VOCABULARY: frozenset[str] = frozenset(
    WORD.findall(
        " ".join(
            (
                _LABELS,
                _FACTS_OF_NODES,
                _SET_REQUESTS,
                _GATES,
                _OTHER_SCHEDULERS,
                _TAINTS,
                _NAMES,
                _RESOURCES,
                _STORAGE,
                _VALUES,
                _DEVICES,
                _KINDS,
                _MESSAGES,
                _PLUGINS,
                _DATED_MESSAGES,
                _AUTOSCALER,
                _KARPENTER,
                _KARPENTER_MESSAGES,
                _STATES,
            )
        )
    )
) | frozenset("0123456789")
"""All words that stay, among them numbers of one digit: these reveal nothing, and a StatefulSet's first pod is number
0."""

_PROGRAMS = """
Error creating: pods is forbidden: exceeded quota:, requested: used: limited: failed quota: must specify limits.memory
requests.cpu for; maximum minimum usage per Pod Container PersistentVolumeClaim is, but limit request is. No is
specified. max limit to request ratio, but provided ratio. insufficient quota to match these scopes: PriorityClass
BestEffort NotBestEffort Terminating NotTerminating CrossNamespacePodAffinity. no PriorityClass with name was found.
error looking up service account: serviceaccount not found. namespaces not found. unable to create new content in
namespace because it is being terminated. Internal error occurred: failed calling webhook: failed to call webhook: Post
https http svc: no endpoints available for service; context deadline exceeded (Client.Timeout exceeded while awaiting
headers); dial tcp lookup connect: connection refused, no such host, no route to host, i/o timeout; tls: failed to
verify certificate: x509: certificate signed by unknown authority, has expired or is not yet valid: current time is
after before. the server could not find the requested resource. service unavailable. EOF.
admission webhook denied the request: resource was blocked due to the following policies. ValidatingAdmissionPolicy
with binding denied request. pod rejected: RuntimeClass not found. is invalid: spec.containers resources requests
limits: Invalid value: must be less than or equal to cpu limit of. Required Forbidden Unsupported value: supported
values. the integer value of priority must not be provided in pod spec; priority admission controller computed from the
given PriorityClass name. pod node label selector conflicts with its namespace node label selector. unable to validate
against any security context constraint: provider. serviceaccount.
violates PodSecurity restricted baseline privileged latest: host namespaces (hostNetwork=true hostPID=true
hostIPC=true), hostPort hostPorts, privileged (container containers init must not set
securityContext.privileged=true), allowPrivilegeEscalation != false (must set
securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (must set
securityContext.capabilities.drop=["ALL"]; must not include in add NET_RAW SYS_ADMIN), non-default capabilities,
runAsNonRoot != true (pod or must set securityContext.runAsNonRoot=true), runAsUser=0 (must not set runAsUser=0),
seccompProfile seccompProfile.type (must set to RuntimeDefault or Localhost), hostPath volumes (volume volumes use
uses), restricted volume types, hostProcess windowsOptions, procMount, sysctls, seLinuxOptions, appArmor profile.
Pod was rejected: Resources cannot be allocated with Topology locality. Node didn't have enough resource: capacity. The
node was low on resource. Threshold quantity: available. Container was using, request is, has larger consumption of.
The node had condition. Allocate failed due to requested number of devices unavailable for. Requested: Available: which
is unexpected; maximum request size for shared resources is; rpc error: code = Unknown desc. no healthy devices
present; cannot allocate unhealthy devices. Predicate failed. Pod The container exceeded its local ephemeral storage
limit. Usage of EmptyDir volume exceeds the limit. ephemeral local total limit of containers. Preempted in order to
admit critical pod. Preempted by pod on node. Pod was terminated in response to imminent node shutdown. was active on
the node longer than the specified deadline. Node didn't have enough capacity.
containers with unready status: with incomplete status: unknown status.
Multi-Attach error for volume. Volume is already exclusively attached to one node and can't be attached to another.
Volume is already used by pod(s). and pods in different namespaces. AttachVolume.Attach failed for volume; timed out
waiting for external-attacher of CSI driver to attach volume; MountVolume.SetUp MountVolume.MountDevice
MountVolume.NewMounter initialization failed for volume: secret configmap not found. Unable to attach or mount
volumes: unmounted unattached; failed to process; timed out waiting for the condition. kubernetes.io/csi: attacher:
mounter. driver name not found in the list of registered CSI drivers. hostPath type check failed: is not a directory
file. references non-existent config key. object not registered. node
not found. volume attachment is being deleted. volumeattachments csinode. Internal Unavailable NotFound
ResourceExhausted DeadlineExceeded InvalidArgument.
Failed to create pod sandbox. network plugin returns error; is not ready: cni plugin not initialized, cni config
uninitialized. container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message: Network.
setup network for sandbox; plugin type; failed to assign an IP address to container. no runtime for is configured.
PLEG is not healthy. container runtime is down. Kubelet stopped posting node status. kubelet is posting ready status.
kubelet has sufficient memory, no disk pressure, sufficient PID available. Kubelet never posted node status.
Back-off pulling image. failed to pull and unpack image. failed to resolve reference. no match for platform in
manifest. no matching manifest for linux windows amd64 arm64 in the manifest list entries. pull access denied,
repository does not exist or may require authorization: server message: insufficient_scope: authorization failed.
unexpected status from HEAD GET request to: Unauthorized Forbidden Not Found Too Many Requests.
toomanyrequests: You have reached your unauthenticated pull rate limit. manifest unknown. exec format error. no space
left on device. Container image is not present with pull policy of Never.
back-off restarting failed container. couldn't find key in ConfigMap Secret. container has runAsNonRoot and image will
run as root. failed to create containerd task. failed to create shim task. OCI runtime create failed. runc create
failed. unable to start container process. error during container init. exec: executable file not found in PATH. no
such file or directory. permission denied. Readiness Liveness Startup probe failed. HTTP probe failed with statuscode.
the HPA was unable to compute the replica count: unable to get metrics for resource: unable to fetch metrics from
resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io), no metrics returned
from resource metrics API. missing request for cpu memory in container of Pod. failed to get utilization. the desired
replica count is more than the maximum replica count, less than the minimum. external custom
metrics.k8s.io. scaling is disabled since the replica count of the target is zero. the desired count is within the
acceptable range. recommended size matches current size. was able to successfully calculate a replica count from.
Job has reached the specified backoff limit. was active longer than specified deadline. ReplicaSet has timed out
progressing. has successfully progressed. is progressing. Deployment has minimum availability. Deployment does not have
minimum availability. Deployment is paused. Created new replica set. Found.
Some content in the namespace has finalizers remaining: in resource instances. Some resources are remaining: has.
All content successfully deleted. Discovery failed for some groups, failing: unable to retrieve the complete list of
server APIs. persistent volumes available for this claim and no storage class is set. volume already bound. waiting
for first consumer to be created before binding. waiting for pod to be scheduled. cannot bind to requested: requested
size, accessMode, volume incompatible. create claim PVC for StatefulSet.
failed filter prioritize preempt bind with extender at URL code. binding rejected. running plugin.
couldn't assign flavors to pod set: insufficient unused quota for in flavor, more needed. insufficient quota previously
considered podsets requests + current podset request > maximum capacity. Flavor does not support
TopologyAwareScheduling. topology doesn't allow to fit any of pod(s).
Workload is admitted, The workload is deactivated due to exceeding the
maximum number of re-queuing retries. Exceeded the PodsReady timeout. ClusterQueue LocalQueue is inactive, stopped.
Can't admit new workloads: references missing inactive AdmissionCheck(s), ResourceFlavor(s), FlavorNotFound. Workload
namespace doesn't match ClusterQueue selector. didn't fit. Waiting for provisioning request. Not all pods are ready or
succeeded. Previously: Admission quota reserved reservation in. At least one cohort. can't preempt. Preempted to
accommodate a workload (UID: JobUID:) due to prioritization fair sharing reclamation within the cohort while borrowing.
"""
MESSAGE_WORDS: frozenset[str] = frozenset(WORD.findall(_PROGRAMS)) | VOCABULARY
"""The words of what the API server, kubelets, and controllers say about pods that are refused, or do not start. They
stay in messages, and are replaced in names."""
