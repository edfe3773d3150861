"""Every kind that is read, one entry each: where it is served, how it is decoded, who needs it.

Adding a kind is one entry. A typed kind has a record; an observed kind has the field paths that may be
kept (``[]`` steps into a list, ``*`` into any key), all its other fields are dropped. Leaves out what a
field means: that is the adapters' concern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gangdash.kube.records import base, core, dra, events, kai, storage

_CONDITIONS = tuple(
    f"status.conditions[].{f}"
    for f in ("type", "status", "reason", "message", "lastTransitionTime", "observedGeneration")
)
_COMPONENT = ("spec.replicas", "status.replicas", "status.readyReplicas", "status.availableReplicas",
              "status.updatedReplicas", "status.unavailableReplicas", "status.observedGeneration")  # fmt: skip
_CONTAINERS = ("containers[].name", "containers[].image", "containers[].resources.requests",
               "containers[].resources.limits")  # fmt: skip
_PLACEMENT = ("schedulerName", "nodeSelector", "priorityClassName", "runtimeClassName", "tolerations[].key",
              "tolerations[].operator", "tolerations[].value", "tolerations[].effect")  # fmt: skip
_NODE_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]"
_NODE_AFFINITY = tuple(f"{_NODE_TERMS}.matchExpressions[].{f}" for f in ("key", "operator", "values"))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object. ``versions`` in order of preference; ``in_snapshot`` is its key in a KAI snapshot."""

    name: str
    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool = True
    record: type[base.Record] = base.Observed
    paths: tuple[str, ...] = ()
    in_snapshot: str = ""
    required: bool = False
    """Without it no gang can be explained; all others only matter to some."""
    live: bool = False
    """Read from a live cluster; the others are read from dumps only."""
    seldom: bool = False
    """Changes rarely: a live reading may reuse the last one for a while, and the server may answer from its cache."""
    names_only: bool = False
    """Listed as metadata: the content is not asked for."""
    field_selector: str = ""
    """Objects that matter, as the server can select them; the others are not asked for."""

    @property
    def is_observed(self) -> bool:
        return self.record is base.Observed

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def path(self, version: str) -> str:
        """Return where all objects of the kind are listed."""
        return f"/apis/{self.group}/{version}/{self.plural}" if self.group else f"/api/{version}/{self.plural}"


