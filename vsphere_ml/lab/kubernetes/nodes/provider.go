package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
)

const probePause = 250 * time.Millisecond

// provider runs one node's pods. Its methods are those that a virtual-kubelet asks for.
type provider struct {
	name    string
	boot    string // of the node's kernel, as its containers see it
	pods    *Pods
	objects nodeutil.ProviderConfig
	events  record.EventRecorder
	client  kubernetes.Interface
	tell    func(*corev1.Pod)
	runs    sync.Map // of *podRun, by namespace/name
}

func key(namespace, name string) string { return namespace + "/" + name }

// NotifyPods is told whom to tell of each change of a pod.
func (p *provider) NotifyPods(_ context.Context, tell func(*corev1.Pod)) { p.tell = tell }

// CreatePod begins a pod and returns; an error fails it.
func (p *provider) CreatePod(_ context.Context, spec *corev1.Pod) error {
	if err := refuse(spec); err != nil {
		return err
	}
	run := newRun(p, spec)
	p.runs.Store(key(spec.Namespace, spec.Name), run)
	go run.live()
	return nil
}

// refuse names what a pod asks for that would be done otherwise here than it says.
func refuse(spec *corev1.Pod) error {
	for _, each := range append(append([]corev1.Container{}, spec.Spec.InitContainers...), spec.Spec.Containers...) {
		context := each.SecurityContext
		if context != nil && (context.RunAsGroup != nil || context.Privileged != nil && *context.Privileged) {
			return errdefs.InvalidInputf("container %s: lab nodes run no container privileged, and none by a group of its own", each.Name)
		}
		if probe := each.ReadinessProbe; probe != nil && probe.TCPSocket == nil {
			return errdefs.InvalidInputf("container %s: lab nodes make readiness probes of TCP ports only", each.Name)
		}
		if each.StartupProbe != nil || each.LivenessProbe != nil || each.Lifecycle != nil {
			return errdefs.InvalidInputf("container %s: lab nodes make no startup and no liveness probes, and no hooks", each.Name)
		}
	}
	all := spec.Spec.SecurityContext
	if all != nil && (all.RunAsGroup != nil || all.FSGroup != nil || len(all.SupplementalGroups) > 0) {
		return errdefs.InvalidInput("lab nodes give a user the group that its image says")
	}
	return nil
}

// UpdatePod does nothing: what can be changed of a pod that runs, labels and annotations, is nothing to its processes.
func (p *provider) UpdatePod(_ context.Context, spec *corev1.Pod) error {
	if run, known := p.find(spec.Namespace, spec.Name); known {
		run.adopt(spec)
	}
	return nil
}

// DeletePod ends a pod's processes, after its grace period by force.
func (p *provider) DeletePod(_ context.Context, spec *corev1.Pod) error {
	run, known := p.find(spec.Namespace, spec.Name)
	if !known || run.spec.UID != spec.UID {
		return errdefs.NotFoundf("pod %s does not run on %s", spec.Name, p.name)
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if spec.DeletionGracePeriodSeconds != nil {
		grace = *spec.DeletionGracePeriodSeconds
	}
	go func() {
		run.end(time.Duration(grace) * time.Second)
		p.runs.CompareAndDelete(key(spec.Namespace, spec.Name), run)
		p.forget(spec)
	}()
	return nil
}

// forget takes a pod whose containers have ended out of the API server, as a kubelet does; virtual-kubelet waits for
// the whole grace period.
func (p *provider) forget(spec *corev1.Pod) {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(spec.UID))
	_ = p.client.CoreV1().Pods(spec.Namespace).Delete(context.Background(), spec.Name, *options)
}

func (p *provider) find(namespace, name string) (*podRun, bool) {
	found, known := p.runs.Load(key(namespace, name))
	if !known {
		return nil, false
	}
	return found.(*podRun), true
}

// GetPod returns a pod with its status.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	run, known := p.find(namespace, name)
	if !known {
		return nil, errdefs.NotFoundf("pod %s does not run on %s", name, p.name)
	}
	return run.seen(), nil
}

// GetPodStatus returns a pod's status.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods of this node.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	p.runs.Range(func(_, run any) bool {
		found = append(found, run.(*podRun).seen())
		return true
	})
	return found, nil
}

func (p *provider) container(namespace, name, container string) (*podRun, *corev1.Container, error) {
	run, known := p.find(namespace, name)
	if !known {
		return nil, nil, errdefs.NotFoundf("pod %s does not run on %s", name, p.name)
	}
	for at := range run.spec.Spec.Containers {
		if each := &run.spec.Spec.Containers[at]; each.Name == container {
			return run, each, nil
		}
	}
	for at := range run.spec.Spec.InitContainers {
		if each := &run.spec.Spec.InitContainers[at]; each.Name == container {
			return run, each, nil
		}
	}
	return nil, nil, errdefs.NotFoundf("there is no container %s in %s", container, name)
}

func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

func (p *provider) pullFailed(spec *corev1.Pod, image string) {
	p.events.Event(spec, corev1.EventTypeWarning, "Failed",
		fmt.Sprintf("Failed to pull image %q: lab nodes have no registry; their images: %s", image, p.pods.imageNames()))
}
