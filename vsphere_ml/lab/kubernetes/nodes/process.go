package main

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	pidDeadline = 30 * time.Second
	search      = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	pathOf      = "VSML_LAB_PATH"
	gpuResource = "nvidia.com/gpu"
	visibleGPUs = "NVIDIA_VISIBLE_DEVICES" // as NVIDIA's device plugin sets it
)

// What a container may do (containerd, pkg/oci/spec.go: defaultUnixCaps), without making devices.
var capabilities = []string{
	"chown", "dac_override", "fsetid", "fowner", "net_raw", "setgid", "setuid", "setfcap", "setpcap", "net_bind_service",
	"sys_chroot", "kill", "audit_write",
}

//go:embed sandbox.sh
var sandboxScript string

//go:embed container.sh
var containerScript string

//go:embed become.sh
var becomeScript string

// inHub returns a command in the namespaces in which pods live: their bridge, and what ends with it.
func (p *Pods) inHub(words ...string) *exec.Cmd {
	entered := []string{"--target", strconv.Itoa(p.settings.Hub), "--mount", "--net", "--pid", "--"}
	command := exec.Command("nsenter", append(entered, words...)...)
	command.Env = []string{"PATH=" + search}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

func (p *Pods) startSandbox(pod *Pod) error {
	network, err := netip.ParsePrefix(p.settings.Network)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(pod.folder, "sandbox.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	pod.sandbox = p.inHub("unshare", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
		"sh", "-c", sandboxScript, "sandbox", pod.folder, strconv.Itoa(p.settings.Hub), hostName(pod.spec),
		fmt.Sprintf("%s/%d", pod.address, network.Bits()), portName(pod.address))
	pod.sandbox.Stdout, pod.sandbox.Stderr = log, log
	if err := pod.sandbox.Start(); err != nil {
		return err
	}
	pod.pid, err = awaitPid(filepath.Join(pod.folder, "sandbox.pid"))
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("the pod's network did not come up: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// portName returns the name of a pod's port of the bridge; names of adapters hold 15 letters at most.
func portName(address netip.Addr) string {
	bytes := address.As4()
	return fmt.Sprintf("p%x", bytes[:])
}

func awaitPid(file string) (int, error) {
	for deadline := time.Now().Add(pidDeadline); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if err == nil {
			return strconv.Atoi(strings.TrimSpace(string(text)))
		}
	}
	return 0, fmt.Errorf("no %s after %s", filepath.Base(file), pidDeadline)
}

// startContainer starts a container's command with its variables, which stand in nobody's list of processes.
func (p *Pods) startContainer(pod *Pod, of *corev1.Container, image Image, mounts []mount, log *os.File) (*exec.Cmd, error) {
	words := append(append([]string{}, of.Command...), of.Args...)
	if len(words) == 0 {
		return nil, errors.New("no command is specified, and the lab's images have none")
	}
	at := filepath.Join(pod.folder, of.Name)
	_ = os.Remove(at + ".pid")
	if err := writeMounts(at+".mounts", mounts); err != nil {
		return nil, err
	}
	working := of.WorkingDir
	if working == "" {
		working = "/"
	}
	run := append([]string{
		"nsenter", "--target", strconv.Itoa(pod.pid), "--net", "--uts", "--ipc", "--",
		"unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
		"sh", "-c", containerScript + becomeScript, "container",
		at, strings.Join(image.Layers, ":"), pod.folder, working, bounds(of), user(pod.spec, of),
	}, words...)
	command := exec.Command("nsenter", append([]string{
		"--target", strconv.Itoa(p.settings.Hub), "--mount", "--pid", "--"}, run...)...)
	command.Env = variables(pod, of, image)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command, command.Start()
}

// variables returns what a container's processes have; the scripts around them search where they know.
func variables(pod *Pod, of *corev1.Container, image Image) []string {
	found := map[string]string{"PATH": search, "HOME": "/root"}
	for name, value := range image.Env {
		found[name] = value
	}
	for _, each := range of.Env {
		found[each.Name] = each.Value
	}
	if number := gpus(of); number > 0 {
		found[visibleGPUs] = strings.Join(gpuNames(pod.boot, number), ",")
	}
	found[pathOf] = found["PATH"]
	found["PATH"] = search
	var words []string
	for name, value := range found {
		words = append(words, name+"="+value)
	}
	return words
}

func gpus(of *corev1.Container) int64 {
	amount := of.Resources.Limits[gpuResource]
	return amount.Value()
}

// gpuNames returns names as NVIDIA's are: GPU- and a UUID, of the node's own and the number of the GPU.
func gpuNames(node string, number int64) []string {
	var names []string
	for at := range number {
		names = append(names, fmt.Sprintf("GPU-%s%02x", node[:len(node)-2], at))
	}
	return names
}

func bounds(of *corev1.Container) string {
	text := "-all"
	for _, each := range capabilities {
		text += ",+" + each
	}
	if of.SecurityContext != nil && of.SecurityContext.Capabilities != nil {
		for _, each := range of.SecurityContext.Capabilities.Add {
			text += ",+" + strings.ToLower(string(each))
		}
	}
	return text
}

// user returns the number of who runs a container; its own counts before its pod's.
func user(spec *corev1.Pod, of *corev1.Container) string {
	if own := of.SecurityContext; own != nil && own.RunAsUser != nil {
		return strconv.FormatInt(*own.RunAsUser, 10)
	}
	if all := spec.Spec.SecurityContext; all != nil && all.RunAsUser != nil {
		return strconv.FormatInt(*all.RunAsUser, 10)
	}
	return "0"
}

// execIn returns a command in a container that runs.
func (p *Pods) execIn(pod *Pod, of *corev1.Container, image Image, words []string) (*exec.Cmd, error) {
	pid, err := awaitPid(filepath.Join(pod.folder, of.Name) + ".pid")
	if err != nil {
		return nil, err
	}
	entered := []string{"--target", strconv.Itoa(pid), "--mount", "--net", "--uts", "--ipc", "--pid", "--root", "--wd", "--"}
	entered = append(entered, "sh", "-c", "bounds=$1 user=$2; shift 2\n"+becomeScript, "exec", bounds(of), user(pod.spec, of))
	command := exec.Command("nsenter", append(entered, words...)...)
	command.Env = variables(pod, of, image)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command, nil
}

// exitStatus returns how a command ended, 128 and the signal's number for one that was killed.
func exitStatus(err error) int32 {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &ended):
		return 128
	case ended.Sys().(syscall.WaitStatus).Signaled():
		return 128 + int32(ended.Sys().(syscall.WaitStatus).Signal())
	}
	return int32(ended.ExitCode())
}
