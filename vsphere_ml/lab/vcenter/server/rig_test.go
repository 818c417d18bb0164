package server

import (
	"context"
	"crypto/x509"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// rig is a lab that answers over TLS, and one logged-in client of it.
type rig struct {
	*testing.T
	lab    *Lab
	client *vim25.Client
	find   *find.Finder
	ctx    context.Context
}

const rigPassword = "a password"

// newRig opens a shipped topology, changed as the test wishes.
func newRig(t *testing.T, name string, change func(*topology.File)) *rig {
	t.Helper()
	file, err := topology.Load(filepath.Join("..", "..", "topologies", name+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&file)
	}
	lab, err := Start(Options{File: file, StateDir: t.TempDir(), Listen: "127.0.0.1:0", Username: "administrator@vsphere.local", Password: rigPassword})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	r := &rig{T: t, lab: lab, ctx: ctx}
	r.client = r.login()
	r.find = find.NewFinder(r.client)
	datacenter, err := r.find.DefaultDatacenter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.find.SetDatacenter(datacenter)
	return r
}

func (r *rig) login() *vim25.Client {
	r.Helper()
	target, _ := url.Parse(r.lab.URL())
	transport := soap.NewClient(target, false)
	pem, err := os.ReadFile(r.lab.CAFile())
	if err != nil {
		r.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport.DefaultTransport().TLSClientConfig.RootCAs = pool
	client, err := vim25.NewClient(r.ctx, transport)
	if err != nil {
		r.Fatal(err)
	}
	if err := session.NewManager(client).Login(r.ctx, url.UserPassword("administrator@vsphere.local", rigPassword)); err != nil {
		r.Fatal(err)
	}
	return client
}

func (r *rig) vm(name string) *object.VirtualMachine {
	r.Helper()
	machine, err := r.find.VirtualMachine(r.ctx, name)
	if err != nil {
		r.Fatal(err)
	}
	return machine
}

func (r *rig) host(name string) *object.HostSystem {
	r.Helper()
	host, err := r.find.HostSystem(r.ctx, "*/"+name)
	if err != nil {
		r.Fatal(err)
	}
	return host
}

func (r *rig) pool() types.ManagedObjectReference { return r.poolOf("gpu") }

func (r *rig) poolOf(cluster string) types.ManagedObjectReference {
	r.Helper()
	pool, err := r.find.ResourcePool(r.ctx, cluster+"/Resources")
	if err != nil {
		r.Fatal(err)
	}
	return pool.Reference()
}

func (r *rig) folder() *object.Folder {
	r.Helper()
	folder, err := r.find.DefaultFolder(r.ctx)
	if err != nil {
		r.Fatal(err)
	}
	return folder
}

func (r *rig) config(machine *object.VirtualMachine) *types.VirtualMachineConfigInfo {
	r.Helper()
	var properties mo.VirtualMachine
	if err := machine.Properties(r.ctx, machine.Reference(), []string{"config"}, &properties); err != nil {
		r.Fatal(err)
	}
	return properties.Config
}

// done waits for a task and gives its fault, nil if it succeeded.
func (r *rig) done(task *object.Task, err error) types.BaseMethodFault {
	r.Helper()
	return r.result(task, err).fault
}

type outcome struct {
	value   types.AnyType
	fault   types.BaseMethodFault
	message string
}

func (r *rig) result(task *object.Task, err error) outcome {
	r.Helper()
	if err != nil {
		return outcome{fault: faultOf(r.T, err), message: err.Error()}
	}
	info, err := task.WaitForResult(r.ctx)
	if info == nil {
		r.Fatal(err)
	}
	if info.Error == nil {
		return outcome{value: info.Result}
	}
	if info.Error.LocalizedMessage == "" || info.Error.LocalizedMessage[0] == '*' {
		r.Errorf("%T comes without a sentence: %q", info.Error.Fault, info.Error.LocalizedMessage)
	}
	return outcome{fault: info.Error.Fault, message: info.Error.LocalizedMessage}
}

// faultOf is the API's fault within a client's error, as a pointer, as task errors have it.
func faultOf(t *testing.T, err error) types.BaseMethodFault {
	t.Helper()
	if err == nil {
		t.Fatal("no fault at all")
	}
	if soap.IsSoapFault(err) {
		value := reflect.ValueOf(soap.ToSoapFault(err).VimFault())
		pointer := reflect.New(value.Type())
		pointer.Elem().Set(value)
		return pointer.Interface().(types.BaseMethodFault)
	}
	t.Fatalf("no fault of the API: %v", err)
	return nil
}

// gpuSpec is a VM that starts with such vGPUs.
func gpuSpec(name string, profiles ...string) types.VirtualMachineConfigSpec {
	spec := types.VirtualMachineConfigSpec{
		Name: name, GuestId: "ubuntu64Guest", Version: "vmx-20", Firmware: "efi", NumCPUs: 8, MemoryMB: 64 << 10,
		MemoryReservationLockedToMax: types.NewBool(true),
		Files:                        &types.VirtualMachineFileInfo{VmPathName: "[vsan]"},
		ExtraConfig: []types.BaseOptionValue{
			&types.OptionValue{Key: "pciPassthru.use64bitMMIO", Value: "TRUE"},
			&types.OptionValue{Key: "pciPassthru.64bitMMIOSizeGB", Value: "1024"},
		},
	}
	for i, profile := range profiles {
		spec.DeviceChange = append(spec.DeviceChange, added(vgpuDevice(int32(-100-i), profile)))
	}
	return spec
}

func vgpuDevice(key int32, profile string) *types.VirtualPCIPassthrough {
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
		Key: key, Backing: &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: profile},
	}}
}

func added(device types.BaseVirtualDevice) *types.VirtualDeviceConfigSpec {
	return &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: device}
}

// tryCreate asks for the VM on a host of the quad site, or wherever if host is "".
func (r *rig) tryCreate(spec types.VirtualMachineConfigSpec, host string) outcome {
	r.Helper()
	var on *object.HostSystem
	if host != "" {
		on = r.host(host)
	}
	pool := object.NewResourcePool(r.client, r.pool())
	return r.result(r.folder().CreateVM(r.ctx, spec, pool, on))
}

// tryCreateIn asks for the VM in that cluster.
func (r *rig) tryCreateIn(cluster string, spec types.VirtualMachineConfigSpec) outcome {
	r.Helper()
	return r.result(r.folder().CreateVM(r.ctx, spec, object.NewResourcePool(r.client, r.poolOf(cluster)), nil))
}

func (r *rig) create(spec types.VirtualMachineConfigSpec, host string) *object.VirtualMachine {
	r.Helper()
	made := r.tryCreate(spec, host)
	if made.fault != nil {
		r.Fatalf("%s was refused: %T %s", spec.Name, made.fault, made.message)
	}
	return object.NewVirtualMachine(r.client, made.value.(types.ManagedObjectReference))
}

func (r *rig) powerOn(machine *object.VirtualMachine) types.BaseMethodFault {
	r.Helper()
	return r.done(machine.PowerOn(r.ctx))
}
