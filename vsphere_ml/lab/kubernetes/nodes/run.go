package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	restartPause = 10 * time.Second // a kubelet's first one
	pullPause    = 15 * time.Second
)

// podRun is one pod that lives on a node.
type podRun struct {
	provider *provider
	pod      *Pod
	lock     sync.Mutex
	spec     *corev1.Pod // with its status
	ending   chan struct{}
	ended    chan struct{}
	once     sync.Once
}

func newRun(p *provider, spec *corev1.Pod) *podRun {
	run := &podRun{provider: p, spec: spec.DeepCopy(), ending: make(chan struct{}), ended: make(chan struct{})}
	began := now()
	status := corev1.PodStatus{Phase: corev1.PodPending, HostIP: loopback, StartTime: &began, QOSClass: spec.Status.QOSClass}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	for _, each := range spec.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses,
			corev1.ContainerStatus{Name: each.Name, Image: each.Image, State: waiting})
	}
	for _, each := range spec.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses,
			corev1.ContainerStatus{Name: each.Name, Image: each.Image, State: waiting})
	}
	run.spec.Status = status
	return run
}

// live takes a pod through its life: its images, its network, its containers, its end.
func (r *podRun) live() {
	defer close(r.ended)
	r.change(func(*corev1.PodStatus) {})
	if !r.awaitImages() {
		return
	}
	pod, err := r.provider.pods.begin(r.spec, r.provider.boot)
	if err != nil {
		r.fail("SandboxFailed", err)
		return
	}
	r.pod = pod
	defer r.provider.pods.end(pod)
	r.change(func(status *corev1.PodStatus) {
		status.PodIP, status.PodIPs = pod.address.String(), []corev1.PodIP{{IP: pod.address.String()}}
	})
	for at := range r.spec.Spec.InitContainers {
		if r.keep(&r.spec.Spec.InitContainers[at], true) != 0 {
			r.finish(corev1.PodFailed)
			return
		}
	}
	r.runContainers()
}

func (r *podRun) runContainers() {
	r.change(func(status *corev1.PodStatus) { status.Phase = corev1.PodRunning })
	var all sync.WaitGroup
	statuses := make([]int32, len(r.spec.Spec.Containers))
	for at := range r.spec.Spec.Containers {
		all.Go(func() { statuses[at] = r.keep(&r.spec.Spec.Containers[at], false) })
	}
	all.Wait()
	if slices.ContainsFunc(statuses, func(each int32) bool { return each != 0 }) {
		r.finish(corev1.PodFailed)
	} else {
		r.finish(corev1.PodSucceeded)
	}
}

// awaitImages waits until all images are there, which nodes without a registry never see: it is told as a kubelet tells
// it, and ends with the pod.
func (r *podRun) awaitImages() bool {
	for told := false; ; told = true {
		missing := map[string]bool{}
		for _, each := range append(append([]corev1.Container{}, r.spec.Spec.InitContainers...), r.spec.Spec.Containers...) {
			if _, known := r.provider.pods.settings.Images[each.Image]; !known {
				missing[each.Image] = true
			}
		}
		if len(missing) == 0 {
			return true
		}
		reason := "ErrImagePull"
		if told {
			reason = "ImagePullBackOff"
		}
		for image := range missing {
			r.provider.pullFailed(r.spec, image)
		}
		r.change(func(status *corev1.PodStatus) {
			for _, each := range []([]corev1.ContainerStatus){status.InitContainerStatuses, status.ContainerStatuses} {
				for at := range each {
					if missing[each[at].Image] {
						each[at].State.Waiting = &corev1.ContainerStateWaiting{
							Reason: reason, Message: fmt.Sprintf("lab nodes have no image %q", each[at].Image)}
					}
				}
			}
		})
		select {
		case <-r.ending:
			r.finish(corev1.PodFailed)
			return false
		case <-time.After(pullPause):
		}
	}
}

// keep runs a container, again where the pod's policy says so, and returns its last exit status.
func (r *podRun) keep(of *corev1.Container, first bool) int32 {
	for restarts := int32(0); ; restarts++ {
		status := r.runOnce(of, restarts, first)
		policy := r.spec.Spec.RestartPolicy
		again := policy == corev1.RestartPolicyAlways && !first || policy != corev1.RestartPolicyNever && status != 0
		if !again {
			return status
		}
		select {
		case <-r.ending:
			return status
		case <-time.After(restartPause):
		}
	}
}

func (r *podRun) runOnce(of *corev1.Container, restarts int32, first bool) int32 {
	select {
	case <-r.ending:
		return 128 + int32(syscall.SIGKILL)
	default:
	}
	began := now()
	command, err := r.start(of)
	if err == nil {
		r.changeContainer(of.Name, first, func(status *corev1.ContainerStatus) {
			started := true
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
			status.RestartCount, status.Started, status.Ready = restarts, &started, of.ReadinessProbe == nil
			status.ImageID, status.ContainerID = of.Image, fmt.Sprintf("process://%d", command.Process.Pid)
		})
		gone := make(chan struct{})
		go r.probe(of, gone)
		err = command.Wait()
		close(gone)
	}
	exit := exitStatus(err)
	reason, message := "Completed", ""
	if exit != 0 {
		reason = "Error"
	}
	if command == nil {
		reason, message = "StartError", err.Error()
	}
	r.changeContainer(of.Name, first, func(status *corev1.ContainerStatus) {
		stopped := false
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exit, Reason: reason, Message: message, StartedAt: began, FinishedAt: now()}}
		status.Ready, status.Started, status.RestartCount = false, &stopped, restarts
	})
	return exit
}

