"""The fields whose text may leave a site, by the last elements of where they stand. What is not here is replaced.

Each is a number, a word of the API's own enumerations, or what a vendor calls a device, a profile or a version. Names
that people give (VMs, hosts, networks, datastores, labels), addresses and identifiers are not among them.
"""

from __future__ import annotations

# What a request asks by, and what an answer says of itself.
_CALLS = """
    objectSet.skip propSet.all propSet.pathSet propSet.type selectSet.name selectSet.path selectSet.type
    options.maxObjects CreateContainerView.type objectSet.selectSet.name Fetch.prop missingSet.path
    ExecuteSoap.method ExecuteSoap.moid ExecuteSoap.version privId argument.name option
    QueryConfiguredModuleOptionString.name missingSet.fault.fault.name StartService.id StopService.id
    QueryOptions.name faultcode about.apiType about.apiVersion about.build about.fullName about.licenseProductName
    about.licenseProductVersion about.localeBuild about.localeVersion about.name about.osType about.productLineId
    about.vendor about.version namespace.name namespace.version priorVersions.version returnval.callCount
    returnval.locale returnval.messageLocale QueryConfigOptionDescriptorResponse.returnval.key
    QueryConfigOptionDescriptorResponse.returnval.description
"""
# Hosts: hardware, drivers, settings.
_HOSTS = """
    pciDevice.bus pciDevice.classId pciDevice.deviceClassName pciDevice.deviceId pciDevice.deviceName
    pciDevice.function pciDevice.id pciDevice.parentBridge pciDevice.slot pciDevice.subDeviceId
    pciDevice.subVendorId pciDevice.vendorId pciDevice.vendorName HostPciDevice.bus HostPciDevice.classId
    HostPciDevice.deviceClassName HostPciDevice.deviceId HostPciDevice.deviceName HostPciDevice.function
    HostPciDevice.id HostPciDevice.parentBridge HostPciDevice.slot HostPciDevice.subDeviceId
    HostPciDevice.subVendorId HostPciDevice.vendorId HostPciDevice.vendorName HostPciDevice.physicalSlot
    numaNode.HostNumaNode.cpuID numaNode.HostNumaNode.memoryRangeBegin numaNode.HostNumaNode.memoryRangeLength
    numaNode.HostNumaNode.memorySize numaNode.HostNumaNode.pciId numaNode.HostNumaNode.typeId numaInfo.numNodes
    numaInfo.type HostPciPassthruInfo.dependentDevice HostPciPassthruInfo.id
    HostPciPassthruInfo.maxVirtualFunctionSupported HostPciPassthruInfo.numVirtualFunction
    HostPciPassthruInfo.numVirtualFunctionRequested HostGraphicsInfo.deviceName HostGraphicsInfo.graphicsType
    HostGraphicsInfo.memorySizeInKB HostGraphicsInfo.pciId HostGraphicsInfo.vendorName HostGraphicsInfo.vgpuMode
    graphicsConfig.deviceType.deviceId graphicsConfig.deviceType.graphicsType graphicsConfig.deviceType.vgpuMode
    graphicsConfig.hostDefaultGraphicsType graphicsConfig.sharedPassthruAssignmentPolicy
    sharedPassthruGpuTypes.string sharedGpuCapabilities.HostSharedGpuCapabilities.vgpu PhysicalNic.device
    PhysicalNic.driver PhysicalNic.driverVersion PhysicalNic.firmwareVersion PhysicalNic.key PhysicalNic.pci
    PhysicalNic.rdmaDevice linkSpeed.speedMb validLinkSpecification.speedMb resourcePoolSchedulerDisallowedReason
    vmDirectPathGen2SupportedMode HostRdmaDevice.backing.pairedUplink HostRdmaDevice.connectionInfo.mtu
    HostRdmaDevice.connectionInfo.speedInMbps HostRdmaDevice.connectionInfo.state HostRdmaDevice.description
    HostRdmaDevice.device HostRdmaDevice.driver HostRdmaDevice.key HostProxySwitch.configNumPorts
    HostProxySwitch.numPorts HostProxySwitch.numPortsAvailable HostProxySwitch.mtu HostProxySwitch.pnic
    pnicSpec.pnicDevice pnicSpec.connectionCookie HostVirtualSwitch.mtu HostVirtualSwitch.numPorts
    HostVirtualSwitch.numPortsAvailable HostVirtualSwitch.pnic HostVirtualNic.device HostVirtualNic.key spec.mtu
    spec.netStackInstanceKey nicDevice activeNic standbyNic summary.hardware.cpuMhz summary.hardware.cpuModel
    summary.hardware.memorySize summary.hardware.numCpuCores summary.hardware.numCpuPkgs
    summary.hardware.numCpuThreads runtime.connectionState runtime.powerState config.product.build
    config.product.version config.product.name config.lockdownMode config.service.service.key
    config.service.service.policy config.service.service.label config.service.service.ruleset
    sourcePackage.sourcePackageName ruleset.label ruleset.key ruleset.service rule.direction rule.endPort rule.port
    rule.portType rule.protocol HostAssignableHardwareBinding.instanceId returnval.deviceVendorId
    returnval.fbSizeInGib returnval.profileClass returnval.profileName returnval.profileSharing
    RetrieveVgpuProfileInfoResponse.returnval.name vgpuProfileInfo.name vgpuProfileInfo.profileName
    vgpuProfileInfo.profileClass vgpuProfileInfo.profileSharing vgpuProfileInfo.fbSizeInGib
    vgpuProfileInfo.deviceVendorId RetrieveVendorDeviceGroupInfoResponse.returnval.deviceGroupName
    RetrieveVendorDeviceGroupInfoResponse.returnval.name vendorDeviceGroupInfo.name
    vendorDeviceGroupInfo.deviceGroupName deviceGroupDescription componentDeviceInfo.deviceName
    componentDeviceInfo.type componentDeviceInfo.vendorName componentDeviceInfo.device.key allowedDevice.deviceId
    allowedDevice.vendorId allowedDevice.subDeviceId allowedDevice.subVendorId backing.vgpu dynamicPassthrough.name
    dynamicPassthrough.deviceId dynamicPassthrough.deviceName dynamicPassthrough.vendorId
    dynamicPassthrough.vendorName pciPassthrough.name sriov.name sriov.pnic returnval.maxCpusPerHost
    returnval.maxMemMBOptimalPerf returnval.numCpuCores returnval.numCpus returnval.numNumaNodes
    returnval.supportedMaxMemMB QueryConfiguredModuleOptionStringResponse.returnval
"""
# What esxcli answers over the API (`vim.EsxCLI...`).
_ESXCLI = """
    obj.DataObject.Configured obj.DataObject.Default obj.DataObject.Name obj.DataObject.Runtime obj.DataObject.Type
    obj.DataObject.Description option.option module.module
"""
# VMs, their devices and settings.
_VMS = """
    config.version config.firmware config.guestId config.latencySensitivity.level config.hardware.memoryMB
    config.hardware.numCPU config.hardware.numCoresPerSocket cpuAllocation.limit cpuAllocation.reservation
    memoryAllocation.limit memoryAllocation.reservation config.tools.toolsVersion guest.toolsRunningStatus
    guest.guestState guest.toolsVersionStatus2 deviceGroup.deviceGroupName groupInstanceKey
    deviceGroupInfo.sequenceId VirtualDevice.addressType VirtualDevice.busNumber VirtualDevice.deviceInfo.label
    VirtualDevice.capacityInBytes VirtualDevice.capacityInKB VirtualDevice.controllerKey VirtualDevice.device
    VirtualDevice.key VirtualDevice.unitNumber VirtualDevice.numaNode VirtualDevice.deviceProtocol
    VirtualDevice.graphicsMemorySizeInKB VirtualDevice.videoRamSizeInKB VirtualDevice.numDisplays
    VirtualDevice.sharedBus VirtualDevice.use3dRenderer backing.diskMode backing.deviceId backing.vendorId
    backing.id backing.vgpu backing.assignedId physicalFunctionBacking.id physicalFunctionBacking.deviceId
    physicalFunctionBacking.vendorId virtualFunctionBacking.id resourceAllocation.limit
    resourceAllocation.reservation resourceAllocation.share.level resourceAllocation.share.shares
    storageIOAllocation.limit slotInfo.pciSlotNumber guest.net.GuestNicInfo.deviceConfigId managedBy.extensionKey
    managedBy.type numaInfo.coresPerNumaNode numaInfo.autoCoresPerNumaNode config.hardware.autoCoresPerSocket
"""
# Clusters, switches, datastores and what people may define there.
_SITE = """
    config.configVersion policy.value config.defaultPortConfig.vlan.vlanId vlanId.start vlanId.end config.maxMtu
    mtuCapability.minMtuSupported mtuCapability.maxMtuSupported
    config.maxPorts config.numPorts config.numStandalonePorts host.config.maxProxySwitchPorts config.host.status
    config.type portgroupType config.lacpApiVersion defaultVmBehavior vmotionRate vmSwapPlacement summary.type
    summary.capacity summary.freeSpace summary.maintenanceMode datastore.capacity datastore.freeSpace datastore.type
    datastore.mode datastore.maxFileSize datastore.vStorageSupport
    admissionControlPolicy.cpuFailoverResourcesPercent admissionControlPolicy.memoryFailoverResourcesPercent
    admissionControlPolicy.failoverLevel dasConfig.failoverLevel field.CustomFieldDef.key
    field.CustomFieldDef.managedObjectType field.CustomFieldDef.type CustomFieldValue.key customValue.key
    info.descriptionId info.state info.progress
"""
PASSING = frozenset(f"{_CALLS}{_HOSTS}{_ESXCLI}{_VMS}{_SITE}".split())

# Advanced settings whose values pass.
_OPTIONS = """
    numa.nodeAffinity numa.vcpu.preferHT numa.autosize.once cpuid.coresPerSocket pciPassthru.64bitMMIOSizeGB
    pciPassthru.use64bitMMIO pciPassthru.RelaxACSforP2P pciPassthru.allowP2P isolation.tools.setinfo.disable
    HDCS.agent vCLSCRX.agent sched.cpu.latencySensitivity sched.mem.pin svga.present ethernet0.pctsharedmemory
    VMkernel.Boot.atsSupport Net.PVRDMAVmknic PassthroughDrsAutomation VgpuMMAutomationTimeoutSecs
"""
OPTION_KEYS = frozenset(_OPTIONS.split())
# Settings and attributes of vsml's own whose names pass, and whose values are replaced.
_OWN = """
    guestinfo.vsml.cluster guestinfo.vsml.node guestinfo.metadata guestinfo.userdata guestinfo.metadata.encoding
    guestinfo.userdata.encoding vsml.cluster vsml.host vsml.resume
"""
OWN_KEYS = frozenset(_OWN.split())
