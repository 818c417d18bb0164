package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/api/statsv1alpha1"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"
)

const followPause = 200 * time.Millisecond

// GetContainerLogs returns what a container has printed; with `Follow` also what it prints until it ends.
func (p *provider) GetContainerLogs(
	ctx context.Context, namespace, pod, container string, opts api.ContainerLogOpts,
) (io.ReadCloser, error) {
	run, of, err := p.container(namespace, pod, container)
	if err != nil {
		return nil, err
	}
	if opts.Timestamps || opts.Previous || opts.SinceSeconds > 0 || !opts.SinceTime.IsZero() {
		return nil, errdefs.InvalidInput("logs of lab nodes have no times, and none of earlier containers")
	}
	text, err := os.ReadFile(run.logFile(of.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	shown := tail(text, opts.Tail)
	if opts.LimitBytes > 0 && len(shown) > opts.LimitBytes {
		shown = shown[:opts.LimitBytes]
	}
	if !opts.Follow {
		return io.NopCloser(bytes.NewReader(shown)), nil
	}
	reader, writer := io.Pipe()
	go func() {
		_, err := writer.Write(shown)
		writer.CloseWithError(errors.Join(err, follow(ctx, run, of.Name, int64(len(text)), writer)))
	}()
	return reader, nil
}

// tail returns the last lines; all of them for 0, as virtual-kubelet has it.
func tail(text []byte, lines int) []byte {
	if lines <= 0 {
		return text
	}
	from := len(bytes.TrimSuffix(text, []byte("\n")))
	for ; lines > 0 && from >= 0; lines-- {
		from = bytes.LastIndexByte(text[:from], '\n')
	}
	return text[from+1:]
}

func follow(ctx context.Context, run *podRun, container string, from int64, to io.Writer) error {
	for over := false; ; time.Sleep(followPause) {
		file, err := os.Open(run.logFile(container))
		if err == nil {
			_, _ = file.Seek(from, io.SeekStart)
			copied, failed := io.Copy(to, file)
			file.Close()
			if failed != nil {
				return failed
			}
			from += copied
		}
		if over || ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-run.ended:
			over = true
		default:
		}
	}
}

// RunInContainer runs a command in a container that runs.
func (p *provider) RunInContainer(
	ctx context.Context, namespace, pod, container string, words []string, with api.AttachIO,
) error {
	run, of, err := p.container(namespace, pod, container)
	if err != nil {
		return err
	}
	if with.TTY() {
		return errdefs.InvalidInput("lab nodes give commands no terminal")
	}
	if !slices.ContainsFunc(run.seen().Status.ContainerStatuses, func(each corev1.ContainerStatus) bool {
		return each.Name == container && each.State.Running != nil
	}) {
		return errdefs.NotFoundf("container %s of %s does not run", container, pod)
	}
	command, err := p.pods.execIn(run.pod, of, p.pods.settings.Images[of.Image], words)
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = with.Stdout(), with.Stderr()
	return ended(ctx, command, with.Stdin())
}

// ended runs a command and returns its exit status as the streams' protocol wants it.
func ended(ctx context.Context, command *exec.Cmd, stdin io.Reader) error {
	var pipe io.WriteCloser
	var err error
	if stdin != nil {
		if pipe, err = command.StdinPipe(); err != nil {
			return err
		}
	}
	if err := command.Start(); err != nil {
		return err
	}
	if pipe != nil { // not by exec.Cmd, which would wait for a client that says nothing more and does not close
		go func() {
			_, _ = io.Copy(pipe, stdin)
			pipe.Close()
		}()
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	err = command.Wait()
	if status := exitStatus(err); status != 0 {
		return utilexec.CodeExitError{Err: err, Code: int(status)}
	}
	return nil
}

func (p *Pods) imageNames() string {
	var names []string
	for name := range p.settings.Images {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (p *provider) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errdefs.InvalidInput("lab nodes attach to no container")
}

func (p *provider) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errdefs.InvalidInput("lab nodes forward no ports: this machine reaches pods by their addresses")
}

func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
