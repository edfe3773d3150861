"""Which kinds the fake API server knows: group, versions, scope, and how their lists look.

Kept apart from the reader's own table of kinds on purpose: a wrong group or plural there must fail against this one.
Built-in kinds come without kind and apiVersion inside lists, custom ones with both, as real servers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One served kind; the first version is the preferred one, every version shows the same fields."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    namespaced: bool
    builtin: bool
    deprecated: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """Name the kind as access rules do: `pods`, `podgroups.scheduling.run.ai`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str | None = None) -> str:
        """Return `v1` or `group/version`, of the preferred version unless told."""
        chosen = version or self.versions[0]
        return f"{self.group}/{chosen}" if self.group else chosen


def _builtin(group: str, versions: str, *names: str, namespaced: bool = True) -> list[Kind]:
    """Make built-in kinds from `plural/Kind` pairs."""
    split = (name.split("/") for name in names)
    return [Kind(group, tuple(versions.split()), plural, kind, namespaced, True) for plural, kind in split]


def _custom(group: str, versions: str, *names: str, namespaced: bool = True, old: str = "") -> list[Kind]:
    """Make custom kinds from `plural/Kind` pairs; versions in `old` answer with a deprecation warning."""
    split = (name.split("/") for name in names)
    return [
        Kind(group, tuple(versions.split()), plural, kind, namespaced, False, tuple(old.split()))
        for plural, kind in split
    ]


