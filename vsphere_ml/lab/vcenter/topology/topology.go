// Package topology reads a lab site from TOML: what stands in the racks before any client connects.
// It knows the file's shape only; what vSphere makes of the hardware is package rack's business.
package topology

// File is one lab site.
type File struct {
	Schema     int         `toml:"schema"`
	Name       string      `toml:"name"`
	VCenter    VCenter     `toml:"vcenter"`
	Datacenter Datacenter  `toml:"datacenter"`
	Clusters   []Cluster   `toml:"cluster"`
	Models     []Model     `toml:"model"`
	Hosts      []Host      `toml:"host"`
	Datastores []Datastore `toml:"datastore"`
	Switches   []Switch    `toml:"dvs"`
	Portgroups []Portgroup `toml:"portgroup"`
	Templates  []Template  `toml:"template"`
	VMs        []VM        `toml:"vm"`
	Libraries  []Library   `toml:"library"`
	// Policies are VM storage policies beside vCenter's default ones.
	Policies []StoragePolicy `toml:"storage_policy"`
	// Delays are milliseconds by task, e.g. CloneVM_Task = 2000; the same table the control endpoint changes.
	Delays map[string]int `toml:"delay_ms"`
}

// VCenter is what the server says of itself.
type VCenter struct {
	Version    string `toml:"version"`
	Build      string `toml:"build"`
	APIVersion string `toml:"api_version"`
}

// Datacenter holds every cluster; a lab has one.
type Datacenter struct {
	Name string `toml:"name"`
}

// Cluster is a compute cluster; Hosts may be ranges such as "esx-[01-16].lab.test".
type Cluster struct {
	Name  string   `toml:"name"`
	DRS   string   `toml:"drs"` // manual, partiallyAutomated, fullyAutomated, or "" for DRS off
	Hosts []string `toml:"hosts"`
	Model string   `toml:"model"`
	// DRSOptions are DRS's advanced options, such as VgpuMMAutomationTimeoutSecs = "-1".
	DRSOptions map[string]string `toml:"drs_options"`
	HA         *HA               `toml:"ha"`    // without it HA is off
	Image      bool              `toml:"image"` // vSphere Lifecycle Manager keeps its hosts' software by one image
}

// HA is vSphere HA with admission control.
type HA struct {
	Policy        string   `toml:"policy"`          // percentage, slots, dedicated, or off: HA without admission control
	CPUPercent    int      `toml:"cpu_percent"`     // of percentage: what is kept for a failure
	MemoryPercent int      `toml:"memory_percent"`  // likewise
	Failures      int      `toml:"failures"`        // hosts that may fail: of slots, and by which vCenter finds percentages itself
	SlotMemoryMiB int      `toml:"slot_memory_mib"` // of slots: their size where it was set, with cpu 32 MHz
	Hosts         []string `toml:"hosts"`           // of dedicated: the failover hosts
}

// Model is one kind of server.
type Model struct {
	Name               string `toml:"name"`
	Vendor             string `toml:"vendor"`
	Product            string `toml:"product"`
	ESXiVersion        string `toml:"esxi_version"`
	ESXiBuild          string `toml:"esxi_build"`
	CPUVendor          string `toml:"cpu_vendor"` // intel or amd
	CPUName            string `toml:"cpu_name"`
	CPUMHz             int    `toml:"cpu_mhz"`
	ThreadsPerCore     int    `toml:"threads_per_core"`
	MaxHardwareVersion int    `toml:"max_hardware_version"`
	GraphicsType       string `toml:"graphics_type"` // shared or sharedDirect
	AssignmentPolicy   string `toml:"assignment_policy"`
	// AssignmentTie says which of equally loaded GPUs backs a vGPU. No public text does, so labs have all three: lowest
	// (the default) and highest by PCI address, or next, which goes round from the GPU that was taken last.
	AssignmentTie string `toml:"assignment_tie"`
	VGPUManager   string `toml:"vgpu_manager"`  // the host driver's version; "" when none is installed
	DeviceGroups  *bool  `toml:"device_groups"` // default: true from API 8.0.0.1 on
	MFT           string `toml:"mft"`           // version of the NVIDIA Firmware Tools; "" when not installed
	// FullClones is how many full clones a host takes part in at once, as the source's host or the clone's; 0: any number.
	FullClones int             `toml:"full_clones"`
	Kernel     map[string]bool `toml:"kernel"`
	// Modules are the option strings of drivers, by module: nmlx5_core = "ecn=1". Virtual functions are of [[model.nic]].
	Modules map[string]string `toml:"module_options"`
	// VMKernel are VMkernel adapters beyond vmk0, each with the distributed port group it is on: vmk1 = "roce".
	VMKernel       map[string]string `toml:"vmkernel"`
	PVRDMAVmknic   string            `toml:"pvrdma_vmknic"`   // VMkernel adapter tagged for PVRDMA; "" for none
	PVRDMAFirewall bool              `toml:"pvrdma_firewall"` // whether the firewall lets PVRDMA through
	NUMA           []NUMANode        `toml:"numa"`
	Bridges        []Bridge          `toml:"bridge"`
	GPUs           []GPU             `toml:"gpu"`
	NICs           []NIC             `toml:"nic"`
	NVLinks        []NVLink          `toml:"nvlink"`
}

