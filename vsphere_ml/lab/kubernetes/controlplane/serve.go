package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	startDeadline = 240 * time.Second
	restartPause  = 2 * time.Second
	loopback      = "127.0.0.1"
	// The operator runs with what its own manifests allow its service account, and no more.
	operatorGroup = "kubeflow.org/v2beta1"
	operatorUser  = "system:serviceaccount:mpi-operator:mpi-operator"
	serviceRange  = "10.96.0.0/16"
	clientPrivate = 0o600
)

// A user of the API server: a name, its groups, and the token by which it signs in.
type user struct{ name, groups, token string }

// plane is one control plane: the folder of its files, its users, and the processes that run.
type plane struct {
	folder, program, operator string
	port                      int
	users                     map[string]*user
	ended                     chan error
	running                   []*exec.Cmd
	serving                   atomic.Bool // the API server has answered
}

// Ready is what stands in ready.json once everything answers.
type Ready struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	Kubernetes string `json:"kubernetes"`
	Pid        int    `json:"pid"`
}

// serve starts all parts, applies the operator's manifests, and ends with the first part that ends, or by SIGTERM.
func serve(arguments []string) error {
	// The kernel ends a child with its parent's thread (PR_SET_PDEATHSIG, prctl(2)), and Go may end an idle one.
	runtime.LockOSThread()
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	folder := flags.String("state", "", "the folder for keys, data, logs and the kubeconfig")
	operator := flags.String("operator", "", "mpi-operator's program; none when empty")
	manifests := flags.String("manifests", "", "the file of its CRD and roles")
	port := flags.Int("port", 0, "of the API server; 0 is any")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p := &plane{folder: *folder, program: program, operator: *operator, port: *port, ended: make(chan error, 8)}
	defer p.stop()
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := p.start(stop, *manifests); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-stop.Done():
		return nil
	}
}

