package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

const (
	startDeadline = 60 * time.Second
	loopback      = "127.0.0.1"
	private       = 0o600
	podsPerNode   = "110" // kubelet's default
	standins      = "lab.vsml/stand-ins"
	kubeletName   = "vsml-lab-node"
)

// newNode returns a node with a kubelet's HTTP interface, on a port of its own, that only the API server can use.
func newNode(name string, settings Settings, client kubernetes.Interface, pods *Pods) (*nodeutil.Node, error) {
	boot := string(uuid.NewUUID())
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	serving, err := servingConfig(settings.Client)
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: kubeletName, Host: name})
	mux := http.NewServeMux()
	describe := func(cfg *nodeutil.NodeConfig) error {
		cfg.Client, cfg.Handler, cfg.TLSConfig, cfg.EventRecorder = client, mux, serving, events
		cfg.HTTPListenAddr = fmt.Sprintf("%s:%d", loopback, port)
		// An exec that says nothing for a while is no error: ranks compute.
		cfg.StreamIdleTimeout, cfg.StreamCreationTimeout = 4*time.Hour, 30*time.Second
		describeNode(&cfg.NodeSpec, settings, port)
		cfg.NodeSpec.Status.NodeInfo.BootID = boot
		return nil
	}
	made := func(found nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return &provider{name: name, boot: boot, pods: pods, objects: found, events: events, client: client}, nil, nil
	}
	return nodeutil.NewNode(name, made, describe, nodeutil.AttachProviderRoutes(mux))
}

func describeNode(spec *corev1.Node, settings Settings, port int) {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory(), resource.BinarySI),
		corev1.ResourcePods:   resource.MustParse(podsPerNode),
	}
	var without []string
	for name, amount := range settings.Standins {
		capacity[corev1.ResourceName(name)] = resource.MustParse(amount)
		without = append(without, name)
	}
	slices.Sort(without)
	spec.Annotations = map[string]string{
		standins: strings.Join(without, ", ") + ": no device is behind them; cpu and memory: all nodes share this machine's",
	}
	spec.Labels["kubernetes.io/os"], spec.Labels["kubernetes.io/arch"] = "linux", runtime.GOARCH
	for at := range spec.Status.Conditions {
		spec.Status.Conditions[at].Status = corev1.ConditionFalse
	}
	spec.Status.Capacity, spec.Status.Allocatable = capacity, capacity
	spec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: loopback}}
	spec.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	spec.Status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: kubeletName, OperatingSystem: "linux", Architecture: runtime.GOARCH,
		ContainerRuntimeVersion: "processes://1", OSImage: "lab", KernelVersion: kernel(),
	}
}

func memory() int64 {
	var kibibytes int64
	text, err := os.ReadFile("/proc/meminfo")
	if err == nil {
		_, _ = fmt.Sscanf(string(text), "MemTotal: %d kB", &kibibytes)
	}
	return kibibytes << 10
}

func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// servingConfig returns TLS with a key of this process's own, for nobody but who has the client's key.
func servingConfig(client string) (*tls.Config, error) {
	trusted, err := os.ReadFile(client)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(trusted) {
		return nil, fmt.Errorf("%s is no certificate", path.Base(client))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: kubeletName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.ParseIP(loopback)},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}},
	}, nil
}
