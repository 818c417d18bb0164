// Command vsml-lab-nodes is the nodes of the lab's Kubernetes: one virtual-kubelet for each, whose pods' containers run
// as processes of this machine, each with a root, a network and process numbers of its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// Settings is what the nodes are to be, as a file has it.
type Settings struct {
	Folder     string            `json:"folder"`     // of the pods
	Kubeconfig string            `json:"kubeconfig"` // of who signs in
	Client     string            `json:"client"`     // the certificate by which the API server signs in here
	Hub        int               `json:"hub"`        // the pid of what has the pods' network
	Network    string            `json:"network"`    // of pods, the machine has its first address
	Nodes      []string          `json:"nodes"`
	Standins   map[string]string `json:"standins"` // extended resources of each node, with no device behind them
	Driver     string            `json:"driver"`   // the stand-in of nvidia-smi, for containers with GPUs
	Images     map[string]Image  `json:"images"`
}

// Image is a container image: folders that lie over one another, what is mounted into it, and its variables.
type Image struct {
	Layers []string          `json:"layers"` // the uppermost first
	Mounts map[string]string `json:"mounts"` // folders of this machine, by where they are to be seen, read-only
	Env    map[string]string `json:"env"`
}

func main() {
	file := flag.String("settings", "", "the file of what the nodes are to be")
	flag.String("state", "", "the folder by which this process is known")
	ready := flag.String("ready", "", "the file to write once all nodes are ready")
	flag.Parse()
	// The kernel ends a child with its parent's thread (PR_SET_PDEATHSIG, prctl(2)), and Go may end an idle one.
	runtime.LockOSThread()
	if err := run(*file, *ready); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file, ready string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var settings Settings
	if err := json.Unmarshal(text, &settings); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	pods, err := newPods(settings)
	if err != nil {
		return err
	}
	defer pods.endAll()
	client, err := nodeutil.ClientsetFromEnv(settings.Kubeconfig)
	if err != nil {
		return err
	}
	ended := make(chan error, len(settings.Nodes))
	for _, name := range settings.Nodes {
		node, err := newNode(name, settings, client, pods)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		go func() { ended <- node.Run(ctx) }()
		if err := node.WaitReady(ctx, startDeadline); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := os.WriteFile(ready, []byte(strings.Join(settings.Nodes, "\n")), private); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return errors.Join(errors.New("a node ended"), err)
	}
}
