package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
)

const (
	secretMode = 0o644                // Kubernetes' default, of config maps too
	gpuList    = "/etc/vsml-lab/gpus" // that the stand-in of nvidia-smi reads
)

// mount is one line of what is mounted into a container: how (rw, ro, file, memory), from where, and where to.
type mount struct{ how, source, target string }

func writeMounts(file string, mounts []mount) error {
	var text strings.Builder
	for _, each := range mounts {
		if strings.ContainsAny(each.source+each.target, "\t\n") {
			return fmt.Errorf("%q cannot be mounted", each.target)
		}
		fmt.Fprintf(&text, "%s\t%s\t%s\n", each.how, each.source, each.target)
	}
	return os.WriteFile(file, []byte(text.String()), private)
}

// mounts lays down a pod's volumes and returns what a container of it sees of them.
func (p *provider) mounts(pod *Pod, of *corev1.Container, image Image) ([]mount, error) {
	var found []mount
	for target, source := range image.Mounts {
		found = append(found, mount{"ro", source, target})
	}
	if number := gpus(of); number > 0 {
		list := filepath.Join(pod.folder, of.Name+".gpus")
		names := strings.Join(gpuNames(pod.boot, number), "\n") + "\n"
		if err := os.WriteFile(list, []byte(names), readable); err != nil {
			return nil, err
		}
		found = append(found, mount{"file", p.pods.settings.Driver, "/usr/bin/nvidia-smi"}, mount{"file", list, gpuList})
	}
	volumes := map[string]corev1.Volume{}
	for _, each := range pod.spec.Spec.Volumes {
		volumes[each.Name] = each
	}
	for _, each := range of.VolumeMounts {
		volume := volumes[each.Name]
		if isOfServiceAccount(volume) {
			continue // no pod here reaches the API server
		}
		if volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory {
			found = append(found, mount{"memory", "-", each.MountPath})
			continue
		}
		source, err := p.lay(pod, volume)
		if err != nil {
			return nil, err
		}
		how := "rw"
		if each.ReadOnly || volume.EmptyDir == nil {
			how = "ro"
		}
		if each.SubPath != "" {
			source, how = filepath.Join(source, each.SubPath), "file"
		}
		found = append(found, mount{how, source, each.MountPath})
	}
	return found, nil
}

func isOfServiceAccount(volume corev1.Volume) bool {
	return volume.Projected != nil && strings.HasPrefix(volume.Name, "kube-api-access-")
}

// lay writes a volume's files below the pod's folder and returns where.
func (p *provider) lay(pod *Pod, volume corev1.Volume) (string, error) {
	at := filepath.Join(pod.folder, "volumes", volume.Name)
	if err := os.MkdirAll(at, folders); err != nil {
		return "", err
	}
	namespace := pod.spec.Namespace
	switch {
	case volume.EmptyDir != nil:
		return at, os.Chmod(at, 0o777|os.ModeSticky)
	case volume.Secret != nil:
		from := volume.Secret
		secret, err := p.objects.Secrets.Secrets(namespace).Get(from.SecretName)
		if isFine(err, from.Optional) {
			return at, nil
		}
		if err != nil {
			return "", err
		}
		return at, writeFiles(at, secret.Data, from.Items, from.DefaultMode)
	case volume.ConfigMap != nil:
		from := volume.ConfigMap
		config, err := p.objects.ConfigMaps.ConfigMaps(namespace).Get(from.Name)
		if isFine(err, from.Optional) {
			return at, nil
		}
		if err != nil {
			return "", err
		}
		data := map[string][]byte{}
		for name, text := range config.Data {
			data[name] = []byte(text)
		}
		for name, bytes := range config.BinaryData {
			data[name] = bytes
		}
		return at, writeFiles(at, data, from.Items, from.DefaultMode)
	}
	return "", fmt.Errorf("volume %s: lab nodes have secrets, config maps and empty folders only", volume.Name)
}

func isFine(err error, optional *bool) bool {
	return errors.IsNotFound(err) && optional != nil && *optional
}

// writeFiles writes what was chosen of a secret or config map, all of it where nothing was.
func writeFiles(at string, data map[string][]byte, items []corev1.KeyToPath, mode *int32) error {
	if len(items) == 0 {
		for name := range data {
			items = append(items, corev1.KeyToPath{Key: name, Path: name})
		}
	}
	for _, each := range items {
		bytes, known := data[each.Key]
		if !known {
			return fmt.Errorf("there is no key %s", each.Key)
		}
		file := filepath.Join(at, filepath.Clean("/"+each.Path))
		permissions := os.FileMode(secretMode)
		if mode != nil {
			permissions = os.FileMode(*mode)
		}
		if each.Mode != nil {
			permissions = os.FileMode(*each.Mode)
		}
		if err := os.MkdirAll(filepath.Dir(file), folders); err != nil {
			return err
		}
		if err := os.WriteFile(file, bytes, permissions); err != nil {
			return err
		}
		if err := os.Chmod(file, permissions); err != nil {
			return err
		}
	}
	return nil
}