func (r *podRun) start(of *corev1.Container) (*exec.Cmd, error) {
	image := r.provider.pods.settings.Images[of.Image]
	mounts, err := r.provider.mounts(r.pod, of, image)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(r.logFile(of.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, private)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return r.provider.pods.startContainer(r.pod, of, image, mounts, log)
}

// logFile outlives the pod's own folder: logs are read after a pod's end, until it is deleted.
func (r *podRun) logFile(container string) string {
	return filepath.Join(r.provider.pods.settings.Folder, fmt.Sprintf("%s-%s.log", r.spec.UID, container))
}

// probe tells when a container's port answers, and when it does no more.
func (r *podRun) probe(of *corev1.Container, gone <-chan struct{}) {
	if of.ReadinessProbe == nil {
		return
	}
	address := net.JoinHostPort(r.pod.address.String(), of.ReadinessProbe.TCPSocket.Port.String())
	for ready := false; ; {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			connection.Close()
		}
		if (err == nil) != ready {
			ready = err == nil
			r.changeContainer(of.Name, false, func(status *corev1.ContainerStatus) {
				status.Ready = ready && status.State.Running != nil
			})
		}
		pause := probePause
		if ready {
			pause = 10 * time.Second
		}
		select {
		case <-gone:
			return
		case <-time.After(pause):
		}
	}
}

// end ends a pod's containers, by force after its grace period, and waits for their end.
func (r *podRun) end(grace time.Duration) {
	r.once.Do(func() { close(r.ending) })
	r.signal(syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(grace):
		r.signal(syscall.SIGKILL)
		<-r.ended
	}
	for _, each := range append(append([]corev1.Container{}, r.spec.Spec.InitContainers...), r.spec.Spec.Containers...) {
		_ = os.Remove(r.logFile(each.Name))
	}
}

func (r *podRun) signal(sign syscall.Signal) {
	if r.pod == nil {
		return
	}
	files, _ := filepath.Glob(filepath.Join(r.pod.folder, "*.pid"))
	for _, file := range files {
		if filepath.Base(file) == "sandbox.pid" {
			continue
		}
		if text, err := os.ReadFile(file); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				_ = syscall.Kill(pid, sign)
			}
		}
	}
}

func (r *podRun) fail(reason string, err error) {
	r.change(func(status *corev1.PodStatus) { status.Reason, status.Message = reason, err.Error() })
	r.finish(corev1.PodFailed)
}

// finish tells a pod's last status, in which every container has ended.
func (r *podRun) finish(phase corev1.PodPhase) {
	r.change(func(status *corev1.PodStatus) {
		status.Phase = phase
		for _, each := range []([]corev1.ContainerStatus){status.InitContainerStatuses, status.ContainerStatuses} {
			for at := range each {
				if each[at].State.Terminated == nil {
					each[at].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
						ExitCode: 128 + int32(syscall.SIGKILL), Reason: "Error", FinishedAt: now()}}
				}
			}
		}
	})
}

func (r *podRun) adopt(spec *corev1.Pod) {
	r.lock.Lock()
	defer r.lock.Unlock()
	status := r.spec.Status
	r.spec = spec.DeepCopy()
	r.spec.Status = status
}

func (r *podRun) seen() *corev1.Pod {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.spec.DeepCopy()
}

func (r *podRun) changeContainer(name string, first bool, change func(*corev1.ContainerStatus)) {
	r.change(func(status *corev1.PodStatus) {
		among := status.ContainerStatuses
		if first {
			among = status.InitContainerStatuses
		}
		for at := range among {
			if among[at].Name == name {
				change(&among[at])
			}
		}
	})
}

// change changes a pod's status and tells of it.
func (r *podRun) change(change func(*corev1.PodStatus)) {
	r.lock.Lock()
	change(&r.spec.Status)
	r.spec.Status.Conditions = conditions(r.spec)
	told := r.spec.DeepCopy()
	r.lock.Unlock()
	r.provider.tell(told)
}

func conditions(pod *corev1.Pod) []corev1.PodCondition {
	initialized := !slices.ContainsFunc(pod.Status.InitContainerStatuses, func(each corev1.ContainerStatus) bool {
		return each.State.Terminated == nil || each.State.Terminated.ExitCode != 0
	})
	ready := pod.Status.Phase == corev1.PodRunning && !slices.ContainsFunc(
		pod.Status.ContainerStatuses, func(each corev1.ContainerStatus) bool { return !each.Ready })
	values := []struct {
		kind corev1.PodConditionType
		is   bool
	}{
		{corev1.PodScheduled, true}, {corev1.PodInitialized, initialized}, {corev1.ContainersReady, ready}, {corev1.PodReady, ready},
	}
	var made []corev1.PodCondition
	for _, each := range values {
		condition := corev1.PodCondition{Type: each.kind, Status: corev1.ConditionFalse, LastTransitionTime: now()}
		if each.is {
			condition.Status = corev1.ConditionTrue
		}
		for _, before := range pod.Status.Conditions {
			if before.Type == condition.Type && before.Status == condition.Status {
				condition.LastTransitionTime = before.LastTransitionTime
			}
		}
		made = append(made, condition)
	}
	return made
}