// Host says how one host, or a range of them, differs from the others of its cluster.
type Host struct {
	Name     string   `toml:"name"`
	Model    string   `toml:"model"`  // instead of the cluster's
	Faults   []string `toml:"faults"` // see HostFaults
	RebootMS *int     `toml:"reboot_ms"`
	// Lockdown is its lockdown mode: normal, strict, or "" for none; LockdownExceptions are the users whom it spares.
	Lockdown           string   `toml:"lockdown"`
	LockdownExceptions []string `toml:"lockdown_exceptions"`
	SSHKey             string   `toml:"ssh_key"`         // of its SSH service: ed25519 (the default) or rsa
	Profile            bool     `toml:"profile"`         // a host profile is attached, and the host was checked against it
	ProfileDiffers     []string `toml:"profile_differs"` // what the check found, in words
	ImageDiffers       bool     `toml:"image_differs"`   // its software is not that of its cluster's image
}

// NUMANode is one socket's share of cores and memory.
type NUMANode struct {
	ID        int `toml:"id"`
	Cores     int `toml:"cores"`
	MemoryGiB int `toml:"memory_gib"`
}

// Bridge is a root port or a PCIe switch; Parent is empty at the root complex.
type Bridge struct {
	Address string `toml:"address"`
	Name    string `toml:"name"`
	NUMA    int    `toml:"numa"`
	Parent  string `toml:"parent"`
}

// GPU is a physical GPU. Mode is timeSliced (default) or mig.
type GPU struct {
	Address     string `toml:"address"`
	Board       string `toml:"board"` // a key of the board catalogue, e.g. A100-PCIE-40GB
	NUMA        int    `toml:"numa"`
	Parent      string `toml:"parent"`
	Mode        string `toml:"mode"`
	VGPUMode    string `toml:"vgpu_mode"` // sameSize (default) or mixedSize, from 8.0.3.0 on
	Passthrough bool   `toml:"passthrough"`
	Label       string `toml:"hardware_label"`
}

// NIC is one physical function of an adapter.
type NIC struct {
	Address      string `toml:"address"`
	Board        string `toml:"board"`
	NUMA         int    `toml:"numa"`
	Parent       string `toml:"parent"`
	VMNic        string `toml:"vmnic"`
	RDMA         string `toml:"rdma"`
	VFs          int    `toml:"vfs"` // the most virtual functions the firmware allows
	SRIOVEnabled bool   `toml:"sriov_enabled"`
	SRIOVActive  int    `toml:"sriov_active"`
	Passthrough  bool   `toml:"passthrough"`
	Label        string `toml:"hardware_label"`
	SpeedGbps    int    `toml:"speed_gbps"`
	ATSEnabled   bool   `toml:"ats_enabled"`
}

// NVLink joins GPUs: a bridged pair, or all GPUs of an NVSwitch system.
type NVLink struct {
	GPUs   []string `toml:"gpus"`
	Switch bool     `toml:"switch"`
}

