"""Every feature gate that kube-scheduler has had since 1.26: its stages by version, and the gates on which it depends.

A stage is `since stage default`, with `locked` if the default can no longer be changed, or `since removed`. A version
has the last stage that is not newer than the version. Sources: pkg/features, client-go/features, and the feature files
of the other components linked into kube-scheduler, in each version; stages before 1.26 are those that these files still
list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from kschedx.errors import ConfigError, nearest
from kschedx.releases.dates import minor

HISTORY: Mapping[str, str] = {
    "APIListChunking": "1.8 alpha off, 1.9 beta on, 1.29 GA on locked, 1.33 removed",
    "APIPriorityAndFairness": "1.20 beta on, 1.29 GA on locked, 1.31 removed",
    "APIResponseCompression": "1.8 alpha off, 1.16 beta on",
    "APISelfSubjectReview": "1.26 alpha off, 1.27 beta on, 1.28 GA on locked, 1.30 removed",
    "APIServerIdentity": "1.20 alpha off, 1.26 beta on",
    "APIServerTracing": "1.22 alpha off, 1.27 beta on, 1.34 GA on locked",
    "APIServingWithRoutine": "1.30 beta on, 1.31 alpha off",
    "AdmissionWebhookMatchConditions": "1.27 alpha off, 1.28 beta on, 1.30 GA on locked, 1.33 removed",
    "AdvancedAuditing": "1.12 GA on, 1.27 GA on locked, 1.28 removed",
    "AggregatedDiscoveryEndpoint": "1.26 alpha off, 1.27 beta on, 1.30 GA on locked, 1.33 removed",
    "AggregatedDiscoveryRemoveBetaType": "1.33 deprecated on, 1.35 deprecated on locked",
    "AllowDNSOnlyNodeCSR": "1.31 deprecated off",
    "AllowInsecureKubeletCertificateSigningRequests": "1.31 deprecated off",
    "AllowOverwriteTerminationGracePeriodSeconds": "1.32 deprecated off, 1.35 deprecated off locked",
    "AllowParsingUserUIDFromCertAuth": "1.33 beta on",
    "AllowServiceExternalIPs": "1.36 GA on",
    "AllowServiceLBStatusOnNonLB": "1.29 deprecated off, 1.32 deprecated off locked, 1.35 removed",
    "AllowUnsafeMalformedObjectDeletion": "1.32 alpha off",
    "AnonymousAuthConfigurableEndpoints": "1.31 alpha off, 1.32 beta on, 1.34 GA on locked",
    "AnyVolumeDataSource": "1.18 alpha off, 1.24 beta on, 1.33 GA on locked",
    "AppArmor": "1.4 beta on, 1.31 GA on locked, 1.33 removed",
    "AppArmorFields": "1.30 beta on, 1.31 GA on locked, 1.33 removed",
    "AtomicFIFO": "1.36 beta on",
    "AuthorizeNodeWithSelectors": "1.31 alpha off, 1.32 beta on, 1.34 GA on locked",
    "AuthorizePodWebsocketUpgradeCreatePermission": "1.35 beta on",
    "AuthorizeWithSelectors": "1.31 alpha off, 1.32 beta on, 1.34 GA on locked",
    "BtreeWatchCache": "1.32 beta on, 1.33 GA on locked",
    "CBORServingAndStorage": "1.32 alpha off",
    "CPUManager": "1.8 alpha off, 1.10 beta on, 1.26 GA on locked, 1.33 removed",
    "CPUManagerPolicyAlphaOptions": "1.23 alpha off",
    "CPUManagerPolicyBetaOptions": "1.23 beta on",
    "CPUManagerPolicyOptions": "1.22 alpha off, 1.23 beta on, 1.33 GA on locked",
    "CRDObservedGenerationTracking": "1.35 beta off, 1.36 beta on",
    "CRDValidationRatcheting": "1.28 alpha off, 1.30 beta on, 1.33 GA on locked",
    "CRIListStreaming": "1.36 alpha off",
    "CSIInlineVolume": "1.25 GA on locked, 1.27 removed",
    "CSIMigration": "1.25 GA on locked, 1.27 removed",
    "CSIMigrationAWS": "1.25 GA on locked, 1.27 removed",
    "CSIMigrationAzureDisk": "1.24 GA on locked, 1.27 removed",
    "CSIMigrationAzureFile": "1.21 beta on, 1.26 GA on, 1.27 GA on locked, 1.30 removed",
    "CSIMigrationGCE": "1.25 GA on locked, 1.28 removed",
    "CSIMigrationPortworx": "1.23 alpha off, 1.25 beta off, 1.31 beta on, 1.33 GA on locked, 1.36 removed",
    "CSIMigrationRBD": "1.23 alpha off, 1.28 deprecated off, 1.31 removed",
    "CSIMigrationvSphere": "1.19 beta on, 1.26 GA on, 1.27 GA on locked, 1.29 removed",
    "CSINodeExpandSecret": "1.25 alpha off, 1.27 beta on, 1.29 GA on locked, 1.31 removed",
    "CSIServiceAccountTokenSecrets": "1.35 beta on, 1.36 GA on locked",
    "CSIStorageCapacity": "1.24 GA on locked, 1.28 removed",
    "CSIVolumeHealth": "1.21 alpha off",
    "ChangeContainerStatusOnKubeletRestart": "1.35 deprecated off",
    "ClearingNominatedNodeNameAfterBinding": "1.34 alpha off, 1.35 beta on",
    "ClientsAllowCARotation": "1.36 beta on",
    "ClientsAllowCBOR": "1.32 alpha off",
    "ClientsAllowTLSCacheGC": "1.36 beta on",
    "ClientsPreferCBOR": "1.32 alpha off",
    "CloudControllerManagerWatchBasedRoutesReconciliation": "1.35 alpha off",
    "CloudControllerManagerWebhook": "1.27 alpha off",
    "CloudDualStackNodeIPs": "1.27 alpha off, 1.29 beta on, 1.30 GA on locked, 1.32 removed",
    "ClusterTrustBundle": "1.27 alpha off, 1.33 beta off",
    "ClusterTrustBundleProjection": "1.29 alpha off, 1.33 beta off",
    "ComponentFlagz": "1.32 alpha off, 1.36 beta on",
    "ComponentSLIs": "1.26 alpha off, 1.27 beta on, 1.32 GA on locked, 1.35 removed",
    "ComponentStatusz": "1.32 alpha off, 1.36 beta on",
    "CompositePodGroup": "1.37 alpha off",
    "ConcurrentWatchObjectDecode": "1.31 beta off",
    "ConsistentHTTPGetHandlers": "1.26 GA on, 1.30 GA on locked, 1.31 removed",
    "ConsistentListFromCache": "1.28 alpha off, 1.31 beta on, 1.34 GA on locked",
    "ConstrainedImpersonation": "1.35 alpha off, 1.36 beta on",
    "ContainerCheckpoint": "1.25 alpha off, 1.30 beta on",
    "ContainerRestartRules": "1.34 alpha off, 1.35 beta on",
    "ContainerStopSignals": "1.33 alpha off",
    "ContextualLogging": "1.24 alpha off, 1.30 beta off, 1.33 beta on",
    "ControllerManagerLeaderMigration": "1.24 GA on locked, 1.27 removed",
    "ControllerManagerReleaseLeaderElectionLockOnExit": "1.36 alpha off",
    "CoordinatedLeaderElection": "1.31 alpha off, 1.33 beta off",
    "CronJobTimeZone": "1.25 beta on, 1.27 GA on locked, 1.29 removed",
    "CronJobsScheduledAnnotation": "1.28 beta on, 1.32 GA on locked, 1.35 removed",
    "CrossNamespaceVolumeDataSource": "1.26 alpha off",
    "CustomCPUCFSQuotaPeriod": "1.12 alpha off, 1.36 GA on",
    "CustomResourceFieldSelectors": "1.30 alpha off, 1.31 beta on, 1.32 GA on locked",
    "CustomResourceValidationExpressions": "1.25 beta on, 1.29 GA on locked, 1.31 removed",
    "DRAAdminAccess": "1.32 alpha off, 1.34 beta on, 1.36 GA on locked",
    "DRAConsumableCapacity": "1.34 alpha off, 1.36 beta on, 1.38 GA on",
    "DRAControlPlaneController": "1.31 alpha off, 1.32 removed",
    "DRADerivedAttributes": "1.37 alpha off",
    "DRADeviceBindingConditions": "1.34 alpha off, 1.36 beta on",
    "DRADeviceCompatibilityGroups": "1.37 alpha off",
    "DRADeviceTaintRules": "1.35 alpha off, 1.36 beta off, 1.37 GA on, 1.38 GA on locked",
    "DRADeviceTaints": "1.33 alpha off, 1.36 beta on, 1.37 GA on, 1.38 GA on locked",
    "DRAExtendedResource": "1.34 alpha off, 1.36 beta on, 1.37 GA on locked",
    "DRAFractionalCapacityRange": "1.37 beta on",
    "DRAListTypeAttributes": "1.36 alpha off",
    "DRANodeAllocatableResources": "1.36 alpha off",
    "DRAOptionalNodeOperations": "1.37 alpha off",
    "DRAPartitionableDevices": "1.33 alpha off, 1.36 beta on",
    "DRAPrioritizedList": "1.33 alpha off, 1.34 beta on, 1.36 GA on, 1.37 GA on locked",
    "DRAResourceClaimDeviceStatus": "1.32 alpha off, 1.33 beta on, 1.37 GA on locked",
    "DRAResourceClaimGranularStatusAuthorization": "1.36 beta on",
    "DRAResourcePoolStatus": "1.36 alpha off",
    "DRASchedulerFilterTimeout": "1.34 beta on",
    "DRAWorkloadResourceClaims": "1.36 alpha off, 1.37 beta off",
    "DaemonSetUpdateSurge": "1.25 GA on locked, 1.27 removed",
    "DeclarativeValidation": "1.33 beta on, 1.36 GA on locked",
    "DeclarativeValidationBeta": "1.36 beta on",
    "DeclarativeValidationTakeover": "1.33 beta off, 1.36 deprecated off",
    "DefaultHostNetworkHostPortsInPodTemplates": "1.28 deprecated off, 1.31 removed",
    "DelegateFSGroupToCSIDriver": "1.23 beta on, 1.26 GA on locked, 1.28 removed",
    "DeploymentReplicaSetTerminatingReplicas": "1.33 alpha off, 1.35 beta on",
    "DetectCacheInconsistency": "1.34 beta on",
    "DevicePluginCDIDevices": "1.28 alpha off, 1.29 beta on, 1.31 GA on locked, 1.34 removed",
    "DevicePlugins": "1.10 beta on, 1.26 GA on locked, 1.28 removed",
    "DisableAcceleratorUsageMetrics": "1.25 GA on locked, 1.28 removed",
    "DisableAllocatorDualWrite": "1.31 alpha off, 1.33 beta off, 1.34 GA on, 1.35 GA on locked",
    "DisableCPUQuotaWithExclusiveCPUs": "1.33 beta on, 1.36 deprecated on",
    "DisableCloudProviders": "1.22 alpha off, 1.29 beta on, 1.31 GA on locked, 1.33 removed",
    "DisableKubeletCloudCredentialProviders": "1.23 alpha off, 1.29 beta on, 1.31 GA on locked, 1.33 removed",
    "DisableNodeKubeProxyVersion": "1.29 alpha off, 1.31 deprecated off, 1.33 deprecated on, 1.36 deprecated on locked",
    "DownwardAPIHugePages": "1.21 beta on, 1.27 GA on locked, 1.29 removed",
    "DryRun": "1.25 GA on, 1.26 GA on locked, 1.28 removed",
    "DynamicResourceAllocation": "1.26 alpha off, 1.32 beta off, 1.34 GA on, 1.35 GA on locked, 1.38 removed",
    "EfficientWatchResumption": "1.20 alpha off, 1.21 beta on, 1.24 GA on locked, 1.33 removed",
    "ElasticIndexedJob": "1.27 beta on, 1.31 GA on locked, 1.34 removed",
    "EndpointSliceTerminatingCondition": "1.22 beta on, 1.26 GA on locked, 1.28 removed",
    "EnvFiles": "1.34 alpha off, 1.35 beta on",
    "EphemeralContainers": "1.25 GA on locked, 1.27 removed",
    "EventedPLEG": "1.26 alpha off, 1.27 beta off, 1.29 alpha off",
    "ExecProbeTimeout": "1.20 GA on, 1.35 GA on locked",
    "ExpandCSIVolumes": "1.24 GA on, 1.27 removed",
    "ExpandInUsePersistentVolumes": "1.24 GA on, 1.27 removed",
    "ExpandPersistentVolumes": "1.24 GA on, 1.27 removed",
    "ExpandedDNSConfig": "1.22 alpha off, 1.26 beta on, 1.28 GA on locked, 1.30 removed",
    "ExperimentalHostUserNamespaceDefaulting": "1.25 beta off, 1.28 deprecated off locked, 1.30 removed",
    "ExtendWebSocketsToKubelet": "1.36 beta on",
    "ExternalServiceAccountTokenSigner": "1.32 alpha off, 1.34 beta on, 1.36 GA on locked",
    "GRPCContainerProbe": "1.24 beta on, 1.27 GA on locked, 1.29 removed",
    "GangScheduling": "1.35 alpha off, 1.37 removed",
    "GenericWorkload": "1.35 alpha off, 1.37 beta off, 1.38 GA on",
    "GitRepoVolumeDriver": "1.33 deprecated off, 1.36 deprecated off locked",
    "GracefulNodeShutdown": "1.20 alpha off, 1.21 beta on",
    "GracefulNodeShutdownBasedOnPodPriority": "1.23 alpha off, 1.24 beta on",
    "HPAConfigurableTolerance": "1.33 alpha off, 1.35 beta on",
    "HPAContainerMetrics": "1.20 alpha off, 1.27 beta on, 1.30 GA on locked, 1.32 removed",
    "HPAScaleToZero": "1.16 alpha off",
    "HonorPVReclaimPolicy": "1.23 alpha off, 1.31 beta on, 1.33 GA on locked, 1.36 removed",
    "HostnameOverride": "1.34 alpha off, 1.35 beta on",
    "IPTablesOwnershipCleanup": "1.25 alpha off, 1.27 beta on, 1.28 GA on locked, 1.30 removed",
    "IdentifyPodOS": "1.25 GA on locked, 1.27 removed",
    "ImageMaximumGCAge": "1.29 alpha off, 1.30 beta on, 1.35 GA on locked",
    "ImageVolume": "1.31 alpha off, 1.33 beta off, 1.35 beta on, 1.36 GA on locked",
    "ImageVolumeWithDigest": "1.36 alpha off",
    "InOrderInformers": "1.33 beta on, 1.36 GA on locked",
    "InOrderInformersBatchProcess": "1.35 beta on",
    "InPlacePodLevelResourcesVerticalScaling": "1.35 alpha off, 1.36 beta on",
    "InPlacePodVerticalScaling": "1.27 alpha off, 1.33 beta on, 1.35 GA on locked",
    "InPlacePodVerticalScalingAllocatedStatus": "1.32 alpha off, 1.33 deprecated off, 1.36 removed",
    "InPlacePodVerticalScalingExclusiveCPUs": "1.32 alpha off",
    "InPlacePodVerticalScalingExclusiveMemory": "1.34 alpha off",
    "InPlacePodVerticalScalingInitContainers": "1.36 beta on",
    "InPlacePodVerticalScalingSchedulerPreemption": "1.37 alpha off",
    "InTreePluginAWSUnregister": "1.21 alpha off, 1.31 removed",
    "InTreePluginAzureDiskUnregister": "1.21 alpha off, 1.31 removed",
    "InTreePluginAzureFileUnregister": "1.21 alpha off, 1.31 removed",
    "InTreePluginGCEUnregister": "1.21 alpha off, 1.31 removed",
    "InTreePluginOpenStackUnregister": "1.21 alpha off, 1.31 removed",
    "InTreePluginPortworxUnregister": "1.23 alpha off, 1.36 removed",
    "InTreePluginRBDUnregister": "1.23 alpha off, 1.28 deprecated off, 1.31 removed",
    "InTreePluginvSphereUnregister": "1.21 alpha off, 1.31 removed",
    "InformerResourceVersion": "1.30 alpha off, 1.35 GA on",
    "InterPodAffinityHostnameFastPath": "1.37 alpha off",
    "JobBackoffLimitPerIndex": "1.28 alpha off, 1.29 beta on, 1.33 GA on locked",
    "JobManagedBy": "1.30 alpha off, 1.32 beta on, 1.35 GA on locked",
    "JobMutableNodeSchedulingDirectives": "1.23 beta on, 1.27 GA on locked, 1.29 removed",
    "JobPodFailurePolicy": "1.25 alpha off, 1.26 beta on, 1.31 GA on locked, 1.33 removed",
    "JobPodReplacementPolicy": "1.28 alpha off, 1.29 beta on, 1.34 GA on locked",
    "JobReadyPods": "1.24 beta on, 1.29 GA on locked, 1.31 removed",
    "JobSuccessPolicy": "1.30 alpha off, 1.31 beta on, 1.33 GA on locked",
    "JobTrackingWithFinalizers": "1.23 beta on, 1.26 GA on locked, 1.29 removed",
    "KMSv1": "1.28 deprecated on, 1.29 deprecated off",
    "KMSv2": "1.25 alpha off, 1.27 beta on, 1.29 GA on locked, 1.32 removed",
    "KMSv2KDF": "1.28 beta off, 1.29 GA on locked, 1.32 removed",
    "KubeProxyDrainingTerminatingNodes": "1.28 alpha off, 1.30 beta on, 1.31 GA on locked, 1.33 removed",
    "KubeletCgroupDriverFromCRI": "1.28 alpha off, 1.31 beta on, 1.34 GA on locked",
    "KubeletCrashLoopBackOffMax": "1.32 alpha off, 1.35 beta on",
    "KubeletCredentialProviders": "1.24 beta on, 1.26 GA on locked, 1.28 removed",
    "KubeletEnsureSecretPulledImages": "1.33 alpha off, 1.35 beta on",
    "KubeletFineGrainedAuthz": "1.32 alpha off, 1.33 beta on, 1.36 GA on locked",
    "KubeletInUserNamespace": "1.22 alpha off",
    "KubeletPSI": "1.33 alpha off, 1.34 beta on, 1.36 GA on locked",
    "KubeletPodResources": "1.15 beta on, 1.28 GA on locked, 1.30 removed",
    "KubeletPodResourcesDynamicResources": "1.27 alpha off, 1.34 beta on, 1.36 GA on locked",
    "KubeletPodResourcesGet": "1.27 alpha off, 1.34 beta on, 1.36 GA on locked",
    "KubeletPodResourcesGetAllocatable": "1.23 beta on, 1.28 GA on locked, 1.30 removed",
    "KubeletPodResourcesListUseActivePods": "1.34 deprecated on",
    "KubeletRegistrationGetOnExistsOnly": "1.32 deprecated off",
    "KubeletSeparateDiskGC": "1.29 alpha off, 1.31 beta on",
    "KubeletServiceAccountTokenForCredentialProviders": "1.33 alpha off, 1.34 beta on",
    "KubeletTracing": "1.25 alpha off, 1.27 beta on, 1.34 GA on locked",
    "LegacyServiceAccountTokenCleanUp": "1.28 alpha off, 1.29 beta on, 1.30 GA on locked, 1.32 removed",
    "LegacyServiceAccountTokenNoAutoGeneration": "1.24 beta on, 1.26 GA on, 1.27 GA on locked, 1.29 removed",
    "LegacyServiceAccountTokenTracking": "1.26 alpha off, 1.27 beta on, 1.28 GA on locked, 1.30 removed",
    "LegacySidecarContainers": "1.33 deprecated off, 1.34 removed",
    "ListFromCacheSnapshot": "1.33 alpha off, 1.34 beta on",
    "LoadBalancerIPMode": "1.29 alpha off, 1.30 beta on, 1.32 GA on locked, 1.35 removed",
    "LocalStorageCapacityIsolation": "1.25 GA on locked, 1.27 removed",
    "LocalStorageCapacityIsolationFSQuotaMonitoring": "1.15 alpha off, 1.31 beta off",
    "LogarithmicScaleDown": "1.21 alpha off, 1.22 beta on, 1.31 GA on locked",
    "LoggingAlphaOptions": "1.24 alpha off",
    "LoggingBetaOptions": "1.24 beta on",
    "ManifestBasedAdmissionControlConfig": "1.36 alpha off",
    "MatchLabelKeysInPodAffinity": "1.29 alpha off, 1.31 beta on, 1.33 GA on locked, 1.38 removed",
    "MatchLabelKeysInPodTopologySpread": "1.25 alpha off, 1.27 beta on",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": "1.34 beta on",
    "MaxUnavailableStatefulSet": "1.24 alpha off, 1.35 beta off",
    "MemoryManager": "1.21 alpha off, 1.22 beta on, 1.32 GA on locked, 1.36 removed",
    "MemoryQoS": "1.22 alpha off",
    "MinDomainsInPodTopologySpread": "1.25 beta off, 1.27 beta on, 1.30 GA on locked, 1.32 removed",
    "MinimizeIPTablesRestore": "1.26 alpha off, 1.27 beta on, 1.28 GA on locked, 1.30 removed",
    "MixedProtocolLBService": "1.24 beta on, 1.26 GA on locked, 1.28 removed",
    "MultiCIDRRangeAllocator": "1.25 alpha off, 1.29 removed",
    "MultiCIDRServiceAllocator": "1.27 alpha off, 1.31 beta off, 1.33 GA on, 1.34 GA on locked",
    "MutableCSINodeAllocatableCount": "1.33 alpha off, 1.34 beta off, 1.35 beta on, 1.36 GA on locked",
    "MutablePVNodeAffinity": "1.35 alpha off",
    "MutablePodResourcesForSuspendedJobs": "1.35 alpha off, 1.36 beta on",
    "MutableSchedulingDirectivesForSuspendedJobs": "1.35 alpha off, 1.36 beta on",
    "MutatingAdmissionPolicy": "1.30 alpha off, 1.34 beta off, 1.36 GA on",
    "NFTablesProxyMode": "1.29 alpha off, 1.31 beta on, 1.33 GA on locked",
    "NativeHistograms": "1.36 alpha off",
    "NetworkPolicyEndPort": "1.25 GA on locked, 1.27 removed",
    "NetworkPolicyStatus": "1.24 alpha off, 1.28 removed",
    "NewVolumeManagerReconstruction": "1.27 beta on, 1.30 GA on locked, 1.32 removed",
    "NodeDeclaredFeatures": "1.35 alpha off, 1.36 beta on, 1.37 GA on locked",
    "NodeInclusionPolicyInPodTopologySpread": "1.25 alpha off, 1.26 beta on, 1.33 GA on locked",
    "NodeLogQuery": "1.27 alpha off, 1.30 beta off, 1.35 beta on, 1.36 GA on locked",
    "NodeOutOfServiceVolumeDetach": "1.24 alpha off, 1.26 beta on, 1.28 GA on locked, 1.32 removed",
    "NodeSwap": "1.22 alpha off, 1.28 beta off, 1.30 beta on, 1.34 GA on locked",
    "NominatedNodeNameForExpectation": "1.34 alpha off, 1.35 beta on",
    "OpenAPIEnums": "1.23 alpha off, 1.24 beta on",
    "OpenAPIV3": "1.24 beta on, 1.27 GA on locked, 1.29 removed",
    "OpportunisticBatching": "1.35 beta on, 1.38 GA on",
    "OrderedNamespaceDeletion": "1.33 beta on, 1.34 GA on locked",
    "PDBUnhealthyPodEvictionPolicy": "1.26 alpha off, 1.27 beta on, 1.31 GA on locked, 1.33 removed",
    "PLEGOnDemandRelist": "1.36 beta on",
    "PersistentVolumeClaimUnusedSinceTime": "1.36 alpha off",
    "PersistentVolumeLastPhaseTransitionTime": "1.28 alpha off, 1.29 beta on, 1.31 GA on locked, 1.33 removed",
    "PodAndContainerStatsFromCRI": "1.23 alpha off",
    "PodCertificateRequest": "1.34 alpha off, 1.35 beta off",
    "PodDeletionCost": "1.21 alpha off, 1.22 beta on",
    "PodDisruptionConditions": "1.25 alpha off, 1.26 beta on, 1.31 GA on locked, 1.34 removed",
    "PodGroupPreemptionPolicy": "1.37 alpha off",
    "PodHasNetworkCondition": "1.25 alpha off, 1.28 removed",
    "PodHostIPs": "1.28 alpha off, 1.29 beta on, 1.30 GA on locked, 1.32 removed",
    "PodIndexLabel": "1.28 beta on, 1.32 GA on locked, 1.35 removed",
    "PodLevelResourceManagers": "1.36 alpha off",
    "PodLevelResources": "1.32 alpha off, 1.34 beta on, 1.37 GA on",
    "PodLifecycleSleepAction": "1.29 alpha off, 1.30 beta on, 1.34 GA on locked",
    "PodLifecycleSleepActionAllowZero": "1.32 alpha off, 1.33 beta on, 1.34 GA on locked",
    "PodLogsQuerySplitStreams": "1.32 alpha off",
    "PodObservedGenerationTracking": "1.33 alpha off, 1.34 beta on, 1.35 GA on locked",
    "PodReadyToStartContainersCondition": "1.28 alpha off, 1.29 beta on",
    "PodSchedulingReadiness": "1.26 alpha off, 1.27 beta on, 1.30 GA on locked",
    "PodSecurity": "1.25 GA on locked, 1.28 removed",
    "PodTopologyLabelsAdmission": "1.33 alpha off, 1.35 beta on",
    "PodsAPI": "1.36 alpha off",
    "PortForwardWebsockets": "1.30 alpha off, 1.31 beta on",
    "PreferSameTrafficDistribution": "1.33 alpha off, 1.34 beta on, 1.35 GA on locked",
    "PreventStaticPodAPIReferences": "1.34 beta on",
    "ProbeHostPodSecurityStandards": "1.34 GA on locked, 1.35 removed",
    "ProbeTerminationGracePeriod": "1.22 beta on, 1.28 GA on locked, 1.29 removed",
    "ProcMountType": "1.12 alpha off, 1.31 beta off, 1.33 beta on, 1.36 GA on locked",
    "ProxyTerminatingEndpoints": "1.22 alpha off, 1.26 beta on, 1.28 GA on locked, 1.30 removed",
    "QOSReserved": "1.11 alpha off",
    "ReadWriteOncePod": "1.22 alpha off, 1.27 beta on, 1.29 GA on locked, 1.31 removed",
    "RecoverVolumeExpansionFailure": "1.23 alpha off, 1.32 beta on, 1.34 GA on locked",
    "RecursiveReadOnlyMounts": "1.30 alpha off, 1.31 beta on, 1.33 GA on locked",
    "ReduceDefaultCrashLoopBackOffDecay": "1.33 alpha off",
    "RelaxedDNSSearchValidation": "1.32 alpha off, 1.33 beta on, 1.34 GA on locked",
    "RelaxedEnvironmentVariableValidation": "1.30 alpha off, 1.32 beta on, 1.34 GA on locked",
    "RelaxedServiceNameValidation": "1.34 alpha off, 1.36 beta on",
    "ReloadKubeletClientCAFile": "1.36 beta on",
    "ReloadKubeletServerCertificateFile": "1.31 beta on",
    "RemainingItemCount": "1.15 alpha off, 1.16 beta on, 1.29 GA on locked, 1.33 removed",
    "RemoteRequestHeaderUID": "1.32 alpha off, 1.33 beta on",
    "RemoveSelfLink": "1.24 GA on locked, 1.30 removed",
    "ResilientWatchCacheInitialization": "1.31 beta on, 1.34 GA on locked",
    "ResourceHealthStatus": "1.31 alpha off, 1.36 beta on",
    "ResourceHealthStatusMessage": "1.36 beta on",
    "RestartAllContainersOnContainerExits": "1.35 alpha off, 1.36 beta on",
    "RetroactiveDefaultStorageClass": "1.25 alpha off, 1.26 beta on, 1.28 GA on locked, 1.29 removed",
    "RetryGenerateName": "1.30 alpha off, 1.31 beta on, 1.32 GA on locked",
    "RotateKubeletServerCertificate": "1.7 alpha off, 1.12 beta on",
    "RuntimeClassInImageCriApi": "1.29 alpha off",
    "SELinuxChangePolicy": "1.32 alpha off, 1.33 beta on, 1.36 GA on locked",
    "SELinuxMount": "1.30 alpha off, 1.33 beta off",
    "SELinuxMountReadWriteOncePod": "1.25 alpha off, 1.27 beta on, 1.36 GA on locked",
    "SchedulerAsyncAPICalls": "1.34 beta on, 1.35 beta off",
    "SchedulerAsyncPreemption": "1.32 alpha off, 1.33 beta on",
    "SchedulerPopFromBackoffQ": "1.33 beta on",
    "SchedulerPreQueueingHints": "1.37 alpha off",
    "SchedulerQueueingHints": "1.28 beta on, 1.29 beta off, 1.32 beta on, 1.34 GA on locked",
    "SeccompDefault": "1.25 beta on, 1.27 GA on locked, 1.29 removed",
    "SecurityContextDeny": "1.27 alpha off, 1.30 removed",
    "SeparateCacheWatchRPC": "1.30 beta on, 1.33 deprecated off, 1.36 deprecated off locked",
    "SeparateTaintEvictionController": "1.29 beta on, 1.34 GA on locked",
    "ServerSideApply": "1.25 GA on, 1.26 GA on locked, 1.32 removed",
    "ServerSideFieldValidation": "1.24 beta on, 1.27 GA on locked, 1.32 removed",
    "ServiceAccountNodeAudienceRestriction": "1.32 beta off, 1.33 beta on",
    "ServiceAccountTokenJTI": "1.29 alpha off, 1.30 beta on, 1.32 GA on locked",
    "ServiceAccountTokenNodeBinding": "1.29 alpha off, 1.31 beta on, 1.33 GA on locked",
    "ServiceAccountTokenNodeBindingValidation": "1.29 alpha off, 1.30 beta on, 1.32 GA on locked",
    "ServiceAccountTokenPodNodeInfo": "1.29 alpha off, 1.30 beta on, 1.32 GA on locked",
    "ServiceCIDRStatusFieldWiping": "1.36 deprecated on",
    "ServiceIPStaticSubrange": "1.25 beta on, 1.26 GA on locked, 1.28 removed",
    "ServiceInternalTrafficPolicy": "1.22 beta on, 1.26 GA on locked, 1.28 removed",
    "ServiceNodePortStaticSubrange": "1.27 alpha off, 1.28 beta on, 1.29 GA on locked, 1.31 removed",
    "ServiceTrafficDistribution": "1.30 alpha off, 1.31 beta on, 1.33 GA on locked, 1.36 removed",
    "ShardedListAndWatch": "1.36 alpha off",
    "SidecarContainers": "1.28 alpha off, 1.29 beta on, 1.33 GA on locked",
    "SizeBasedListCostEstimate": "1.34 beta on",
    "SizeMemoryBackedVolumes": "1.20 alpha off, 1.22 beta on, 1.32 GA on locked, 1.35 removed",
    "SkipReadOnlyValidationGCE": "1.28 alpha off, 1.29 deprecated on, 1.31 removed",
    "StableLoadBalancerNodeSet": "1.27 beta on, 1.30 GA on locked, 1.32 removed",
    "StaleControllerConsistencyDaemonSet": "1.36 beta on",
    "StaleControllerConsistencyJob": "1.36 beta on",
    "StaleControllerConsistencyReplicaSet": "1.36 beta on",
    "StaleControllerConsistencyStatefulSet": "1.36 beta on",
    "StatefulSetAutoDeletePVC": "1.23 alpha off, 1.27 beta on, 1.32 GA on locked, 1.35 removed",
    "StatefulSetMinReadySeconds": "1.25 GA on locked, 1.27 removed",
    "StatefulSetSemanticRevisionComparison": "1.35 beta on",
    "StatefulSetStartOrdinal": "1.26 alpha off, 1.27 beta on, 1.31 GA on locked, 1.34 removed",
    "StorageCapacityScoring": "1.33 alpha off, 1.37 beta on",
    "StorageNamespaceIndex": "1.30 beta on, 1.33 deprecated on",
    "StorageVersionAPI": "1.20 alpha off",
    "StorageVersionHash": "1.14 alpha off, 1.15 beta on",
    "StorageVersionMigrator": "1.30 alpha off, 1.35 beta off",
    "StreamingCollectionEncodingToJSON": "1.33 beta on, 1.34 GA on locked",
    "StreamingCollectionEncodingToProtobuf": "1.33 beta on, 1.34 GA on locked",
    "StrictCostEnforcementForVAP": "1.31 beta off, 1.32 GA on locked, 1.35 removed",
    "StrictCostEnforcementForWebhooks": "1.31 beta off, 1.32 GA on locked, 1.35 removed",
    "StrictIPCIDRValidation": "1.33 alpha off, 1.36 beta on",
    "StructuredAuthenticationConfiguration": "1.29 alpha off, 1.30 beta on, 1.34 GA on locked",
    "StructuredAuthenticationConfigurationEgressSelector": "1.34 beta on",
    "StructuredAuthenticationConfigurationJWKSMetrics": "1.35 beta on",
    "StructuredAuthorizationConfiguration": "1.29 alpha off, 1.30 beta on, 1.32 GA on locked, 1.36 removed",
    "SupplementalGroupsPolicy": "1.31 alpha off, 1.33 beta on, 1.35 GA on locked",
    "SystemdWatchdog": "1.32 beta on, 1.35 GA on locked",
    "TaintTolerationComparisonOperators": "1.35 alpha off",
    "TokenRequestServiceAccountUIDValidation": "1.34 beta on",
    "TopologyAwareHints": "1.21 alpha off, 1.23 beta off, 1.24 beta on, 1.33 GA on locked, 1.36 removed",
    "TopologyAwareWorkloadScheduling": "1.36 alpha off",
    "TopologyManager": "1.18 beta on, 1.27 GA on locked, 1.29 removed",
    "TopologyManagerPolicyAlphaOptions": "1.26 alpha off",
    "TopologyManagerPolicyBetaOptions": "1.26 beta off, 1.28 beta on",
    "TopologyManagerPolicyOptions": "1.26 alpha off, 1.28 beta on, 1.32 GA on, 1.36 GA on locked",
    "TranslateStreamCloseWebsocketRequests": "1.29 alpha off, 1.30 beta on",
    "UnauthenticatedHTTP2DOSMitigation": "1.28 beta off, 1.29 beta on",
    "UnknownVersionInteroperabilityProxy": "1.28 alpha off, 1.36 beta on",
    "UnlockWhileProcessingFIFO": "1.36 beta on",
    "UserNamespacesHostNetworkSupport": "1.35 alpha off",
    "UserNamespacesPodSecurityStandards": "1.29 alpha off, 1.35 removed",
    "UserNamespacesStatelessPodsSupport": "1.25 alpha off, 1.28 removed",
    "UserNamespacesSupport": "1.28 alpha off, 1.30 beta off, 1.33 beta on, 1.36 GA on locked",
    "ValidatingAdmissionPolicy": "1.26 alpha off, 1.28 beta off, 1.30 GA on locked, 1.32 removed",
    "VolumeAttributesClass": "1.29 alpha off, 1.31 beta off, 1.34 GA on, 1.36 GA on locked",
    "VolumeCapacityPriority": "1.21 alpha off, 1.33 removed",
    "VolumeLimitScaling": "1.35 alpha off, 1.37 beta on, 1.38 GA on",
    "WatchBookmark": "1.15 alpha off, 1.16 beta on, 1.17 GA on locked, 1.33 removed",
    "WatchCacheInitializationPostStartHook": "1.31 beta off, 1.36 beta on",
    "WatchFromStorageWithoutResourceVersion": "1.30 beta off, 1.33 deprecated off locked, 1.36 removed",
    "WatchList": "1.27 alpha off, 1.32 beta on, 1.33 beta off, 1.34 beta on",
    "WatchListClient": "1.30 beta off, 1.35 beta on",
    "WinDSR": "1.14 alpha off, 1.33 beta on, 1.34 GA on locked",
    "WinOverlay": "1.14 alpha off, 1.20 beta on, 1.34 GA on locked",
    "WindowsCPUAndMemoryAffinity": "1.32 alpha off",
    "WindowsGracefulNodeShutdown": "1.32 alpha off, 1.34 beta on",
    "WindowsHostNetwork": "1.26 alpha on, 1.33 deprecated off",
    "WindowsHostProcessContainers": "1.23 beta on, 1.26 GA on locked, 1.28 removed",
    "WorkloadAwarePreemption": "1.36 alpha off, 1.37 removed",
    "WorkloadWithJob": "1.36 alpha off",
    "ZeroLimitedNominalConcurrencyShares": "1.29 beta off, 1.30 GA on locked, 1.32 removed",
}

DEPENDENCIES: Mapping[str, tuple[str, ...]] = {
    "AuthorizeNodeWithSelectors": ("AuthorizeWithSelectors",),
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DRAAdminAccess": ("DynamicResourceAllocation",),
    "DRAConsumableCapacity": ("DynamicResourceAllocation",),
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRADeviceTaints": ("DynamicResourceAllocation",),
    "DRAExtendedResource": ("DynamicResourceAllocation",),
    "DRAListTypeAttributes": ("DynamicResourceAllocation",),
    "DRANodeAllocatableResources": ("DynamicResourceAllocation",),
    "DRAPartitionableDevices": ("DynamicResourceAllocation",),
    "DRAPrioritizedList": ("DynamicResourceAllocation",),
    "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"),
    "DRAResourcePoolStatus": ("DynamicResourceAllocation",),
    "DRASchedulerFilterTimeout": ("DynamicResourceAllocation",),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "DeclarativeValidationBeta": ("DeclarativeValidation",),
    "DeclarativeValidationTakeover": ("DeclarativeValidation",),
    "DisableAllocatorDualWrite": ("MultiCIDRServiceAllocator",),
    "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "ImageVolumeWithDigest": ("ImageVolume",),
    "InPlacePodLevelResourcesVerticalScaling": (
        "InPlacePodVerticalScaling",
        "NodeDeclaredFeatures",
        "PodLevelResources",
    ),
    "InPlacePodVerticalScalingExclusiveCPUs": ("InPlacePodVerticalScaling",),
    "InPlacePodVerticalScalingExclusiveMemory": ("InPlacePodVerticalScaling",),
    "InPlacePodVerticalScalingInitContainers": ("InPlacePodVerticalScaling", "NodeDeclaredFeatures"),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "PodCertificateRequest": ("AuthorizeNodeWithSelectors",),
    "PodLevelResourceManagers": ("PodLevelResources",),
    "PodLifecycleSleepActionAllowZero": ("PodLifecycleSleepAction",),
    "ProcMountType": ("UserNamespacesSupport",),
    "ResourceHealthStatus": ("DynamicResourceAllocation",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "ServiceAccountTokenNodeBinding": ("ServiceAccountTokenNodeBindingValidation",),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "StorageVersionAPI": ("APIServerIdentity",),
    "StructuredAuthenticationConfigurationEgressSelector": ("StructuredAuthenticationConfiguration",),
    "StructuredAuthenticationConfigurationJWKSMetrics": ("StructuredAuthenticationConfiguration",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "UserNamespacesHostNetworkSupport": ("NodeDeclaredFeatures", "UserNamespacesSupport"),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""Each gate with the gates that must be on if it is on."""