func (p *plane) start(ctx context.Context, manifests string) error {
	steps := []func() error{
		p.writeKeys, p.writeUsers, p.startEtcd, p.startServer,
		func() error { return p.awaitReady(ctx) },
		p.writeKubeconfigs, p.startControllers, p.startScheduler,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if p.operator != "" {
		if err := applyFile(ctx, p.path("kubeconfig"), manifests); err != nil {
			return err
		}
		if err := awaitServed(ctx, p.path("kubeconfig"), operatorGroup); err != nil {
			return err
		}
		if err := p.startOperator(); err != nil {
			return err
		}
	}
	return p.writeReady(ctx)
}

func (p *plane) path(name string) string { return filepath.Join(p.folder, name) }

func (p *plane) server() string { return fmt.Sprintf("https://%s:%d", loopback, p.port) }

// writeUsers makes a token for each part that signs in, and the file that the API server knows them by.
func (p *plane) writeUsers() error {
	p.users = map[string]*user{
		"kubeconfig":         {name: "vsml-lab", groups: "system:masters"},
		"controller-manager": {name: "system:kube-controller-manager", groups: "system:masters"},
		"scheduler":          {name: "system:kube-scheduler"},
		"operator":           {name: operatorUser, groups: "system:serviceaccounts,system:serviceaccounts:mpi-operator"},
	}
	var lines strings.Builder
	for id, each := range p.users {
		secret := make([]byte, 24)
		if _, err := rand.Read(secret); err != nil {
			return err
		}
		each.token = hex.EncodeToString(secret)
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", each.token, each.name, id, each.groups)
	}
	return os.WriteFile(p.path("tokens.csv"), []byte(lines.String()), clientPrivate)
}

// run starts a part of this program, or another one, with a log of its own; it dies with this process.
func (p *plane) run(name, program string, arguments ...string) error {
	log, err := p.log(name)
	if err != nil {
		return err
	}
	defer log.Close()
	command := p.command(log, program, arguments)
	if err := command.Start(); err != nil {
		return err
	}
	p.running = append(p.running, command)
	go func() { p.ended <- fmt.Errorf("%s ended: %w; see %s", name, errOf(command.Wait()), log.Name()) }()
	return nil
}

// keep starts a part again whenever it ends, as a kubelet would; before the API server has answered, its end is the end.
func (p *plane) keep(name, program string, arguments ...string) error {
	log, err := p.log(name)
	if err != nil {
		return err
	}
	go func() {
		runtime.LockOSThread() // as in serve: its children end with this thread
		for ; ; time.Sleep(restartPause) {
			err := p.command(log, program, arguments).Run()
			if !p.serving.Load() {
				p.ended <- fmt.Errorf("%s ended: %w; see %s", name, errOf(err), log.Name())
				return
			}
			fmt.Fprintf(os.Stderr, "%s ended and is started again: %v\n", name, err)
		}
	}()
	return nil
}

func (p *plane) log(name string) (*os.File, error) {
	return os.OpenFile(p.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, clientPrivate)
}

func (p *plane) command(log *os.File, program string, arguments []string) *exec.Cmd {
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr, command.Dir = log, log, p.folder
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

func errOf(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// startEtcd listens on sockets in the folder, which only its owner can enter.
func (p *plane) startEtcd() error {
	return p.run("etcd", p.program, "etcd",
		"--data-dir", "etcd", "--log-level", "warn", "--unsafe-no-fsync",
		"--listen-client-urls", "unix://client:1", "--advertise-client-urls", "unix://client:1",
		"--listen-peer-urls", "unix://peer:1", "--initial-advertise-peer-urls", "unix://peer:1",
		"--initial-cluster", "default=unix://peer:1")
}

func (p *plane) startServer() error {
	if p.port == 0 {
		port, err := freePort()
		if err != nil {
			return err
		}
		p.port = port
	}
	return p.keep("kube-apiserver", p.program, "kube-apiserver",
		"--etcd-servers", "unix://client:1", "--bind-address", loopback, "--secure-port", fmt.Sprint(p.port),
		"--cert-dir", "certificates", "--token-auth-file", "tokens.csv", "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", serviceRange,
		"--service-account-key-file", "service-account.key",
		"--service-account-signing-key-file", "service-account.key",
		"--kubelet-client-certificate", kubeletClient+".crt", "--kubelet-client-key", kubeletClient+".key")
}

// awaitReady waits until the API server says that it is ready; what ended before is the reason when it does not.
func (p *plane) awaitReady(ctx context.Context) error {
	deadline := time.Now().Add(startDeadline)
	for time.Now().Before(deadline) {
		select {
		case err := <-p.ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		if p.isReady() {
			p.serving.Store(true)
			return nil
		}
	}
	return fmt.Errorf("kube-apiserver is not ready after %s; see %s", startDeadline, p.path("kube-apiserver.log"))
}

func (p *plane) isReady() bool {
	trusted, err := os.ReadFile(p.path("certificates/apiserver.crt"))
	if err != nil {
		return false
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	client := http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: 5 * time.Second,
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, p.server()+"/readyz", nil)
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+p.users["kubeconfig"].token)
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// writeKubeconfigs writes one for each user, under the name of who uses it.
func (p *plane) writeKubeconfigs() error {
	trusted, err := os.ReadFile(p.path("certificates/apiserver.crt"))
	if err != nil {
		return err
	}
	for id, each := range p.users {
		config := api.NewConfig()
		config.Clusters["vsml-lab"] = &api.Cluster{Server: p.server(), CertificateAuthorityData: trusted}
		config.AuthInfos[each.name] = &api.AuthInfo{Token: each.token}
		config.Contexts["vsml-lab"] = &api.Context{Cluster: "vsml-lab", AuthInfo: each.name}
		config.CurrentContext = "vsml-lab"
		if err := clientcmd.WriteToFile(*config, p.path(id)); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) startControllers() error {
	return p.keep("kube-controller-manager", p.program, "kube-controller-manager",
		"--kubeconfig", "controller-manager", "--secure-port", "0", "--leader-elect=false",
		"--root-ca-file", "certificates/apiserver.crt",
		"--service-account-private-key-file", "service-account.key")
}

func (p *plane) startScheduler() error {
	return p.keep("kube-scheduler", p.program, "kube-scheduler",
		"--kubeconfig", "scheduler", "--secure-port", "0", "--leader-elect=false")
}

// startOperator: it ends by itself when the API server was too slow for its lease.
func (p *plane) startOperator() error {
	return p.keep("mpi-operator", p.operator, "-kubeConfig", p.path("operator"), "-alsologtostderr")
}

func (p *plane) writeReady(ctx context.Context) error {
	version, err := serverVersion(ctx, p.path("kubeconfig"))
	if err != nil {
		return err
	}
	text, err := json.Marshal(
		Ready{Server: p.server(), Kubeconfig: p.path("kubeconfig"), Kubernetes: version, Pid: os.Getpid()})
	if err != nil {
		return err
	}
	draft := p.path("ready.new")
	if err := os.WriteFile(draft, text, clientPrivate); err != nil {
		return err
	}
	return os.Rename(draft, p.path("ready.json"))
}

// stop ends the parts, those that were started last first.
func (p *plane) stop() {
	for at := len(p.running) - 1; at >= 0; at-- {
		_ = p.running[at].Process.Kill()
	}
}
