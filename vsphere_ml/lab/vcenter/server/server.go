// Package server serves a lab site as a vCenter: govmomi's simulator, unmodified, with the site's hardware, bookings
// and refusals laid over it. It is the only package that knows the simulator. It knows nothing of vsml.
package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
	"vsml.dev/lab/vcenter/topology"
)

// Options say what to serve, where, and to whom.
type Options struct {
	File     topology.File
	StateDir string // the CA, the certificate's trust anchor and the datastores' files live here
	Listen   string // 127.0.0.1:0 for any free port
	Username string
	Password string
	// PowerHook is a program that stands guests behind VMs; see powerHook. None when empty.
	PowerHook string
}

// Lab is one running site.
type Lab struct {
	File    topology.File
	Rack    *rack.Rack
	Context *simulator.Context // for the lab's own work; a request brings its own
	Started time.Time

	options Options
	service *simulator.Service
	site    *site
	faults  faultRules
	delays  delays
	clones  clonePlaces
	calls   calls

	shells         shells
	shutdowns      shutdowns
	waits          waits
	hook           *powerHook // nil when there is none
	provisioning   provisioning
	customizations customizations
	origins        origins
	storage        storageProfiles
	vmTemplates    vmTemplates
	macs           atomic.Int64

	admission   sync.Mutex // held while a VM is admitted and started
	mu          sync.Mutex
	certificate tls.Certificate
	hostPort    string // localhost:PORT
	bound       string // the IP listened on
	handler     http.Handler
	http        *http.Server
	closed      bool
}

// Start serves the site until Close. The server answers when it returns.
func Start(options Options) (*Lab, error) {
	if options.Username == "" || options.Password == "" {
		return nil, fmt.Errorf("a user name and a password are needed")
	}
	authority, err := loadAuthority(options.StateDir)
	if err != nil {
		return nil, err
	}
	lab := &Lab{File: options.File, options: options, Started: time.Now()}
	if lab.certificate, err = authority.issue(); err != nil {
		return nil, err
	}
	if lab.Rack, err = rack.New(options.File); err != nil {
		return nil, err
	}
	if err := lab.delays.set(options.File.Delays); err != nil {
		return nil, fmt.Errorf("delay_ms: %w", err)
	}
	if lab.hook, err = newPowerHook(options.PowerHook); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", options.Listen, err)
	}
	if err := lab.open(listener); err != nil {
		listener.Close()
		return nil, err
	}
	if err := lab.addLibraries(); err != nil { // they are made over the API, so it answers by now
		_ = lab.Close()
		return nil, err
	}
	return lab, nil
}

// open builds the site and puts it behind the listener.
func (l *Lab) open(listener net.Listener) error {
	endpoint := listener.Addr().(*net.TCPAddr)
	l.hostPort, l.bound = fmt.Sprintf("localhost:%d", endpoint.Port), endpoint.IP.String()
	l.service = newService(l.options, l.hostPort)
	l.Context = l.service.Context
	options := l.Context.Map.OptionManager() // where the simulator looks for the address in NFC leases (govmomi 0.56.0)
	options.Setting = append(options.Setting, &types.OptionValue{Key: "vcsim.server.url", Value: "https://" + l.hostPort})
	if err := l.build(); err != nil {
		return err
	}
	l.Context.Map.Handler = l.dispatch
	l.handler = l.routes()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serve(listener)
	return nil
}

// newService is an empty vCenter of the topology's version.
func newService(options Options, address string) *simulator.Service {
	content := vpx.ServiceContent
	about := &content.About
	about.ApiVersion = apiVersion(options.File)
	if options.File.VCenter.Version != "" {
		about.Version = options.File.VCenter.Version
		about.Build = options.File.VCenter.Build
		about.LicenseProductVersion = strings.Join(strings.SplitN(about.Version, ".", 3)[:2], ".")
	}
	// Clients show the full name to people: nobody shall take the lab's numbers for those of hardware.
	about.FullName = fmt.Sprintf("VMware vCenter Server %s build-%s (vsml lab, simulated)", about.Version, about.Build)
	service := simulator.New(simulator.NewServiceInstance(simulator.NewContext(), content, vpx.RootFolder))
	// The password stays out of the URL, which the simulator prints into leases.
	service.Listen = &url.URL{Scheme: "https", Host: address, Path: "/sdk", User: url.User(options.Username)}
	sessions := service.Context.Map.SessionManager()
	sessions.ServiceHostName = address
	sessions.ValidLogin = func(login *types.Login) bool {
		return strings.EqualFold(login.UserName, options.Username) && login.Password == options.Password
	}
	return service
}

func apiVersion(file topology.File) string { return file.VCenter.APIVersion }

// Address is host:port as the certificate names it.
func (l *Lab) Address() string { return l.hostPort }

// URL is the SOAP endpoint.
func (l *Lab) URL() string { return "https://" + l.hostPort + "/sdk" }

// CAFile is the certificate that clients must trust.
func (l *Lab) CAFile() string { return filepath.Join(l.options.StateDir, "ca.pem") }

// APIVersion is the version clients negotiate.
func (l *Lab) APIVersion() string { return apiVersion(l.File) }

// serve answers on the listener from now on; the caller holds the lock.
func (l *Lab) serve(listener net.Listener) {
	server := &http.Server{
		Handler:           l.handler,
		ReadHeaderTimeout: 30 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"http/1.1"},
			Certificates: []tls.Certificate{l.certificate},
		},
	}
	l.http = server
	go func() { _ = server.ServeTLS(listener, "", "") }()
}

// Close ends the server and removes what the datastores held.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if l.http.Shutdown(ctx) != nil {
		_ = l.http.Close() // somebody still waits for updates; vCenter does not wait for them either
	}
	for _, machine := range l.site.hosts {
		if machine.ssh != nil {
			machine.ssh.Stop(true)
		}
	}
	l.hook.close()
	return os.RemoveAll(l.datastoreDir())
}