_MERGED: Mapping[str, tuple[str, str]] = {
    "GangScheduling": ("GenericWorkload", "1.37"),
    "WorkloadAwarePreemption": ("GenericWorkload", "1.37"),
}
"""Each merged gate with the gate that replaces it, and since which version: from then on, it has that gate's value."""

_DEPENDENCIES_SINCE = "1.35"  # the first version that checks dependencies


# Feature gates of a version, with the user's settings (component-base/featuregate/feature_gate.go).

_GROUPS = {"AllAlpha": "alpha", "AllBeta": "beta"}
"""Gates that stand for all gates of a stage, except for those set by name."""

_REMOVED = "removed"


class _GateSpec(Struct, frozen=True, kw_only=True):
    stage: str
    default: bool
    locked: bool


@cache
def specs(version: str) -> Mapping[str, _GateSpec]:
    """Return the gates that exist in a minor version."""
    return {gate: spec for gate, spec in _ever(version).items() if spec.stage != _REMOVED}


@cache
def _ever(version: str) -> dict[str, _GateSpec]:
    """Return the gates of a minor version and of earlier ones; a removed gate keeps its last default."""
    at = minor(version)
    known: dict[str, _GateSpec] = {}
    for gate, history in HISTORY.items():
        for entry in history.split(", "):
            since, stage, *words = entry.split()
            if minor(since) > at:
                break
            default = known[gate].default if stage == _REMOVED else words[0] == "on"
            known[gate] = _GateSpec(stage=stage, default=default, locked="locked" in words)
    return known


