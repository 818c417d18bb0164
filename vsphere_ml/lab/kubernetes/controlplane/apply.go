package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

const applyDeadline = 30 * time.Second

// applyFile applies every object of a file but Deployments: what they would run runs as a process here.
func applyFile(ctx context.Context, kubeconfig, file string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	objects, err := read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, each := range objects {
		if each.GetKind() == "Deployment" {
			continue
		}
		if err := applyUntilTaken(ctx, config, each); err != nil {
			return fmt.Errorf("%s %s: %w", each.GetKind(), each.GetName(), err)
		}
	}
	return nil
}

func read(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		made := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &made.Object); err != nil {
			return nil, err
		}
		if len(made.Object) > 0 {
			objects = append(objects, made)
		}
	}
}

// applyUntilTaken tries again for a while: a namespace that was made just now is not known at once.
func applyUntilTaken(ctx context.Context, config *rest.Config, object *unstructured.Unstructured) error {
	deadline := time.Now().Add(applyDeadline)
	for {
		err := applyOne(ctx, config, object)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func applyOne(ctx context.Context, config *rest.Config, object *unstructured.Unstructured) error {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(finder)
	if err != nil {
		return err
	}
	kind := object.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var at dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		at = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = at.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "vsml-lab", Force: true})
	return err
}

func serverVersion(_ context.Context, kubeconfig string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	version, err := finder.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}

// awaitServed waits until the API server serves a group: that its definition was taken does not say so, and the
// operator (v0.8.2) ends at once where it is not.
func awaitServed(ctx context.Context, kubeconfig, group string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(applyDeadline)
	for {
		found, err := finder.ServerResourcesForGroupVersion(group)
		if err == nil && len(found.APIResources) > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not served: %w", group, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
