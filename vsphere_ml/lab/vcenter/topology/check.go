package topology

import (
	"regexp"
	"slices"
	"strings"

	"vsml.dev/lab/vcenter/catalogue"
)

var (
	pciAddress  = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
	userName    = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	versionForm = regexp.MustCompile(`^\d+(\.\d+){2,3}$`)
)

// check adds every reference that leads nowhere and every value outside its set.
func check(file File, found *problems) {
	if file.Schema != 1 {
		found.add("schema is %d: this program reads schema 1", file.Schema)
	}
	if file.Datacenter.Name == "" {
		found.add("datacenter.name is missing")
	}
	if version := file.VCenter.APIVersion; version != "" && !versionForm.MatchString(version) {
		found.add("vcenter.api_version is %q: write it as 8.0.3.0", version)
	}
	for _, model := range file.Models {
		checkModel(model, found)
	}
	hosts := checkClusters(file, found)
	checkHosts(file, hosts, found)
	checkStorage(file, hosts, found)
	checkNetworks(file, found)
	checkTemplates(file, found)
	checkVMs(file, hosts, found)
}

func checkClusters(file File, found *problems) map[string]Model {
	hosts := map[string]Model{}
	if len(file.Clusters) == 0 {
		found.add("no [[cluster]]: a site has at least one")
	}
	for _, cluster := range file.Clusters {
		oneOf(found, "cluster %q: drs", cluster.Name, cluster.DRS, "", "manual", "partiallyAutomated", "fullyAutomated")
		if cluster.HA != nil {
			oneOf(found, "cluster %q: ha.policy", cluster.Name, cluster.HA.Policy, "percentage", "slots", "dedicated", "off")
		}
		model, ok := named(file.Models, cluster.Model, func(m Model) string { return m.Name })
		if !ok {
			found.add("cluster %q: no [[model]] is named %q", cluster.Name, cluster.Model)
		}
		for _, name := range cluster.Hosts {
			if _, twice := hosts[name]; twice {
				found.add("host %q is listed twice", name)
			}
			hosts[name] = model
			if own, ok := file.HostModel(cluster, name); ok {
				hosts[name] = own
			}
		}
	}
	return hosts
}

func checkModel(model Model, found *problems) {
	oneOf(found, "model %q: cpu_vendor", model.Name, model.CPUVendor, "intel", "amd")
	oneOf(found, "model %q: graphics_type", model.Name, model.GraphicsType, "", "shared", "sharedDirect")
	oneOf(found, "model %q: assignment_policy", model.Name, model.AssignmentPolicy, "", "performance", "consolidation")
	oneOf(found, "model %q: assignment_tie", model.Name, model.AssignmentTie, "", "lowest", "highest", "next")
	if !versionForm.MatchString(model.ESXiVersion) {
		found.add("model %q: esxi_version is %q: write it as 8.0.3", model.Name, model.ESXiVersion)
	}
	if model.FullClones < 0 {
		found.add("model %q: full_clones is %d: it must be 0 or more", model.Name, model.FullClones)
	}
	if len(model.NUMA) == 0 {
		found.add("model %q: no [[model.numa]]: a server has at least one node", model.Name)
	}
	for _, device := range devicesOf(model) {
		device.check(model, found)
	}
	checkLinks(model, found)
	if tagged := model.PVRDMAVmknic; tagged != "" && model.VMKernel[tagged] == "" && tagged != "vmk0" {
		found.add("model %q: pvrdma_vmknic is %q, which [model.vmkernel] lacks", model.Name, tagged)
	}
}

// device is what GPUs, NICs and bridges have in common.
type device struct {
	address, parent, board string
	numa                   int
	kind                   catalogue.Kind
	bridge                 bool
}

func devicesOf(model Model) []device {
	var devices []device
	for _, b := range model.Bridges {
		devices = append(devices, device{address: b.Address, parent: b.Parent, numa: b.NUMA, bridge: true})
	}
	for _, g := range model.GPUs {
		devices = append(devices, device{g.Address, g.Parent, g.Board, g.NUMA, catalogue.GPU, false})
	}
	for _, n := range model.NICs {
		devices = append(devices, device{n.Address, n.Parent, n.Board, n.NUMA, catalogue.NIC, false})
	}
	return devices
}

func (d device) check(model Model, found *problems) {
	if !pciAddress.MatchString(d.address) {
		found.add("model %q: PCI address %q: write it as 0000:3b:00.0, in lower case", model.Name, d.address)
	}
	same := func(other device) bool { return other.address == d.address }
	if len(slices.DeleteFunc(devicesOf(model), func(other device) bool { return !same(other) })) > 1 {
		found.add("model %q: PCI address %s is used twice", model.Name, d.address)
	}
	if !slices.ContainsFunc(model.NUMA, func(n NUMANode) bool { return n.ID == d.numa }) {
		found.add("model %q: %s is on NUMA node %d, which the model lacks", model.Name, d.address, d.numa)
	}
	if d.parent != "" && !slices.ContainsFunc(model.Bridges, func(b Bridge) bool { return b.Address == d.parent }) {
		found.add("model %q: %s has the parent %s, which is no [[model.bridge]]", model.Name, d.address, d.parent)
	}
	if d.bridge {
		return
	}
	if board, ok := catalogue.Find(d.board); !ok || board.Kind != d.kind {
		found.add("model %q: %s: board %q is unknown; known are %s", model.Name, d.address, d.board, strings.Join(catalogue.Names(), ", "))
	}
}