def resolve_gates(version: str, wanted: Mapping[str, bool]) -> dict[str, bool]:
    """Return the value of every gate of the version, and of removed gates.

    A gate set by name overrides AllAlpha and AllBeta. Raises `ConfigError` for an unknown gate, for a gate that is
    locked to the other value, and for a gate that is on although a gate on which it depends is off.
    """
    known = specs(version)
    for gate, value in wanted.items():
        if gate in _GROUPS:
            continue
        spec = known.get(gate)
        if spec is None:
            hint = nearest(gate, [*known, *_GROUPS]) or f"{len(known)} gates exist in Kubernetes {version}"
            raise ConfigError(f"unrecognized feature gate: {json.dumps(gate)}", hint=hint)
        if spec.locked and spec.default != value:
            fixed = _word(spec.default)
            raise ConfigError(f"cannot set feature gate {gate} to {_word(value)}, feature is locked to {fixed}")
    values = {gate: spec.default for gate, spec in _ever(version).items()}
    for group, stage in _GROUPS.items():
        if group in wanted:
            values |= {gate: wanted[group] for gate, spec in known.items() if spec.stage == stage}
    values |= {gate: value for gate, value in wanted.items() if gate not in _GROUPS}
    values |= {gate: values[whole] for gate, (whole, since) in _MERGED.items() if minor(since) <= minor(version)}
    if minor(version) >= minor(_DEPENDENCIES_SINCE):
        _check_dependencies(values)
    return values


def _check_dependencies(values: Mapping[str, bool]) -> None:
    for gate, needs in DEPENDENCIES.items():
        if not values.get(gate, False):
            continue
        off = [need for need in needs if not values.get(need, False)]
        if off:
            raise ConfigError(
                f"{gate} is enabled, but depends on features that are disabled: [{' '.join(off)}]",
                hint=f"turn {gate} off as well, or {' and '.join(off)} on",
            )


def _word(value: bool) -> str:
    return "true" if value else "false"
