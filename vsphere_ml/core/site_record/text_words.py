"""What of a command's output may leave a site: values of listed fields, and listed words."""

from __future__ import annotations

import re

# Fields of `Name : value`, `Name=value` or a table of one name a line whose whole value passes.
_FIELDS = """
    Product Name; Product Brand; Product Architecture; Display Mode; Display Active; Persistence Mode; Driver
    Version; CUDA Version; Attached GPUs; Current; Pending; MIG Mode; Virtualization Mode; Host VGPU Mode; vGPU
    Heterogeneous Mode; License Status; Enabled; Total; Used; Free; Reserved; Max; Bus; Device; Domain; Device Id;
    Sub System Id; Bus Id; Link Width; Link Gen; Addressing Mode; Performance State; ECC Mode; Compute Mode;
    Graphics; SM; Memory; Video; Image Version; GSP Firmware Version; VBIOS Version; Volatile; SRAM Uncorrectable;
    DRAM Uncorrectable; state; active_mtu; max_mtu; transport; fw_ver; vendor_part_id; hw_ver; link_layer;
    phys_state; active_speed; active_width; phys_port_cnt; port; port_lid; sm_lid; gid_tbl_len; device type;
    description; name of firmware; version; srcversion; vermagic; license; parm; depends; status;
    boot_status_code; extended_status; Graphics Device; Graphics Type; Default Graphics Type; Shared Passthru
    Assignment Policy; Memory Size in KB; Module; ATSCap; ATSCtl; LnkCap; LnkSta; DevCap; DevCtl; IOVCap; IOVCtl;
    Kernel driver in use; Kernel modules; NUMA node
"""
FIELDS = frozenset(" ".join(each.split()).casefold() for each in _FIELDS.split(";"))
# Words of the tools themselves, of vendors and of drivers.
_WORDS = """
    n a class nvidia mellanox technologies vmware corporation inc connectx dx lx ex vpi bluefield family virtual
    function controller ethernet infiniband network 3d vga compatible device devices subsystem rev prog if pci pcie
    bridge host root complex port ports type mst rdma net numa default current next boot true false array
    configurations configuration enabled disabled none na yes no up down active inactive link link_up linkup state
    physical_state polling netdev mtu qdisc broadcast multicast lower_up no-carrier promisc loopback ether brd
    permaddr vf vfs vlan trust off on auto spoof checking nmlx5_core nmlx5_rdma nmlx5-core nmlx5-rdma mlx5_core
    mlx5_ib ib_core ib_uverbs rdma_cm rdma_ucm vmw_pvrdma vmxnet3 nvidia_peermem nvidia_uvm nvidia_drm
    nvidia_modeset nvidia-peermem nouveau ntg3 ixgben i40en bnxtnet name status speed duplex mac address driver
    description admin full half enp ens eth bool int string uint value values configured runtime atssupport enable
    support for ats translation service capability capabilities control invalidate queue depth smallest unit page
    aligned inline esxi build releasebuild update ga vib vendor acceptance level install date partnersupported
    vmwareaccepted vmwarecertified communitysupported nmst mft mft-oem nvd nvd-vgpu nvd-aie aie vgpu nvidia-vgpu
    module parameter max_vfs pfctx pfcrx trust_state dscp_force ecn drss rss dcbx gpu gpu0 gpu1 gpu2 gpu3 gpu4 gpu5
    gpu6 gpu7 nic nic0 nic1 nic2 nic3 nic4 nic5 nic6 nic7 nic8 nic9 cpu affinity id x self sys node phb pxb pix nv
    legend size used by kernel gib mib kib mhz gb sec bytes command not found error such file or directory e failed
    to open loaded unloaded unknown command-line xpu device_type mst_devices mst_pci_module mst_pciconf_module is
    are installed added done generated running ubuntu debian cloud-init dmi ovf datasource datasourcevmware
    datasourceovf nocloud datasourcenone guestinfo transport
"""
WORDS = frozenset(_WORDS.split())
# vmnic4, mlx5_0, vmrdma0, mt4125_pciconf0, MT2892, [15b3:101d], A100-40C and what the kernels name their own things by.
PATTERNS = re.compile(
    r"vmnic\d+|netvmnic\d+|net-vmnic\d+|vmk\d+|vmrdma\d+|mlx[45]_\d+|mt\d+(?:_pciconf\d+|_pci_cr\d+)?|MT\d{4,5}|pciconf\d+|"
    r"(?:enp\d+)?(?:s\d+)?(?:f\d+)?(?:np?\d+)?|ens\d+(?:np?\d+)?|eth\d+|lo|[0-9a-f]{1,4}|0x[0-9a-f]{1,8}|NV\d+|v\d[\w]*|"
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|ConnectX-?\d\w*|(?:GRID|NVIDIA|Tesla|Quadro|RTX)(?:-\w+)*|\d+[KMGT]i?B?|(?:releasebuild|build)-\d+|\d+(?:-\d+)?(?:OEM|vmw)|"
    r"(?:A|H|L|B|T|V|GH|GB|GA|AD|TU|GV)\d{1,4}[A-Z]{0,3}(?:-\d+){0,2}[ABCQ]?",
    re.IGNORECASE,
)