def _under(prefix: str, *paths: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{p}" for p in paths)


_POD_TEMPLATE = (*_CONTAINERS, *_PLACEMENT)
_TOPOLOGY_CONSTRAINT = ("topologyConstraint.topologyName", "topologyConstraint.packDomain",
                        "topologyConstraint.pack.required", "topologyConstraint.pack.preferred")  # fmt: skip
_PACK = ("topologyConstraint.packConstraint.required", "topologyConstraint.packConstraint.preferred")
_RAY_GROUPS = ("workerGroupSpecs[].groupName", "workerGroupSpecs[].replicas", "workerGroupSpecs[].minReplicas",
               "workerGroupSpecs[].maxReplicas", "workerGroupSpecs[].numOfHosts",
               "workerGroupSpecs[].suspend")  # fmt: skip
_REPLICA_SPECS = ("pytorchReplicaSpecs.*.replicas", *_under("pytorchReplicaSpecs.*.template.spec", *_POD_TEMPLATE))
_WEBHOOKS = ("webhooks[].name", "webhooks[].failurePolicy", "webhooks[].clientConfig.service.name",
             "webhooks[].clientConfig.service.namespace", "webhooks[].rules[].apiGroups",
             "webhooks[].rules[].resources", "webhooks[].rules[].operations", "webhooks[].timeoutSeconds")  # fmt: skip

_CORE = (
    Kind("Node", "", ("v1",), "nodes", namespaced=False, record=core.Node, in_snapshot="nodes", required=True,
         live=True),
    Kind("Pod", "", ("v1",), "pods", record=core.Pod, in_snapshot="pods", required=True, live=True),
    Kind("Namespace", "", ("v1",), "namespaces", namespaced=False, record=core.Namespace, live=True, seldom=True,
         names_only=True),
    Kind("ConfigMap", "", ("v1",), "configmaps", record=kai.ConfigMap, in_snapshot="configMaps", live=True,
         names_only=True),
    Kind("Event", "", ("v1",), "events", record=events.Event, live=True),
    Kind("PersistentVolumeClaim", "", ("v1",), "persistentvolumeclaims", record=storage.PersistentVolumeClaim,
         in_snapshot="persistentVolumeClaims", live=True),
    Kind("PersistentVolume", "", ("v1",), "persistentvolumes", namespaced=False, record=storage.PersistentVolume,
         in_snapshot="persistentVolumes", live=True),
    Kind("PriorityClass", "scheduling.k8s.io", ("v1",), "priorityclasses", namespaced=False,
         record=core.PriorityClass, in_snapshot="priorityClasses", live=True, seldom=True),
    Kind("StorageClass", "storage.k8s.io", ("v1",), "storageclasses", namespaced=False, record=storage.StorageClass,
         in_snapshot="storageClasses", live=True, seldom=True),
    Kind("CSIDriver", "storage.k8s.io", ("v1",), "csidrivers", namespaced=False, record=storage.CSIDriver,
         in_snapshot="csiDrivers", live=True, seldom=True),
    Kind("CSIStorageCapacity", "storage.k8s.io", ("v1",), "csistoragecapacities", record=storage.CSIStorageCapacity,
         in_snapshot="csiStorageCapacities", live=True),
)  # fmt: skip

_DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")
_DRA = (
    Kind("ResourceClaim", "resource.k8s.io", _DRA_VERSIONS, "resourceclaims", record=dra.ResourceClaim,
         in_snapshot="resourceClaims", live=True),
    Kind("ResourceSlice", "resource.k8s.io", _DRA_VERSIONS, "resourceslices", namespaced=False,
         record=dra.ResourceSlice, in_snapshot="resourceSlices", live=True),
    Kind("DeviceClass", "resource.k8s.io", _DRA_VERSIONS, "deviceclasses", namespaced=False, record=dra.DeviceClass,
         in_snapshot="deviceClasses", live=True, seldom=True),
    Kind("ResourceClaimTemplate", "resource.k8s.io", _DRA_VERSIONS, "resourceclaimtemplates", live=True, seldom=True,
         paths=("spec.spec.devices.requests[].name", "spec.spec.devices.requests[].exactly.deviceClassName",
                "spec.spec.devices.requests[].exactly.count", "spec.spec.devices.requests[].exactly.allocationMode",
                "spec.spec.devices.requests[].deviceClassName", "spec.spec.devices.requests[].count")),
    Kind("NodeResourceTopology", "topology.node.k8s.io", ("v1alpha2",), "noderesourcetopologies", namespaced=False,
         in_snapshot="nodeResourceTopologies", live=True,
         paths=("zones[].name", "zones[].type", "zones[].resources[].name", "zones[].resources[].capacity",
                "zones[].resources[].allocatable", "zones[].resources[].available", "zones[].costs[].name",
                "zones[].costs[].value", "attributes[].name", "attributes[].value", "topologyPolicies")),
    Kind("ComputeDomain", "resource.nvidia.com", ("v1beta1",), "computedomains", live=True,
         paths=("spec.numNodes", "spec.channel.resourceClaimTemplate.name", "status.status", "status.nodes[].name",
                "status.nodes[].cliqueID", "status.nodes[].status", "status.nodes[].index")),
)  # fmt: skip

_KAI = (
    Kind("PodGroup", "scheduling.run.ai", ("v2alpha2",), "podgroups", record=kai.PodGroup, in_snapshot="podGroups",
         required=True, live=True),
    Kind("Queue", "scheduling.run.ai", ("v2",), "queues", namespaced=False, record=kai.Queue, in_snapshot="queues",
         required=True, live=True),
    Kind("BindRequest", "scheduling.run.ai", ("v1alpha2",), "bindrequests", record=kai.BindRequest,
         in_snapshot="bindRequests", live=True),
    Kind("Topology", "kai.scheduler", ("v1alpha1",), "topologies", namespaced=False, record=kai.Topology,
         in_snapshot="topologies", live=True, seldom=True),
    Kind("SchedulingShard", "kai.scheduler", ("v1",), "schedulingshards", namespaced=False,
         record=kai.SchedulingShard, live=True, seldom=True),
    Kind("Config", "kai.scheduler", ("v1",), "configs", namespaced=False, record=kai.Config, live=True, seldom=True),
)  # fmt: skip

_CONTROLLERS = (
    Kind("Deployment", "apps", ("v1",), "deployments", live=True,
         paths=(*_COMPONENT, *_under("spec.template.spec", *_POD_TEMPLATE, "containers[].args"),
                "spec.selector.matchLabels", "spec.paused", *_CONDITIONS)),
    Kind("ReplicaSet", "apps", ("v1",), "replicasets", live=True,
         paths=(*_COMPONENT, "spec.selector.matchLabels", *_CONDITIONS)),
    Kind("StatefulSet", "apps", ("v1",), "statefulsets", live=True,
         paths=(*_COMPONENT, *_under("spec.template.spec", *_POD_TEMPLATE), "spec.serviceName", "spec.ordinals.start",
                "spec.podManagementPolicy", "spec.selector.matchLabels", *_CONDITIONS)),
    Kind("DaemonSet", "apps", ("v1",), "daemonsets", live=True,
         paths=(*_under("spec.template.spec", *_POD_TEMPLATE, *_NODE_AFFINITY), "spec.selector.matchLabels",
                "status.currentNumberScheduled", "status.desiredNumberScheduled", "status.numberAvailable",
                "status.numberMisscheduled", "status.numberReady", "status.numberUnavailable",
                "status.observedGeneration", *_CONDITIONS)),
    Kind("Job", "batch", ("v1",), "jobs", live=True,
         paths=("spec.parallelism", "spec.completions", "spec.completionMode", "spec.backoffLimit", "spec.suspend",
                "spec.managedBy", *_under("spec.template.spec", *_POD_TEMPLATE), "status.active", "status.ready",
                "status.succeeded", "status.failed", "status.terminating", "status.startTime",
                "status.completionTime", *_CONDITIONS)),
    Kind("LeaderWorkerSet", "leaderworkerset.x-k8s.io", ("v1",), "leaderworkersets", live=True,
         paths=("spec.replicas", "spec.startupPolicy", "spec.leaderWorkerTemplate.size",
                "spec.leaderWorkerTemplate.restartPolicy", "status.replicas", "status.readyReplicas",
                *_CONDITIONS)),
    Kind("JobSet", "jobset.x-k8s.io", ("v1alpha2",), "jobsets", live=True,
         paths=("spec.suspend", "spec.startupPolicy.startupPolicyOrder", "spec.replicatedJobs[].name",
                "spec.replicatedJobs[].replicas", "spec.replicatedJobs[].template.spec.parallelism",
                "spec.replicatedJobs[].template.spec.completions", "spec.replicatedJobs[].dependsOn[].name",
                "spec.replicatedJobs[].dependsOn[].status", "status.restarts", "status.terminalState",
                "status.replicatedJobsStatus[].name", "status.replicatedJobsStatus[].ready",
                "status.replicatedJobsStatus[].active", "status.replicatedJobsStatus[].suspended", *_CONDITIONS)),
    Kind("RayCluster", "ray.io", ("v1",), "rayclusters", live=True,
         paths=("spec.suspend", "spec.enableInTreeAutoscaling", *_under("spec", *_RAY_GROUPS),
                *_under("spec.headGroupSpec.template.spec", *_POD_TEMPLATE),
                *_under("spec.workerGroupSpecs[].template.spec", *_POD_TEMPLATE), "status.state", "status.reason",
                "status.availableWorkerReplicas", "status.readyWorkerReplicas", "status.desiredWorkerReplicas",
                "status.minWorkerReplicas", "status.maxWorkerReplicas", "status.observedGeneration", *_CONDITIONS)),
    Kind("RayJob", "ray.io", ("v1",), "rayjobs", live=True,
         paths=("spec.suspend", *_under("spec.rayClusterSpec", *_RAY_GROUPS), "status.jobStatus",
                "status.jobDeploymentStatus", "status.rayClusterName", "status.startTime", "status.reason",
                "status.message")),
    Kind("PyTorchJob", "kubeflow.org", ("v1",), "pytorchjobs", live=True,
         paths=(*_under("spec", *_REPLICA_SPECS), "spec.runPolicy.suspend",
                "spec.runPolicy.schedulingPolicy.minAvailable", "status.startTime", "status.completionTime",
                "status.replicaStatuses.*.active", "status.replicaStatuses.*.succeeded",
                "status.replicaStatuses.*.failed", *_CONDITIONS)),
)  # fmt: skip

_GROVE = (
    Kind("PodCliqueSet", "grove.io", ("v1alpha1",), "podcliquesets", live=True,
         paths=("spec.replicas", "spec.template.cliqueStartupType", "spec.template.startupType",
                "spec.template.terminationDelay", "spec.template.priorityClassName",
                *_under("spec.template", *_TOPOLOGY_CONSTRAINT),
                *_under("spec.template.cliques[]", "name", "labels", *_TOPOLOGY_CONSTRAINT, "spec.roleName",
                        "spec.replicas", "spec.minAvailable", "spec.startsAfter", "spec.autoScalingConfig.minReplicas",
                        "spec.autoScalingConfig.maxReplicas"),
                *_under("spec.template.cliques[].spec.podSpec", *_POD_TEMPLATE),
                *_under("spec.template.podCliqueScalingGroups[]", "name", "cliqueNames", "replicas", "minAvailable",
                        "scaleConfig.minReplicas", "scaleConfig.maxReplicas", *_TOPOLOGY_CONSTRAINT),
                "spec.updateStrategy.type",
                "status.replicas", "status.availableReplicas", "status.updatedReplicas", "status.observedGeneration",
                "status.currentGenerationHash", "status.updateProgress.updateStartedAt",
                "status.updateProgress.updateEndedAt", "status.updateProgress.currentlyUpdating[].replicaIndex",
                "status.updateProgress.currentlyUpdating[].updateStartedAt",
                "status.updateProgress.totalPodCliquesCount", "status.updateProgress.updatedPodCliquesCount",
                "status.updateProgress.totalPodCliqueScalingGroupsCount",
                "status.updateProgress.updatedPodCliqueScalingGroupsCount", "status.lastErrors[].code",
                "status.lastErrors[].description", "status.lastErrors[].observedAt", *_CONDITIONS)),
    Kind("PodClique", "grove.io", ("v1alpha1",), "podcliques", live=True,
         paths=("spec.roleName", "spec.replicas", "spec.minAvailable", "spec.startsAfter",
                *_under("spec", *_TOPOLOGY_CONSTRAINT), *_under("spec.podSpec", *_POD_TEMPLATE), "status.replicas",
                "status.readyReplicas", "status.scheduledReplicas", "status.scheduleGatedReplicas",
                "status.updatedReplicas", "status.observedGeneration", "status.currentPodTemplateHash",
                "status.currentPodCliqueSetGenerationHash", "status.updateProgress.updateStartedAt",
                "status.updateProgress.updateEndedAt", "status.lastErrors[].code", "status.lastErrors[].description",
                "status.lastErrors[].observedAt", *_CONDITIONS)),
    Kind("PodCliqueScalingGroup", "grove.io", ("v1alpha1",), "podcliquescalinggroups", live=True,
         paths=("spec.replicas", "spec.minAvailable", "spec.cliqueNames", "status.replicas", "status.availableReplicas",
                "status.scheduledReplicas", "status.updatedReplicas", "status.observedGeneration",
                "status.lastErrors[].code", "status.lastErrors[].description", "status.lastErrors[].observedAt",
                *_CONDITIONS)),
    Kind("PodGang", "scheduler.grove.io", ("v1alpha1",), "podgangs", live=True,
         paths=("spec.priorityClassName", "spec.podgroups[].name", "spec.podgroups[].minReplicas",
                "spec.podgroups[].podReferences[].namespace", "spec.podgroups[].podReferences[].name",
                *_under("spec.podgroups[]", *_PACK), *_under("spec", *_PACK),
                *_under("spec.topologyConstraintGroupConfigs[]", "name", "podGroupNames", *_PACK),
                "spec.reuseReservationRef.name", "status.phase", "status.placementScore", *_CONDITIONS)),
    Kind("PodGangMap", "grove.io", ("v1alpha1",), "podgangmaps", live=True,
         paths=("spec.podCliqueSetReplicaIndex",
                *_under("spec.entries[]", "epoch", "podCliqueSetGenerationHash", "role", "anchorIndex", "podCliques",
                        "pcsgReplicaIndices.*", "dependsOn"))),
    Kind("ClusterTopologyBinding", "grove.io", ("v1alpha1",), "clustertopologybindings", namespaced=False,
         live=True, seldom=True,
         paths=("spec.levels[].domain", "spec.levels[].key", "spec.schedulerTopologyBindings[].schedulerName",
                "spec.schedulerTopologyBindings[].topologyReference", "status.observedGeneration",
                "status.schedulerTopologyStatuses[].schedulerName",
                "status.schedulerTopologyStatuses[].topologyReference", "status.schedulerTopologyStatuses[].inSync",
                "status.schedulerTopologyStatuses[].message", *_CONDITIONS)),
    Kind("ClusterTopology", "grove.io", ("v1alpha1",), "clustertopologies", namespaced=False, live=True, seldom=True,
         paths=("spec.levels[].domain", "spec.levels[].key", *_CONDITIONS)),
    Kind("PodGangSet", "grove.io", ("v1alpha1",), "podgangsets", live=True, names_only=True),
)  # fmt: skip

_DGD_STATUS = ("componentKind", "componentName", "componentNames", "replicas", "updatedReplicas", "readyReplicas",
               "availableReplicas", "scheduledReplicas")  # fmt: skip
_DGD_REPLICAS = ("replicas", "minAvailable", "multinode.nodeCount", "dynamoNamespace", "componentType",
                 "subComponentType", "resources.requests", "resources.limits",
                 "scalingAdapter.enabled", *_TOPOLOGY_CONSTRAINT)  # fmt: skip
_DYNAMO = (
    Kind("DynamoGraphDeployment", "nvidia.com", ("v1beta1", "v1alpha1"), "dynamographdeployments", live=True,
         paths=("spec.backendFramework", "spec.priorityClassName", "spec.restart.id",
                "spec.topologyConstraint.clusterTopologyName", "status.rollingUpdate.phase", "status.restart.phase",
                *_under("spec", *_TOPOLOGY_CONSTRAINT), *_under("spec.services.*", *_DGD_REPLICAS),
                *_under("spec.services.*.extraPodSpec", *_PLACEMENT),
                *_under("spec.components[]", "name", "type", *_DGD_REPLICAS),
                *_under("spec.components[].podTemplate.spec", *_POD_TEMPLATE), "status.state",
                "status.observedGeneration", *_under("status.services.*", *_DGD_STATUS),
                *_under("status.components.*", *_DGD_STATUS), *_CONDITIONS)),
    Kind("DynamoComponentDeployment", "nvidia.com", ("v1beta1", "v1alpha1"), "dynamocomponentdeployments", live=True,
         paths=("spec.backendFramework", "spec.name", "spec.serviceName", "spec.type", *_under("spec", *_DGD_REPLICAS),
                *_under("spec.podTemplate.spec", *_POD_TEMPLATE), *_under("spec.extraPodSpec", *_PLACEMENT),
                *_under("status.service", *_DGD_STATUS), "status.observedGeneration", *_CONDITIONS)),
    Kind("DynamoGraphDeploymentScalingAdapter", "nvidia.com", ("v1beta1", "v1alpha1"),
         "dynamographdeploymentscalingadapters", live=True,
         paths=("spec.replicas", "spec.dgdRef.name", "spec.dgdRef.serviceName", "spec.dgdRef.componentName",
                "status.replicas", "status.lastScaleTime")),
    Kind("DynamoGraphDeploymentRequest", "nvidia.com", ("v1beta1", "v1alpha1"), "dynamographdeploymentrequests",
         live=True,
         paths=("spec.backend", "spec.model", "spec.autoApply",
                *_under("spec.overrides.profilingJob.template.spec", *_PLACEMENT), "status.dgdName", "status.phase",
                "status.state", "status.profilingPhase", "status.profilingJobName", "status.observedGeneration",
                "status.deployment.name", "status.deployment.namespace", *_CONDITIONS)),
    Kind("DynamoModel", "nvidia.com", ("v1beta1", "v1alpha1"), "dynamomodels", live=True,
         paths=("spec.modelName", "spec.baseModelName", "spec.modelType", "status.endpoints[].podName",
                "status.endpoints[].ready", "status.readyEndpoints", "status.totalEndpoints", *_CONDITIONS)),
    Kind("DynamoWorkerMetadata", "nvidia.com", ("v1beta1", "v1alpha1"), "dynamoworkermetadatas", live=True,
         names_only=True),
    Kind("DynamoCheckpoint", "nvidia.com", ("v1alpha1",), "dynamocheckpoints", live=True,
         paths=("status.phase", *_CONDITIONS)),
)  # fmt: skip

_NVCF = (
    Kind("NVCFBackend", "nvcf.nvidia.io", ("v1",), "nvcfbackends", live=True,
         paths=("spec.version", "spec.featureGate.values", "spec.overrides.featureGate.values", "spec.clusterSource",
                *_under("spec.clusterConfig", "clusterID", "clusterName", "clusterGroupID", "clusterGroupName",
                        "region", "cloudProvider", "attributes"),
                "status.agentStatus", "status.version", "status.kubernetesVersion", "status.lastUpdatedAgentStatus",
                *_under("status.gpuUsage.*", "capacity", "available", "allocated"))),
    Kind("ICMSRequest", "nvca.nvcf.nvidia.io", ("v2beta1",), "icmsrequests", live=True,
         paths=("spec.requestId", "spec.ncaId", "spec.action",
                *_under("spec.functionDetails", "functionId", "functionVersionId", "functionType"),
                *_under("spec.taskDetails", "taskId", "taskType"),
                *_under("spec.creationMsgInfo", "instanceCount", "instanceTypeName", "instanceTypeValue", "gpuType",
                        "requestedGPUCount", "deploymentId", "gpuSpecificationId"),
                "status.requestStatus", "status.lastStatusUpdated")),
    Kind("MiniService", "nvca.nvcf.nvidia.io", ("v1alpha1",), "miniservices", namespaced=False, live=True,
         paths=("spec.namespace", "spec.icmsRequestName", "status.phase", "status.revision",
                "status.lastPhaseTransitionTime", *_CONDITIONS)),
    Kind("StorageRequest", "nvca.nvcf.nvidia.io", ("v1", "v2beta1"), "storagerequests", live=True,
         paths=("spec.type", "status.phase", *_CONDITIONS)),
)  # fmt: skip

_PLATFORM = (
    Kind("Lease", "coordination.k8s.io", ("v1",), "leases", live=True, seldom=True,
         field_selector="metadata.namespace!=kube-node-lease",
         paths=("spec.holderIdentity", "spec.acquireTime", "spec.renewTime", "spec.leaseDurationSeconds",
                "spec.leaseTransitions")),
    Kind("CustomResourceDefinition", "apiextensions.k8s.io", ("v1",), "customresourcedefinitions", namespaced=False,
         live=True, seldom=True,
         paths=("spec.group", "spec.names.kind", "spec.names.plural", "spec.scope", "spec.versions[].name",
                "spec.versions[].served", "spec.versions[].storage", "status.storedVersions", *_CONDITIONS)),
    Kind("ValidatingWebhookConfiguration", "admissionregistration.k8s.io", ("v1",), "validatingwebhookconfigurations",
         namespaced=False, live=True, seldom=True, paths=_WEBHOOKS),
    Kind("MutatingWebhookConfiguration", "admissionregistration.k8s.io", ("v1",), "mutatingwebhookconfigurations",
         namespaced=False, live=True, seldom=True, paths=_WEBHOOKS),
    Kind("ClusterRole", "rbac.authorization.k8s.io", ("v1",), "clusterroles", namespaced=False, live=True, seldom=True,
         field_selector="metadata.name=nvca-operator-allowed-extra-types",
         paths=("rules[].apiGroups", "rules[].resources", "rules[].verbs")),
    Kind("ResourceQuota", "", ("v1",), "resourcequotas", live=True,
         paths=("spec.hard", "spec.scopes", "spec.scopeSelector.matchExpressions[].scopeName",
                "spec.scopeSelector.matchExpressions[].operator", "spec.scopeSelector.matchExpressions[].values",
                "status.hard", "status.used")),
    Kind("Service", "", ("v1",), "services", live=True, seldom=True,
         paths=("spec.selector", "spec.clusterIP", "spec.type", "spec.publishNotReadyAddresses", "spec.ports[].name",
                "spec.ports[].port", "spec.ports[].targetPort")),
    Kind("EndpointSlice", "discovery.k8s.io", ("v1",), "endpointslices",
         paths=("addressType", "ports[].name", "ports[].port", "endpoints[].addresses", "endpoints[].conditions.ready",
                "endpoints[].conditions.serving", "endpoints[].conditions.terminating", "endpoints[].nodeName",
                "endpoints[].targetRef.kind", "endpoints[].targetRef.namespace", "endpoints[].targetRef.name")),
    Kind("PodDisruptionBudget", "policy", ("v1",), "poddisruptionbudgets", live=True,
         paths=("spec.minAvailable", "spec.maxUnavailable", "spec.selector.matchLabels", "status.disruptionsAllowed",
                "status.currentHealthy", "status.desiredHealthy", "status.expectedPods", *_CONDITIONS)),
    Kind("ClusterPolicy", "nvidia.com", ("v1",), "clusterpolicies", namespaced=False, live=True, seldom=True,
         paths=("status.state", *_CONDITIONS)),
    Kind("RuntimeClass", "node.k8s.io", ("v1",), "runtimeclasses", namespaced=False, live=True, seldom=True,
         paths=("handler", "overhead.podFixed", "scheduling.nodeSelector")),
)  # fmt: skip

_KUEUE_VERSIONS = ("v1beta2", "v1beta1")
_KUEUE = (
    Kind("Workload", "kueue.x-k8s.io", _KUEUE_VERSIONS, "workloads", live=True,
         paths=("spec.active", "spec.queueName", "spec.priority", "spec.podSets[].name", "spec.podSets[].count",
                "spec.podSets[].minCount", "status.admission.clusterQueue",
                *_under("status.admission.podSetAssignments[]", "name", "count", "flavors", "resourceUsage",
                        "topologyAssignment.levels", "topologyAssignment.domains[].values",
                        "topologyAssignment.domains[].count"),
                "status.requeueState.count", "status.requeueState.requeueAt", *_CONDITIONS)),
    Kind("LocalQueue", "kueue.x-k8s.io", _KUEUE_VERSIONS, "localqueues", live=True,
         paths=("spec.clusterQueue", "spec.stopPolicy", "status.admittedWorkloads", "status.pendingWorkloads",
                *_CONDITIONS)),
    Kind("ClusterQueue", "kueue.x-k8s.io", _KUEUE_VERSIONS, "clusterqueues", namespaced=False, live=True,
         paths=("spec.cohort", "spec.cohortName", "spec.stopPolicy", "spec.resourceGroups[].coveredResources",
                *_under("spec.resourceGroups[].flavors[]", "name", "resources[].name", "resources[].nominalQuota",
                        "resources[].borrowingLimit", "resources[].lendingLimit"),
                "status.flavorsUsage[].name", "status.flavorsUsage[].resources[].name",
                "status.flavorsUsage[].resources[].total", "status.admittedWorkloads", "status.pendingWorkloads",
                *_CONDITIONS)),
    Kind("ResourceFlavor", "kueue.x-k8s.io", _KUEUE_VERSIONS, "resourceflavors", namespaced=False,
         live=True, seldom=True,
         paths=("spec.nodeLabels", "spec.topologyName")),
)  # fmt: skip

KINDS = (*_CORE, *_DRA, *_KAI, *_CONTROLLERS, *_GROVE, *_DYNAMO, *_NVCF, *_PLATFORM, *_KUEUE)


@cache
def by_name() -> dict[str, Kind]:
    return {kind.name: kind for kind in KINDS}


@cache
def live() -> tuple[Kind, ...]:
    """Return the kinds that a live cluster is polled for, in the order in which they are read.

    What gangs are made of comes last and close together, so that its parts fit; a BindRequest before its pod, so that
    a pod bound in between looks bound and not forgotten.
    """
    return tuple(sorted((kind for kind in KINDS if kind.live), key=lambda kind: kind.required))


@cache
def _by_api() -> dict[tuple[str, str], Kind]:
    served = {(kind.api_version(v), kind.name): kind for kind in KINDS for v in kind.versions}
    return served | {("events.k8s.io/v1", "Event"): by_name()["Event"]}


def find(api_version: str, kind: str) -> Kind | None:
    """Return the entry that understands objects of this version and kind."""
    return _by_api().get((api_version, kind))


Tree = dict[str, "Tree"]
"""Field paths as a tree: steps are field names, ``[]`` and ``*``; a leaf is kept whole."""


@cache
def path_tree(paths: tuple[str, ...]) -> Tree:
    root: Tree = {}
    for path in paths:
        node = root
        for step in path.replace("[]", ".[]").split("."):
            node = node.setdefault(step, {})
    return root
