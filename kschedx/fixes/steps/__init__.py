"""What a fix does, as data: a union of steps, each with its cost. `making` does them, `words/fixes.py` says them."""

from __future__ import annotations

from kschedx.fixes.steps.around import (
    AskForFewerDevices,
    AwaitTermination,
    BindClaim,
    CreateClaim,
    CreateDeviceClaim,
    CreateDeviceClass,
    CreateStorageClass,
    CreateVolume,
    DeletePods,
    GiveUpVolume,
    NextAttempt,
    RecreateClaim,
    RecreateDeviceClaim,
    ReleaseVolume,
    ShrinkClaim,
    StopWorkload,
    TakeOldFirst,
    Victim,
    WidenDeviceClaim,
)
from kschedx.fixes.steps.nodes import (
    DOMAIN_OF_ITS_OWN,
    AddNode,
    EnlargeNode,
    LabelNode,
    NodeAmount,
    NodeFault,
    OfferResource,
    RemoveTaints,
    RepairNode,
    Uncordon,
)
from kschedx.fixes.steps.pod import (
    AwaitController,
    DropNodeName,
    DropNodeNames,
    DropRequirements,
    HonorInSpread,
    PreferTerm,
    RaiseMaxSkew,
    RaisePriority,
    RemoveGates,
    RequestAsMeant,
    RequestAtMost,
    RequestInstead,
    ResourceAmount,
    SelectInstead,
    SelectPodsInstead,
    SpreadAnyway,
    Tolerate,
    UseClaim,
    UseHostPort,
)

__all__ = [
    "DOMAIN_OF_ITS_OWN",
    "AddNode",
    "AskForFewerDevices",
    "AwaitController",
    "AwaitTermination",
    "BindClaim",
    "CreateClaim",
    "CreateDeviceClaim",
    "CreateDeviceClass",
    "CreateStorageClass",
    "CreateVolume",
    "DeletePods",
    "DropNodeName",
    "DropNodeNames",
    "DropRequirements",
    "EnlargeNode",
    "GiveUpVolume",
    "HonorInSpread",
    "LabelNode",
    "NextAttempt",
    "NodeAmount",
    "NodeFault",
    "OfferResource",
    "PreferTerm",
    "RaiseMaxSkew",
    "RaisePriority",
    "RecreateClaim",
    "RecreateDeviceClaim",
    "ReleaseVolume",
    "RemoveGates",
    "RemoveTaints",
    "RepairNode",
    "RequestAsMeant",
    "RequestAtMost",
    "RequestInstead",
    "ResourceAmount",
    "SelectInstead",
    "SelectPodsInstead",
    "ShrinkClaim",
    "SpreadAnyway",
    "Step",
    "StopWorkload",
    "TakeOldFirst",
    "Tolerate",
    "Uncordon",
    "UseClaim",
    "UseHostPort",
    "Victim",
    "WidenDeviceClaim",
]

Step = (
    RemoveGates
    | AwaitController
    | Tolerate
    | SelectInstead
    | DropRequirements
    | DropNodeNames
    | DropNodeName
    | UseHostPort
    | HonorInSpread
    | RaiseMaxSkew
    | SpreadAnyway
    | PreferTerm
    | SelectPodsInstead
    | UseClaim
    | RaisePriority
    | RequestAtMost
    | RequestAsMeant
    | RequestInstead
    | CreateClaim
    | ShrinkClaim
    | RecreateClaim
    | GiveUpVolume
    | CreateStorageClass
    | BindClaim
    | ReleaseVolume
    | CreateVolume
    | CreateDeviceClaim
    | AskForFewerDevices
    | WidenDeviceClaim
    | NextAttempt
    | RecreateDeviceClaim
    | CreateDeviceClass
    | TakeOldFirst
    | AwaitTermination
    | StopWorkload
    | DeletePods
    | Uncordon
    | RemoveTaints
    | LabelNode
    | RepairNode
    | OfferResource
    | EnlargeNode
    | AddNode
)