func checkLinks(model Model, found *problems) {
	for _, gpu := range model.GPUs {
		oneOf(found, "model %q: GPU mode", model.Name, gpu.Mode, "", "timeSliced", "mig")
		oneOf(found, "model %q: GPU vgpu_mode", model.Name, gpu.VGPUMode, "", "sameSize", "mixedSize")
	}
	for _, link := range model.NVLinks {
		for _, address := range link.GPUs {
			if !slices.ContainsFunc(model.GPUs, func(g GPU) bool { return g.Address == address }) {
				found.add("model %q: nvlink names %s, which is no GPU of the model", model.Name, address)
			}
		}
	}
}

func checkStorage(file File, hosts map[string]Model, found *problems) {
	if len(file.Datastores) == 0 {
		found.add("no [[datastore]]: a site has at least one")
	}
	for _, store := range file.Datastores {
		if store.CapacityGiB <= 0 || store.FreeGiB < 0 || store.FreeGiB > store.CapacityGiB {
			found.add("datastore %q: free_gib must lie between 0 and capacity_gib", store.Name)
		}
		for _, host := range store.Hosts {
			if _, ok := hosts[host]; !ok {
				found.add("datastore %q: no host is named %q", store.Name, host)
			}
		}
	}
	checkPolicies(file, found)
	checkLibraries(file, found)
}

func checkLibraries(file File, found *problems) {
	for _, library := range file.Libraries {
		checkPlaces(file, "library", library.Name, library.Datastore, "", found)
		for _, item := range library.Items {
			if _, ok := named(file.Templates, item.Template, func(t Template) string { return t.Name }); item.Template != "" && !ok {
				found.add("library %q: item %q: no [[template]] is named %q", library.Name, item.Name, item.Template)
			}
			if item.Template != "" && item.OVF != "" {
				found.add("library %q: item %q: it is a VM template or of type OVF, not both", library.Name, item.Name)
			}
		}
	}
}

func checkPolicies(file File, found *problems) {
	seen := map[string]bool{}
	for _, policy := range file.Policies {
		if policy.Name == "" || seen[policy.Name] {
			found.add("storage_policy %q: each has a name of its own", policy.Name)
		}
		seen[policy.Name] = true
		for _, store := range policy.Datastores {
			checkPlaces(file, "storage_policy", policy.Name, store, "", found)
		}
	}
}

func checkNetworks(file File, found *problems) {
	for _, model := range file.Models {
		for device, portgroup := range model.VMKernel {
			if _, ok := named(file.Portgroups, portgroup, func(p Portgroup) string { return p.Name }); !ok {
				found.add("model %q: vmkernel %s: no [[portgroup]] is named %q", model.Name, device, portgroup)
			}
		}
	}
	for _, group := range file.Portgroups {
		if _, ok := named(file.Switches, group.DVS, func(s Switch) string { return s.Name }); !ok {
			found.add("portgroup %q: no [[dvs]] is named %q", group.Name, group.DVS)
		}
		if group.Ports < 0 {
			found.add("portgroup %q: ports is %d: it must not be negative", group.Name, group.Ports)
		}
		if group.VLAN < 0 || group.VLAN > 4094 {
			found.add("portgroup %q: vlan is %d: it must be 0 to 4094", group.Name, group.VLAN)
		}
	}
}

func checkTemplates(file File, found *problems) {
	seen := map[string]bool{}
	for _, template := range file.Templates {
		oneOf(found, "template %q: firmware", template.Name, template.Firmware, "", "bios", "efi")
		checkPlaces(file, "template", template.Name, template.Datastore, template.Portgroup, found)
		if len(template.AuthorizedKeys) > 0 && template.User == "" {
			found.add("template %q: authorized_keys needs user, whose keys they are", template.Name)
		}
		if template.User != "" && !userName.MatchString(template.User) {
			found.add("template %q: user %q cannot be the name of one", template.Name, template.User)
		}
		if seen[template.Name] {
			found.add("template %q is described twice", template.Name)
		}
		seen[template.Name] = true
	}
}

func checkVMs(file File, hosts map[string]Model, found *problems) {
	seen := map[string]bool{}
	for _, machine := range file.VMs {
		oneOf(found, "vm %q: power", machine.Name, machine.Power, "", "on", "off")
		oneOf(found, "vm %q: agent", machine.Name, machine.Agent, "", "vcls", "vcls-external")
		checkPlaces(file, "vm", machine.Name, machine.Datastore, machine.Portgroup, found)
		if _, ok := hosts[machine.Host]; !ok {
			found.add("vm %q: no host is named %q", machine.Name, machine.Host)
		}
		if seen[machine.Name] {
			found.add("vm %q is described twice", machine.Name)
		}
		seen[machine.Name] = true
		for _, profile := range machine.Profiles {
			if _, _, ok := catalogue.ProfileNamed(profile); !ok {
				found.add("vm %q: vGPU profile %q is unknown", machine.Name, profile)
			}
		}
	}
}

func checkPlaces(file File, kind, name, datastore, portgroup string, found *problems) {
	if _, ok := named(file.Datastores, datastore, func(d Datastore) string { return d.Name }); !ok {
		found.add("%s %q: no [[datastore]] is named %q", kind, name, datastore)
	}
	if portgroup == "" {
		return
	}
	if _, ok := named(file.Portgroups, portgroup, func(p Portgroup) string { return p.Name }); !ok {
		found.add("%s %q: no [[portgroup]] is named %q", kind, name, portgroup)
	}
}

func oneOf(found *problems, where, name, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	allowed = slices.DeleteFunc(allowed, func(word string) bool { return word == "" })
	found.add(where+" is %q: it must be %s", name, value, strings.Join(allowed, " or "))
}

func named[T any](items []T, name string, nameOf func(T) string) (T, bool) {
	index := slices.IndexFunc(items, func(item T) bool { return nameOf(item) == name })
	if index < 0 {
		var none T
		return none, false
	}
	return items[index], true
}
