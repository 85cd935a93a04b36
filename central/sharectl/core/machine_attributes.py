"""Attributes that HTCondor itself publishes of a slot: what a START expression may rely on without publishing it.

The names in its manual (machine ClassAd attributes) and those in the slot ads of 23.9.6 and 25.14.1.
"""

from __future__ import annotations

import re

_NAMES = """
    AcceptedWhileDraining AccountingGroup ActivationRequests Activity AddressV1 Arch AvgTransferInputMB
    AvgTransferOutputMB BrokenContextAds BrokenSlotCpus BrokenSlotDisk BrokenSlotMemory CanHibernate
    CgroupEnforced ClaimEndTime ClaimRequests CleanupCategoryCounts ClientMachine CloudImage
    CloudInstanceID CloudInterruptible CloudPlatform CloudProvider CloudRegion CloudVMType CloudZone
    COLLECTOR_HOST_STRING CondorLoadAvg CondorPlatform CondorScratchDir CondorVersion ConsoleIdle CpuBusy
    CpuCacheSize CpuFamily CpuModelNumber Cpus CpusUsage CurrentRank DaemonCoreDutyCycle DaemonStartTime
    Disk DiskUsage DotNetVersions Draining DrainingRequestId DSlotId DynamicSlot EnteredCurrentActivity
    EnteredCurrentState ExecutableSize ExecuteVolume ExpectedMachineGracefulDrainingBadput
    ExpectedMachineGracefulDrainingCompletion ExpectedMachineQuickDrainingBadput
    ExpectedMachineQuickDrainingCompletion FileSystemDomain GlobalJobId HardwareAddress HibernationLevel
    HibernationState HibernationSupportedStates ImageSize IsDataSlot IsEnforcingDiskUsage IsLocalStartd
    IsSplittable IsWakeAble IsWakeEnabled IsWakeOnLanEnabled IsWakeOnLanSupported JobBusyTimeAvg
    JobBusyTimeCount JobBusyTimeMax JobBusyTimeMin JobDurationAvg JobDurationCount JobDurationMax
    JobDurationMin JobId JobPreemptions JobRankPreemptions JobStart JobStarts JobUniverse
    JobUserPrioPreemptions JobVM_VCPUS KeyboardIdle KFlops LastBenchmark LastDrainStartTime
    LastDrainStopTime LastFetchWorkCompleted LastFetchWorkSpawned LastPeriodicCheckpoint LoadAvg
    LvmBackingStore LvmDetectedDisk LvmIsThinProvisioning LvmNonCondorDiskUsage LvmUsingLoopback Machine
    MachineLastMatchTime MachineMaxVacateTime MachineResources MappingMethod MaxClaimTime
    MaxJobRetirementTime Memory Microarch Mips MyAddress MyCurrentTime MyType Name NewDSlotNotMatch
    NextFetchWorkDelay NumDynamicSlots NumDynamicSlotsTime NumPids OpSys OpSysAndVer OpSysLegacy
    OpSysLongName OpSysMajorVer OpSysName OpSysShortName OpSysVer ParentSlotId PartitionableSlot
    PreemptingOwner PreemptingRank PreemptingUser PrivateNetworkName PslotRollupInformation PublicClaimId
    Rank RemoteAutoregroup RemoteGroup RemoteNegotiatingGroup RemoteOwner RemoteProject RemoteScheddName
    RemoteUser Requirements RetirementTimeRemaining SingularityUserNamespaces SingularityVersion
    SlotBrokenCode SlotBrokenReason SlotID SlotType SlotTypeID SlotWeight Start StartdIpAddr
    StarterAbilityList StarterPid State SubnetMask TargetType TimeToLive UidDomain Unhibernate
    UtsnameMachine UtsnameNodename UtsnameRelease UtsnameSysname UtsnameVersion VirtualMemory
    VMOfflineReason VMOfflineTime WakeOnLanEnabledFlags WakeOnLanSupportedFlags WindowsBuildNumber
    WindowsMajorVersion WindowsMinorVersion WithinResourceLimits
"""

_FAMILIES = re.compile(
    r"has_?|monitor|total|recent|updates|last|clock(day|min)$|detected|assigned|available|offline|device|gpus|cuda"
    r"|opencl|docker|java|vm_|slot\d+_|child(accountinggroup|activity|cpus|currentrank|disk|dslotid"
    r"|enteredcurrentstate|memory|name|remoteowner|remoteuser|retirementtimeremaining|state)$",
    re.IGNORECASE,
)
"""Names that begin so depend on the machine, its devices and what it offers."""

_OF_JOBS = """
    AccountingGroup AcctGroup AcctGroupUser Args ClusterId Cmd ConcurrencyLimits EnteredCurrentStatus Err
    FileSystemDomain GlobalJobId Iwd JobDescription JobLeaseDuration JobPrio JobStatus JobUniverse NiceUser
    NumJobStarts NumShadowStarts Out Owner ProcId QDate Rank RequestCpus RequestDisk RequestGPUs RequestMemory
    Requirements ShouldTransferFiles TransferInput User WantDocker WhenToTransferOutput x509UserProxySubject
"""

HTCONDORS = frozenset(_NAMES.lower().split())
"""Attributes of every slot, lower case."""

JOB_ATTRIBUTES = frozenset(_OF_JOBS.lower().split())
"""Attributes of jobs that a START expression is likely to ask for, lower case: to tell on which side a name belongs."""


def is_htcondors(name: str) -> bool:
    """Whether HTCondor publishes an attribute of that name in slot ads."""
    return name.lower() in HTCONDORS or _FAMILIES.match(name) is not None
