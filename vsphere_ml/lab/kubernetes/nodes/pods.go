package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	machines = 10 // addresses at the beginning of the network that no pod gets
	folders  = 0o755
	readable = 0o644
)

// Pods is all pods of all nodes: their addresses, and the names by which they find one another.
type Pods struct {
	settings Settings
	lock     sync.Mutex
	running  map[types.UID]*Pod
	taken    map[netip.Addr]bool
}

// Pod is one pod's network and name, which all its containers share.
type Pod struct {
	spec    *corev1.Pod
	folder  string
	address netip.Addr
	sandbox *exec.Cmd
	boot    string // of its node
	pid     int    // of what holds the network, as the machine counts
}

func newPods(settings Settings) (*Pods, error) {
	if err := os.MkdirAll(settings.Folder, 0o700); err != nil {
		return nil, err
	}
	return &Pods{settings: settings, running: map[types.UID]*Pod{}, taken: map[netip.Addr]bool{}}, nil
}

// begin gives a pod its network and name; the files of /etc stand in its folder.
func (p *Pods) begin(spec *corev1.Pod, boot string) (*Pod, error) {
	address, err := p.take()
	if err != nil {
		return nil, err
	}
	pod := &Pod{spec: spec, folder: filepath.Join(p.settings.Folder, string(spec.UID)), address: address, boot: boot}
	text := []byte(boot + "\n")
	err = errors.Join(os.MkdirAll(pod.folder, folders), os.WriteFile(filepath.Join(pod.folder, "boot_id"), text, readable))
	if err := errors.Join(err, p.startSandbox(pod)); err != nil {
		p.release(address)
		return nil, err
	}
	p.lock.Lock()
	p.running[spec.UID] = pod
	p.lock.Unlock()
	return pod, p.writeHosts()
}

// end takes a pod's network away, and with it every process of it that is left.
func (p *Pods) end(pod *Pod) {
	_ = pod.sandbox.Process.Kill()
	_ = pod.sandbox.Wait()
	p.lock.Lock()
	delete(p.running, pod.spec.UID)
	p.lock.Unlock()
	p.release(pod.address)
	_ = p.writeHosts()
	_ = os.RemoveAll(pod.folder)
}

func (p *Pods) endAll() {
	p.lock.Lock()
	left := make([]*Pod, 0, len(p.running))
	for _, pod := range p.running {
		left = append(left, pod)
	}
	p.lock.Unlock()
	for _, pod := range left {
		p.end(pod)
	}
}

func (p *Pods) take() (netip.Addr, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	network, err := netip.ParsePrefix(p.settings.Network)
	if err != nil {
		return netip.Addr{}, err
	}
	address := network.Masked().Addr()
	for range machines {
		address = address.Next()
	}
	for ; network.Contains(address); address = address.Next() {
		if !p.taken[address] {
			p.taken[address] = true
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no address of %s is free", network)
}

func (p *Pods) release(address netip.Addr) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.taken, address)
}

// writeHosts writes every pod's /etc/hosts anew, in place: pods see the file itself. A kubelet writes a pod's own name;
// the names of the others, which a cluster's DNS tells, stand there too.
func (p *Pods) writeHosts() error {
	p.lock.Lock()
	defer p.lock.Unlock()
	var others []string
	for _, pod := range p.running {
		if names := serviceNames(pod.spec); len(names) > 0 {
			others = append(others, fmt.Sprintf("%s\t%s\n", pod.address, strings.Join(names, " ")))
		}
	}
	slices.Sort(others)
	var failed []error
	for _, pod := range p.running {
		own := fmt.Sprintf("127.0.0.1\tlocalhost\n%s\t%s\n", pod.address, hostName(pod.spec))
		if names := serviceNames(pod.spec); len(names) > 0 {
			// The longest name first, as a kubelet writes it: that is the host's own full name.
			own = fmt.Sprintf("127.0.0.1\tlocalhost\n%s\t%s\t%s\n", pod.address, names[0], hostName(pod.spec))
		}
		text := own + "# What a cluster's DNS tells of pods:\n" + strings.Join(others, "")
		failed = append(failed, os.WriteFile(filepath.Join(pod.folder, "hosts"), []byte(text), readable))
	}
	return errors.Join(failed...)
}

func hostName(pod *corev1.Pod) string {
	if pod.Spec.Hostname != "" {
		return pod.Spec.Hostname
	}
	return pod.Name
}

// serviceNames returns the names that DNS has for a pod with a subdomain, the longest first.
func serviceNames(pod *corev1.Pod) []string {
	if pod.Spec.Subdomain == "" {
		return nil
	}
	short := fmt.Sprintf("%s.%s.%s.svc", hostName(pod), pod.Spec.Subdomain, pod.Namespace)
	return []string{short + ".cluster.local", short, fmt.Sprintf("%s.%s", hostName(pod), pod.Spec.Subdomain)}
}
