"""The documents that rules come from."""

from __future__ import annotations

_DENNEMAN = "Frank Denneman, article of"
SOURCES = {
    "CSER": 'NVIDIA AI Enterprise 6.2, appendix "NVIDIA AI Enterprise and NVIDIA vGPU (C-Series)"',
    "P2P": "docs.nvidia.com/ai-enterprise/release-8/8.1/infra-software/vgpu/features/p2p.html",
    "NVSW": "docs.nvidia.com/ai-enterprise/release-8/8.0, the vGPU feature page on NVSwitch",
    "MULTI": "docs.nvidia.com/ai-enterprise/deployment-guide-multi-node/0.1.0/workflows.html",
    "OCP": "github.com/NVIDIA/cloud-native-docs, openshift/nvaie-with-ocp.rst",
    "GPUOP": "github.com/NVIDIA/cloud-native-docs, gpu-operator-rdma.rst",
    "BCOM-309986": "knowledge.broadcom.com/external/article/309986",
    "VMOP": "github.com/vmware-tanzu/vm-operator",
    "PVRDMA": "docs.vmware.com, vSphere Networking, GUID-4A5EBD44",
    "NUMA": "docs.vmware.com, GUID-89C52376",
    "LATENCY": "docs.vmware.com, vSphere 8.0, GUID-2B67DC91 and GUID-F5DAC793",
    "LAMW": "github.com/lamw/esxi-advanced-and-kernel-settings",
    "FD-BIOS": f"{_DENNEMAN} 2023-05-30",
    "FD-VGPU": f"{_DENNEMAN} 2023-07-06",
    "NMLX5": "docs.nvidia.com/networking/display/VMwareUMv419711, driver parameter max_vfs",
    "PASSTHRU": "vSphere Web Services API, HostPciPassthruInfo and HostPciPassthruConfig",
    "ASSIGN": "vSphere Web Services API, HostGraphicsConfigSharedPassthruAssignmentPolicy",
    "MULTI-VGPU": "docs.nvidia.com/ai-enterprise/release-8/8.1/infra-software/vgpu/features/multi-vgpu.html",
    "NCCL-2101": "github.com/NVIDIA/nccl/issues/2101: H100XM-80C on vSphere, NCCL 2.27.5",
    "NCCL": "github.com/NVIDIA/nccl, src/init.cc of v2.23.4-1 to v2.30.7-1",
    "UVM": "docs.nvidia.com/ai-enterprise/release-8/latest/infra-software/vgpu/features/uvm.html",
    "GROUPS": "vSphere Web Services API, VirtualMachineVirtualDeviceGroups: since vSphere API 8.0.0.1",
    "VMIOP": "vSphere Web Services API, VirtualPCIPassthroughVmiopBackingOption.maxInstances",
    "PROFILES": "vSphere Web Services API, VirtualMachineVgpuProfileInfo: since vSphere API 7.0.3.0",
    "GPUDIRECT": "docs.nvidia.com/ai-enterprise/release-9/latest/infra-software/vgpu/features/gpudirect.html",
    "FD-MULTI": "Frank Denneman, article on several GPUs in a VM",
    "FD-DDP": f"{_DENNEMAN} 2023-06-06",
    "FD-LIM": "Frank Denneman, articles of 2022-08-30 and 2023-04-26",
    "FD-FRAC": "Frank Denneman, articles of 2023-05-10 and 2023-05-16",
    "FD-MODES": f"{_DENNEMAN} 2026-02-17",
    "FD-TOPO": "Frank Denneman, articles of 2026-03-27 and 2026-03-31",
    "FD-TOPO8": f"{_DENNEMAN} 2022-10-25",
}
