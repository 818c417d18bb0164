package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// Load is the site in the file, with every range written out and every reference checked.
// Relative names of datastores' files and of OVF templates begin where the file lies. Its error lists all problems at once, one a line.
func Load(path string) (File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	file, err := Parse(string(text))
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	for i := range file.Datastores {
		beside(path, &file.Datastores[i].Files)
	}
	for _, library := range file.Libraries {
		for i := range library.Items {
			beside(path, &library.Items[i].OVF)
		}
	}
	return file, nil
}

// beside has a relative name begin where the topology's file lies.
func beside(path string, name *string) {
	if *name != "" && !filepath.IsAbs(*name) {
		*name = filepath.Join(filepath.Dir(path), *name)
	}
}

// Parse is Load for a text.
func Parse(text string) (File, error) {
	var file File
	meta, err := toml.Decode(text, &file)
	if err != nil {
		return File{}, err
	}
	var found problems
	for _, key := range meta.Undecoded() {
		found.add("unknown key %s", key)
	}
	if file.VCenter.APIVersion == "" {
		file.VCenter.APIVersion = "8.0.3.0"
	}
	expand(&file, &found)
	check(file, &found)
	return file, found.err()
}

// problems collects what is wrong, so that a writer of topologies sees it all at once.
type problems []string

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Sprintf(format, args...))
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(p, "; "))
}

// expand writes out the ranges in host and VM names, and seats VMs without a host on the hosts in turn.
func expand(file *File, found *problems) {
	var hosts []string
	for i := range file.Clusters {
		cluster := &file.Clusters[i]
		var names []string
		for _, pattern := range cluster.Hosts {
			names = append(names, expandInto(found, fmt.Sprintf("cluster %q", cluster.Name), pattern)...)
		}
		cluster.Hosts = names
		hosts = append(hosts, names...)
	}
	for i := range file.Datastores {
		store := &file.Datastores[i]
		var names []string
		for _, pattern := range store.Hosts {
			names = append(names, expandInto(found, fmt.Sprintf("datastore %q", store.Name), pattern)...)
		}
		store.Hosts = names
	}
	file.Hosts = expandHosts(file.Hosts, found)
	file.VMs = expandVMs(file.VMs, hosts, found)
}

func expandVMs(patterns []VM, hosts []string, found *problems) []VM {
	var machines []VM
	for _, pattern := range patterns {
		for turn, name := range expandInto(found, fmt.Sprintf("vm %q", pattern.Name), pattern.Name) {
			machine := pattern
			machine.Name = name
			if machine.Host == "" && len(hosts) > 0 {
				machine.Host = hosts[turn%len(hosts)]
			}
			machines = append(machines, machine)
		}
	}
	return machines
}

func expandInto(found *problems, where, pattern string) []string {
	names, err := Expand(pattern)
	if err != nil {
		found.add("%s: %v", where, err)
	}
	return names
}