// Datastore is mounted by every host unless Hosts names some.
type Datastore struct {
	Name        string   `toml:"name"`
	CapacityGiB int      `toml:"capacity_gib"`
	FreeGiB     int      `toml:"free_gib"`
	Hosts       []string `toml:"hosts"`
	Files       string   `toml:"files"`     // a folder of this machine whose files lie on the datastore at the start
	StandIns    string   `toml:"stand_ins"` // the datastore's folder where whoever runs the lab may lay stand-ins for drivers
}

// Library is a local content library, whose items' files lie on its datastore.
type Library struct {
	Name      string        `toml:"name"`
	Datastore string        `toml:"datastore"`
	Items     []LibraryItem `toml:"item"`
}

// LibraryItem is a VM template, made of the template of that name as "Clone as Template to Library" does; without one
// it is an item of type OVF: of an OVA or a descriptor of this machine, or one that has no files yet.
type LibraryItem struct {
	Name     string `toml:"name"`
	Template string `toml:"template"`
	OVF      string `toml:"ovf"`
}

// StoragePolicy is a VM storage policy, and the datastores that satisfy it.
type StoragePolicy struct {
	Name       string   `toml:"name"`
	Datastores []string `toml:"datastores"`
}

// Switch is a distributed switch that every host joins.
type Switch struct {
	Name    string   `toml:"name"`
	MTU     int      `toml:"mtu"`
	MaxMTU  int      `toml:"max_mtu"` // the most that it takes; default: 9000
	Uplinks []string `toml:"uplinks"` // adapters (vmnicN) of every host; default: all of them
}

// Portgroup is a distributed port group.
type Portgroup struct {
	Name string `toml:"name"`
	DVS  string `toml:"dvs"`
	VLAN int    `toml:"vlan"`
	// Ports limits the group to so many; 0 makes more whenever one is needed.
	Ports int `toml:"ports"`
}

// Template is a VM to clone from. Snapshot, when set, names one snapshot for linked clones.
type Template struct {
	Name            string `toml:"name"`
	HardwareVersion int    `toml:"hardware_version"`
	GuestID         string `toml:"guest_id"`
	Firmware        string `toml:"firmware"`
	CPUs            int    `toml:"cpus"`
	CoresPerSocket  int    `toml:"cores_per_socket"` // default: 1
	MemoryGiB       int    `toml:"memory_gib"`
	MemoryLimitGiB  int    `toml:"memory_limit_gib"` // default: unlimited
	CPULimitMHz     int    `toml:"cpu_limit_mhz"`    // default: unlimited
	DiskGiB         int    `toml:"disk_gib"`
	Datastore       string `toml:"datastore"`
	Portgroup       string `toml:"portgroup"`
	Snapshot        string `toml:"snapshot"`
	// CloudInit tells whether its guests read guestinfo at their first boot; default: true.
	CloudInit *bool `toml:"cloud_init"`
	// Tools tells whether VMware Tools have run in it, so that vCenter knows their version; default: true. Silent keeps its
	// guests from telling vCenter anything, as hardening guides have it (isolation.tools.setinfo.disable).
	Tools  *bool `toml:"tools"`
	Silent bool  `toml:"silent"`
	// User can sign in with AuthorizedKeys, whatever the first boot is told.
	User           string   `toml:"user"`
	AuthorizedKeys []string `toml:"authorized_keys"`
	// Image is what its disk holds: `cloud` (the default) or `minimal`, a server without Python.
	Image string `toml:"image"`
}

// VM is a standing VM of somebody else's. Name may be a range; Host then takes the hosts in turn when empty.
type VM struct {
	Name            string   `toml:"name"`
	Host            string   `toml:"host"`
	CPUs            int      `toml:"cpus"`
	MemoryGiB       int      `toml:"memory_gib"`
	DiskGiB         int      `toml:"disk_gib"`
	Datastore       string   `toml:"datastore"`
	Portgroup       string   `toml:"portgroup"`
	HardwareVersion int      `toml:"hardware_version"`
	Profiles        []string `toml:"profiles"`    // one vGPU each
	Passthrough     []string `toml:"passthrough"` // PCI addresses, fixed DirectPath
	Groups          []string `toml:"device_groups"`
	Power           string   `toml:"power"` // on or off
	Tools           bool     `toml:"tools"` // VMware Tools run in its guest
	Agent           string   `toml:"agent"` // one of vCenter's own: vcls (embedded, from 8.0 U3), vcls-external or ""
}
