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
spark-role driver executor ray.io/cluster ray.io/node-type head worker training.kubeflow.org/job-name
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
ToBeDeletedByClusterAutoscaler DeletionCandidateOfClusterAutoscaler agent-not-ready not-ready
karpenter.sh/unregistered karpenter.sh/disrupted aws-node-termination-handler CriticalAddonsOnly components.gke.io
node.cluster.x-k8s.io/uninitialized cloud.google.com/impending-node-termination eks.amazonaws.com/compute-type
virtual-kubelet.io readiness.k8s.io
"""

_NAMES = """
wait-gcs-ready
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
topology.gke.io/zone sandbox.gke.io topology.ebs.csi.aws.com/zone topology.cinder.csi.openstack.org/zone
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
Pending Running Succeeded Failed Unknown Bound Available Released Lost Retain Delete Recycle
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
Container CREATE UPDATE DELETE CONNECT eviction Accepted Provisioned BookingExpired CapacityRevoked
ExtendWebSocketsToKubelet InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
RestartAllContainersOnContainerExits UserNamespacesHostNetworkSupport DeletionByDeviceTaintManager
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
actual allocate annotation anti applied argument asks assigned attribute because been being binding bound bounds but
cancelled CEL checking claims class compilation compile completed conditions configuration conflicts considered
constraint contain conversion converted cost could counts CPU create created CSI currently deallocate deallocation
define deleted deletion devices did division does eligible encountered enforced enough ERROR evaluate exceed exceeds
exhausted exist existent existing expected field find fit found free gates getting have helpful host hostport immediate
incoming incompatible input installed instantiation Insufficient integer invalid it label M m many matches matching met
Million minValues must neither new No nodeDomains non nor number offering operation others overflow overload owner
persistent persistentvolume persistentvolumeclaim PersistentVolumeClaims podDomains pools port ports preemption
preemptionPolicy program PVC reference repeated requested requirement ResourceClaim resourceclaim rules runtime
schedulable schedule simultaneously space still storageClass storageclass Successfully such taints terms that times
tolerate Too types typo unbound undeclared undefined unknown unreserved unsatisfiable unsupported usage validate
victims vs was were which would yet zero
"""
"""The other words of kube-scheduler's and Karpenter's messages, which are replaced word by word, too."""

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
DesiredWithinRange BackoffBoth InsufficientPods SufficientPods DisruptionAllowed NoPods OutOfhugepages OutOfamd
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
                _STATES,
            )
        )
    )
) | frozenset("0123456789")
"""All words that stay, among them numbers of one digit: these reveal nothing, and a StatefulSet's first pod is number
0."""

_PROGRAMS = """
able acceptable accessMode accommodate account address ADMIN Admission admit admitted against ALL Allocate allocated
allow allowPrivilegeEscalation an any API APIs appArmor as assign At Attach attach attached attachment AttachVolume
authority authorization availability awaiting Back back before blocked borrowing calculate call calling Can can
capabilities certificate Client ClusterQueue cni code cohort complete computed condition ConfigMap configmap configured
connect connection consumer consumption containerd containers content context couldn Created creating
CrossNamespacePodAffinity csinode current custom deactivated deadline denied desc desired dial different directory
disabled Discovery doesn down drivers drop during EmptyDir endpoints entries EOF equal Exceeded exceeding exclusively
exec executable expired extender failing fair fetch finalizers first Flavor flavor FlavorNotFound flavors following
Forbidden forbidden format Found GET given groups HEAD headers healthy hostIPC hostNetwork hostPath hostPID hostPort
hostPorts hostProcess HPA HTTP http https i image imminent inactive include incomplete initialization instances
insufficient Internal Invalid InvalidArgument IP its JobUID Kubelet larger least left less limited Liveness Localhost
locality LocalQueue longer looking lookup low manifest Many maximum may metrics mount MountDevice mounter MountVolume
Multi namespace namespaces needed NET Network NetworkPluginNotReady NetworkReady never NewMounter Not NotBestEffort
NotFound NotTerminating o object occurred OCI off order PATH paused per permission PID platform PLEG PodSecurity
podsets policies Post posted posting Predicate preempt present Previously previously prioritization prioritize
PriorityClass probe process procMount profile progressed progressing provided provisioning pull pulling queuing range
rate ratio RAW re Readiness reason reclamation recommended references refused replica repository Requested Requests
require Required resolve ResourceExhausted ResourceFlavor Resources response restarting retries retrieve returned
returns route rpc run runAsNonRoot runAsUser runc RuntimeClass RuntimeDefault sandbox scaling scope scopes
seccompProfile Secret secret securityContext seLinuxOptions server serviceaccount SetUp setup sharing shim signed since
Some some spec specified specify start Startup statuscode stopped succeeded successfully sufficient support SYS sysctls
target task tcp terminated than The these this Threshold timed Timeout tls toomanyrequests Topology
TopologyAwareScheduling UID Unable unable unattached unauthenticated Unauthorized Unavailable unexpected unhealthy
unmounted unpack unrestricted Unsupported unused URL Usage used uses utilization valid ValidatingAdmissionPolicy values
verify violates Volume volumeattachments webhook while will windowsOptions within Workload workload workloads x509 You
your
"""
"""The other words of messages of the API server, admission webhooks, kubelets, container runtimes, CSI drivers, Pod
Security, controllers, extenders, and Kueue."""
MESSAGE_WORDS: frozenset[str] = frozenset(WORD.findall(_PROGRAMS)) | VOCABULARY
"""The words of what the API server, kubelets, and controllers say about pods that are refused, or do not start. They
stay in messages, and are replaced in names."""