KINDS: tuple[Kind, ...] = (
    *_builtin("", "v1", "nodes/Node", "namespaces/Namespace", "persistentvolumes/PersistentVolume", namespaced=False),
    *_builtin(
        "",
        "v1",
        "pods/Pod",
        "events/Event",
        "configmaps/ConfigMap",
        "secrets/Secret",
        "services/Service",
        "serviceaccounts/ServiceAccount",
        "persistentvolumeclaims/PersistentVolumeClaim",
        "resourcequotas/ResourceQuota",
        "limitranges/LimitRange",
    ),
    *_builtin(
        "apps",
        "v1",
        "deployments/Deployment",
        "daemonsets/DaemonSet",
        "replicasets/ReplicaSet",
        "statefulsets/StatefulSet",
    ),
    *_builtin("batch", "v1", "jobs/Job", "cronjobs/CronJob"),
    *_builtin("rbac.authorization.k8s.io", "v1", "clusterroles/ClusterRole", namespaced=False),
    *_builtin("policy", "v1", "poddisruptionbudgets/PodDisruptionBudget"),
    *_builtin("scheduling.k8s.io", "v1", "priorityclasses/PriorityClass", namespaced=False),
    *_builtin("coordination.k8s.io", "v1", "leases/Lease"),
    *_builtin("discovery.k8s.io", "v1", "endpointslices/EndpointSlice"),
    *_builtin("node.k8s.io", "v1", "runtimeclasses/RuntimeClass", namespaced=False),
    *_builtin(
        "storage.k8s.io",
        "v1",
        "storageclasses/StorageClass",
        "csidrivers/CSIDriver",
        "csinodes/CSINode",
        namespaced=False,
    ),
    *_builtin("storage.k8s.io", "v1", "csistoragecapacities/CSIStorageCapacity"),
    *_builtin(
        "resource.k8s.io", "v1 v1beta1", "resourceslices/ResourceSlice", "deviceclasses/DeviceClass", namespaced=False
    ),
    *_builtin(
        "resource.k8s.io",
        "v1 v1beta1",
        "resourceclaims/ResourceClaim",
        "resourceclaimtemplates/ResourceClaimTemplate",
    ),
    *_builtin(
        "admissionregistration.k8s.io",
        "v1",
        "mutatingwebhookconfigurations/MutatingWebhookConfiguration",
        "validatingwebhookconfigurations/ValidatingWebhookConfiguration",
        namespaced=False,
    ),
    *_builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions/CustomResourceDefinition", namespaced=False),
    *_custom("scheduling.run.ai", "v2", "queues/Queue", namespaced=False),
    *_custom("scheduling.run.ai", "v2alpha2", "podgroups/PodGroup"),
    *_custom("scheduling.run.ai", "v1alpha2", "bindrequests/BindRequest"),
    *_custom("kai.scheduler", "v1alpha1", "topologies/Topology", namespaced=False),
    *_custom("kai.scheduler", "v1", "schedulingshards/SchedulingShard", "configs/Config", namespaced=False),
    *_custom(
        "grove.io",
        "v1alpha1",
        "podcliquesets/PodCliqueSet",
        "podcliques/PodClique",
        "podcliquescalinggroups/PodCliqueScalingGroup",
        "podgangmaps/PodGangMap",
        "podgangsets/PodGangSet",
    ),
    *_custom(
        "grove.io",
        "v1alpha1",
        "clustertopologybindings/ClusterTopologyBinding",
        "clustertopologies/ClusterTopology",
        namespaced=False,
    ),
    *_custom("scheduler.grove.io", "v1alpha1", "podgangs/PodGang"),
    *_custom(
        "nvidia.com",
        "v1beta1 v1alpha1",
        "dynamographdeployments/DynamoGraphDeployment",
        "dynamographdeploymentrequests/DynamoGraphDeploymentRequest",
        "dynamocomponentdeployments/DynamoComponentDeployment",
        "dynamographdeploymentscalingadapters/DynamoGraphDeploymentScalingAdapter",
        "dynamomodels/DynamoModel",
        "dynamoworkermetadatas/DynamoWorkerMetadata",
        old="v1alpha1",
    ),
    *_custom("nvidia.com", "v1alpha1", "dynamocheckpoints/DynamoCheckpoint"),
    *_custom("nvidia.com", "v1", "clusterpolicies/ClusterPolicy", namespaced=False),
    *_custom("nvcf.nvidia.io", "v1", "nvcfbackends/NVCFBackend"),
    *_custom("nvca.nvcf.nvidia.io", "v2beta1", "icmsrequests/ICMSRequest"),
    *_custom("nvca.nvcf.nvidia.io", "v1alpha1", "miniservices/MiniService", namespaced=False),
    *_custom("nvca.nvcf.nvidia.io", "v1", "storagerequests/StorageRequest"),
    *_custom("resource.nvidia.com", "v1beta1", "computedomains/ComputeDomain"),
    *_custom("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies/NodeResourceTopology", namespaced=False),
    *_custom("jobset.x-k8s.io", "v1alpha2", "jobsets/JobSet"),
    *_custom("leaderworkerset.x-k8s.io", "v1", "leaderworkersets/LeaderWorkerSet"),
    *_custom("kubeflow.org", "v1", "pytorchjobs/PyTorchJob"),
    *_custom("ray.io", "v1", "rayclusters/RayCluster", "rayjobs/RayJob"),
    *_custom("kueue.x-k8s.io", "v1beta2 v1beta1", "workloads/Workload", "localqueues/LocalQueue"),
    *_custom(
        "kueue.x-k8s.io",
        "v1beta2 v1beta1",
        "clusterqueues/ClusterQueue",
        "resourceflavors/ResourceFlavor",
        namespaced=False,
    ),
)


def _names(kinds: tuple[Kind, ...]) -> Mapping[str, Kind]:
    """Index the kinds by every name a test may use: resource, plural and Kind."""
    index: dict[str, Kind] = {}
    for kind in kinds:
        for name in {kind.resource, kind.plural, kind.kind}:
            if name in index:
                raise ValueError(f"two kinds answer to {name}")
            index[name] = kind
    return index


_BY_NAME = _names(KINDS)
_BY_OBJECT = {(kind.group, kind.kind): kind for kind in KINDS}


def find_kind(name: str) -> Kind:
    """Return the kind called `pods`, `Pod` or `podgroups.scheduling.run.ai`; KeyError names an unknown one."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"the simulator knows no kind called {name!r}") from None


def kind_of(api_version: str, kind: str) -> Kind:
    """Return the kind of an object from its own two fields, in any of its versions."""
    group, _, _version = api_version.rpartition("/")
    try:
        return _BY_OBJECT[group, kind]
    except KeyError:
        raise KeyError(f"the simulator knows no kind {kind!r} in {api_version!r}") from None
