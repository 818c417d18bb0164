package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"

	"vsml.dev/lab/vcenter/topology"
)

const (
	testUser     = "administrator@vsphere.local"
	testPassword = "correct horse <&> battery"
)

// startLab serves a shipped topology until the test ends.
func startLab(t *testing.T, name string, changes ...func(*topology.File)) *Lab {
	t.Helper()
	file, err := topology.Load("../../topologies/" + name + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(&file)
	}
	return startSite(t, file)
}

func startSite(t *testing.T, file topology.File) *Lab {
	t.Helper()
	lab, err := Start(Options{File: file, StateDir: t.TempDir(), Listen: "127.0.0.1:0", Username: testUser, Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// within bounds a call: nothing in these tests may hang.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// trust is a TLS configuration that trusts the lab's CA and nothing else.
func trust(t *testing.T, lab *Lab) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(lab.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

// login is a session over verified TLS.
func login(t *testing.T, lab *Lab) *govmomi.Client {
	t.Helper()
	client, err := loginAs(t, lab, testPassword)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func loginAs(t *testing.T, lab *Lab, password string) (*govmomi.Client, error) {
	t.Helper()
	endpoint, err := url.Parse(lab.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := soap.NewClient(endpoint, false)
	if err := transport.SetRootCAs(lab.CAFile()); err != nil {
		t.Fatal(err)
	}
	transport.Namespace, transport.Version = "urn:vim25", lab.APIVersion()
	plain, err := vim25.NewClient(within(t), transport)
	if err != nil {
		t.Fatal(err)
	}
	client := &govmomi.Client{Client: plain, SessionManager: session.NewManager(plain)}
	return client, client.Login(within(t), url.UserPassword(testUser, password))
}

// finder finds inventory by path within the lab's one datacenter.
func finder(t *testing.T, client *govmomi.Client) *find.Finder {
	t.Helper()
	search := find.NewFinder(client.Client)
	center, err := search.DefaultDatacenter(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return search.SetDatacenter(center)
}

func hostNamed(t *testing.T, client *govmomi.Client, name string) *object.HostSystem {
	t.Helper()
	host, err := finder(t, client).HostSystem(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func machineNamed(t *testing.T, client *govmomi.Client, name string) *object.VirtualMachine {
	t.Helper()
	machine, err := finder(t, client).VirtualMachine(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func hostProperties(t *testing.T, client *govmomi.Client, name string, paths ...string) mo.HostSystem {
	t.Helper()
	var properties mo.HostSystem
	if err := hostNamed(t, client, name).Properties(within(t), hostNamed(t, client, name).Reference(), paths, &properties); err != nil {
		t.Fatal(err)
	}
	return properties
}

func machineProperties(t *testing.T, machine *object.VirtualMachine, paths ...string) mo.VirtualMachine {
	t.Helper()
	var properties mo.VirtualMachine
	if err := machine.Properties(within(t), machine.Reference(), paths, &properties); err != nil {
		t.Fatal(err)
	}
	return properties
}

// ask calls a control endpoint and decodes its reply.
func ask(t *testing.T, lab *Lab, method, path string, body, into any) int {
	t.Helper()
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		payload = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(within(t), method, "https://"+lab.Address()+path, payload)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(testUser, testPassword)
	return send(t, lab, request, into)
}

func send(t *testing.T, lab *Lab, request *http.Request, into any) int {
	t.Helper()
	status, text := sendText(t, lab, request)
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("status %d: %s: %v", status, text, err)
		}
	}
	return status
}

func sendText(t *testing.T, lab *Lab, request *http.Request) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: trust(t, lab)}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
