package topology

import "fmt"

// HostFaults are the ways in which a host can fail on demand.
var HostFaults = []string{
	"no-return",        // does not come back from a reboot
	"ssh-refused",      // refuses SSH connections although the service runs
	"no-mft",           // has no NVIDIA Firmware Tools, whatever its model says
	"no-ats",           // its adapters' firmware has no ATS_ENABLED
	"firmware-refuses", // its adapters' firmware takes no setting
	"firmware-forgets", // its adapters' firmware takes settings and loses them at the next boot
	"kernel-ignores",   // takes kernel settings and does not keep them
	"kernel-forgets",   // keeps kernel settings, and boots without them
}

// HostModel is the model of one host of the cluster.
func (f File) HostModel(cluster Cluster, name string) (Model, bool) {
	wanted := cluster.Model
	if own, ok := f.HostNamed(name); ok && own.Model != "" {
		wanted = own.Model
	}
	return named(f.Models, wanted, func(m Model) string { return m.Name })
}

// HostNamed is what the file says of this host beyond its cluster.
func (f File) HostNamed(name string) (Host, bool) {
	return named(f.Hosts, name, func(h Host) string { return h.Name })
}

func expandHosts(patterns []Host, found *problems) []Host {
	var hosts []Host
	for _, pattern := range patterns {
		for _, name := range expandInto(found, fmt.Sprintf("host %q", pattern.Name), pattern.Name) {
			host := pattern
			host.Name = name
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func checkHosts(file File, hosts map[string]Model, found *problems) {
	seen := map[string]bool{}
	for _, host := range file.Hosts {
		if _, ok := hosts[host.Name]; !ok {
			found.add("host %q: no cluster has it", host.Name)
		}
		if seen[host.Name] {
			found.add("host %q is described twice", host.Name)
		}
		seen[host.Name] = true
		if _, ok := named(file.Models, host.Model, func(m Model) string { return m.Name }); host.Model != "" && !ok {
			found.add("host %q: no [[model]] is named %q", host.Name, host.Model)
		}
		if host.RebootMS != nil && *host.RebootMS < 0 {
			found.add("host %q: reboot_ms is %d: it must be 0 or more", host.Name, *host.RebootMS)
		}
		oneOf(found, "host %q: ssh_key", host.Name, host.SSHKey, "", "ed25519", "rsa")
		oneOf(found, "host %q: lockdown", host.Name, host.Lockdown, "", "normal", "strict")
		for _, fault := range host.Faults {
			oneOf(found, "host %q: fault", host.Name, fault, HostFaults...)
		}
	}
}
